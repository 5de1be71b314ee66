//! Listeners, connections, and the tasks of each server.

use super::admin::{Admin, is_admin};
use super::server::{Server, lock};
use super::socket::{Resettable, Socket};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// How long a connection may take to send the head of a request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// Pause after a failed accept or bind, such as at the limit of open files.
const PAUSE: Duration = Duration::from_millis(50);
const BACKLOG: u32 = 1024;

/// What all tasks of a fleet share.
#[derive(Clone)]
pub(super) struct Tasks {
    pub(super) tracker: TaskTracker,
    pub(super) stop: CancellationToken,
    pub(super) connections: Arc<Semaphore>,
}

/// Binds a listener whose port can be bound again at once.
pub(super) fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    #[cfg(unix)]
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Runs one server's listener until the fleet stops. While a fault refuses connections, a listener of its own is
/// closed, so that connecting fails; the shared one stays, and requests on it are reset.
pub(super) async fn serve(listener: TcpListener, server: Arc<Server>, admin: Option<Arc<Admin>>, tasks: Tasks) {
    let Ok(address) = listener.local_addr() else { return };
    let mut listener = Some(listener);
    loop {
        let refuses = admin.is_none() && server.present_faults().refuse_connections == Some(true);
        if refuses {
            listener = None;
        } else if listener.is_none() {
            listener = bind(address).ok();
        }
        let next_end = lock(&server.faults).next_end();
        tokio::select! {
            () = tasks.stop.cancelled() => return,
            () = server.faults_changed.notified() => {}
            () = until(&server, next_end) => {}
            () = tokio::time::sleep(PAUSE), if listener.is_none() && !refuses => {}
            () = accept(listener.as_ref(), &server, admin.as_ref(), &tasks) => {}
        }
        server.apply_capacity();
    }
}

async fn until(server: &Server, end: Option<u64>) {
    match end {
        Some(at) => tokio::time::sleep_until(server.clock.to_tokio(at)).await,
        None => std::future::pending().await,
    }
}

async fn accept(listener: Option<&TcpListener>, server: &Arc<Server>, admin: Option<&Arc<Admin>>, tasks: &Tasks) {
    let Some(listener) = listener else { return std::future::pending().await };
    // The semaphore is never closed.
    let Ok(permit) = Arc::clone(&tasks.connections).acquire_owned().await else { return };
    let Ok((stream, _)) = listener.accept().await else { return tokio::time::sleep(PAUSE).await };
    // Without this small frames wait for acknowledgements; a failure costs only that.
    let _ = stream.set_nodelay(true);
    let (server, admin, stop) = (Arc::clone(server), admin.cloned(), tasks.stop.clone());
    tasks.tracker.spawn(async move {
        let switch = Arc::new(Resettable::default());
        let socket = Socket { stream, switch: Arc::clone(&switch) };
        let service = service_fn(move |request| {
            let (server, admin, switch) = (Arc::clone(&server), admin.clone(), Arc::clone(&switch));
            async move {
                match admin.filter(|_| is_admin(request.uri().path())) {
                    Some(admin) => Ok(admin.handle(request).await),
                    None => server.handle(request, switch).await,
                }
            }
        });
        let mut builder = Builder::new(TokioExecutor::new());
        builder.http1().timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT);
        builder.http2().timer(TokioTimer::new()).max_concurrent_streams(1024);
        let connection = builder.serve_connection(TokioIo::new(socket), service);
        tokio::select! {
            // How a connection ended is the client's affair; what it left undone is counted by its requests.
            _ = connection => {}
            () = stop.cancelled() => {}
        }
        drop(permit);
    });
}
