//! The floor: a reverse proxy on hyper with a pool of kept connections and no other feature.

use http_body_util::{BodyExt, Empty, combinators::BoxBody};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1::SendRequest;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use tokio::net::{TcpListener, TcpStream};

type Pool = Arc<Mutex<Vec<SendRequest<Incoming>>>>;

pub(crate) async fn serve(port: u16, upstream: u16) {
    let listener = TcpListener::bind(("127.0.0.1", port)).await.expect("the port is free");
    let pool = Pool::default();
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        stream.set_nodelay(true).expect("a socket option");
        let pool = Arc::clone(&pool);
        tokio::spawn(async move {
            let service = hyper::service::service_fn(|request| forward(request, Arc::clone(&pool), upstream));
            drop(hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await);
        });
    }
}

async fn forward(
    mut request: Request<Incoming>,
    pool: Pool,
    upstream: u16,
) -> Result<Response<BoxBody<Bytes, hyper::Error>>, Infallible> {
    request.headers_mut().remove("connection");
    // A connection comes back at once and is taken again when its answer has been read.
    let kept = {
        let mut pool = pool.lock().expect("no panic holds the pool");
        pool.iter().rposition(SendRequest::is_ready).map(|index| pool.swap_remove(index))
    };
    let mut sender = match kept {
        Some(kept) => kept,
        None => connect(upstream).await,
    };
    let answered = sender.send_request(request).await;
    pool.lock().expect("no panic holds the pool").push(sender);
    if let Ok(response) = answered {
        return Ok(response.map(BodyExt::boxed));
    }
    let mut failed = Response::new(Empty::new().map_err(|never| match never {}).boxed());
    *failed.status_mut() = StatusCode::BAD_GATEWAY;
    Ok(failed)
}

async fn connect(upstream: u16) -> SendRequest<Incoming> {
    let stream = TcpStream::connect(("127.0.0.1", upstream)).await.expect("the upstream listens");
    stream.set_nodelay(true).expect("a socket option");
    let (sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.expect("a connection");
    tokio::spawn(connection);
    sender
}
