//! An OpenAI-shaped server that does nothing but answer. The body's `user` member says how: `delay=MS` answers after a
//! pause, `chunks=N,gap=MS` streams; anything else is answered at once.

use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use hyper::body::{Bytes, Frame, Incoming};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::time::Duration;
use tokio::net::TcpListener;

const ANSWER: &str = concat!(
    r#"{"id":"chatcmpl-1","object":"chat.completion","created":1,"model":"bench","choices":[{"index":0,"message":"#,
    r#"{"role":"assistant","content":"the tide comes in and the tide goes out and the wall stands where it stood"},"#,
    r#""finish_reason":"stop"}],"usage":{"prompt_tokens":64,"completion_tokens":16,"total_tokens":80}}"#,
);
const CHUNK: &str = concat!(
    r#"data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"bench","choices":[{"index":0,"#,
    r#""delta":{"content":" tide"},"finish_reason":null}]}"#,
    "\n\n",
);

pub(crate) async fn serve(port: u16) {
    let listener = TcpListener::bind(("127.0.0.1", port)).await.expect("the port is free");
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        stream.set_nodelay(true).expect("a socket option");
        tokio::spawn(async move {
            let service = hyper::service::service_fn(answer);
            // A client that leaves ends its connection.
            drop(hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await);
        });
    }
}

async fn answer(request: Request<Incoming>) -> Result<Response<UnsyncBoxBody<Bytes, Infallible>>, hyper::Error> {
    let body = request.into_body().collect().await?.to_bytes();
    let text = String::from_utf8_lossy(&body);
    let control =
        text.split_once(r#""user":""#).and_then(|(_, rest)| rest.split_once('"')).map_or("", |(word, _)| word);
    let value = |name: &str| {
        control.split(',').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('=')?.parse::<u64>().ok())
    };
    if let Some(delay) = value("delay") {
        tokio::time::sleep(Duration::from_millis(delay)).await;
    }
    let (kind, body) = match value("chunks") {
        Some(chunks) => ("text/event-stream", stream(chunks, Duration::from_millis(value("gap").unwrap_or(10)))),
        None => ("application/json", Full::new(Bytes::from_static(ANSWER.as_bytes())).boxed_unsync()),
    };
    Ok(Response::builder().header("content-type", kind).body(body).expect("a plain response"))
}

fn stream(chunks: u64, gap: Duration) -> UnsyncBoxBody<Bytes, Infallible> {
    let pieces = futures_util::stream::unfold(0, move |sent| async move {
        if sent > chunks {
            return None;
        }
        tokio::time::sleep(gap).await;
        let piece = if sent == chunks { "data: [DONE]\n\n" } else { CHUNK };
        Some((Ok(Frame::data(Bytes::from_static(piece.as_bytes()))), sent + 1))
    });
    StreamBody::new(pieces).boxed_unsync()
}
