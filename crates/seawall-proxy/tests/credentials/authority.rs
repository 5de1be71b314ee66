//! A token service on a loopback port, plain or with TLS, that answers as it is told and tells what it was asked.

#![expect(clippy::unwrap_used, reason = "a helper of tests: a failure here is the test's failure")]

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

/// A request as it arrived.
pub(crate) struct Asked {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

/// How the next requests are answered.
#[derive(Clone)]
pub(crate) enum Answer {
    /// A token `token-N`, N being the number of the request, good for that many seconds.
    Token(u64),
    /// Any other status and body.
    Other(u16, String),
    /// Never.
    Silence,
}

/// The service; it ends when it is dropped.
pub(crate) struct Authority {
    pub(crate) url: String,
    pub(crate) asked: mpsc::Receiver<Asked>,
    answer: Arc<Mutex<Answer>>,
    task: JoinHandle<()>,
}

impl Drop for Authority {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Authority {
    pub(crate) async fn plain(answer: Answer) -> Self {
        Self::start(answer, None).await
    }

    /// With TLS, for the name `localhost`, signed by `ca`.
    pub(crate) async fn encrypted(answer: Answer, ca: &Ca) -> Self {
        Self::start(answer, Some(ca.acceptor())).await
    }

    async fn start(answer: Answer, tls: Option<TlsAcceptor>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let url = if tls.is_some() { format!("https://localhost:{port}") } else { format!("http://127.0.0.1:{port}") };
        let (sender, asked) = mpsc::channel(64);
        let answer = Arc::new(Mutex::new(answer));
        let shared = Arc::new(Shared { answer: Arc::clone(&answer), count: Mutex::new(0), sender });
        let task = tokio::spawn(async move {
            // Connections end with the set, and the set with this task.
            let mut connections = tokio::task::JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                connections.spawn(serve(stream, tls.clone(), Arc::clone(&shared)));
            }
        });
        Self { url, asked, answer, task }
    }

    pub(crate) fn answer_with(&self, answer: Answer) {
        *self.answer.lock().unwrap() = answer;
    }
}

struct Shared {
    answer: Arc<Mutex<Answer>>,
    count: Mutex<u64>,
    sender: mpsc::Sender<Asked>,
}

async fn serve(stream: TcpStream, tls: Option<TlsAcceptor>, shared: Arc<Shared>) {
    let service = service_fn(move |request| respond(request, Arc::clone(&shared)));
    // A client that does not like our certificate ends the connection: it reports that itself.
    match tls {
        None => drop(http1::Builder::new().serve_connection(TokioIo::new(stream), service).await),
        Some(acceptor) => {
            if let Ok(stream) = acceptor.accept(stream).await {
                drop(http1::Builder::new().serve_connection(TokioIo::new(stream), service).await);
            }
        }
    }
}

async fn respond(request: Request<Incoming>, shared: Arc<Shared>) -> Result<Response<Full<Bytes>>, Infallible> {
    let (head, body) = request.into_parts();
    let body = String::from_utf8(body.collect().await.unwrap().to_bytes().to_vec()).unwrap();
    let asked = Asked { method: head.method, path: head.uri.to_string(), headers: head.headers, body };
    shared.sender.try_send(asked).expect("a test asks less often");
    let number = {
        let mut count = shared.count.lock().unwrap();
        *count += 1;
        *count
    };
    let answer = shared.answer.lock().unwrap().clone();
    let (status, body) = match answer {
        Answer::Token(seconds) => {
            (200, format!(r#"{{"token_type":"Bearer","expires_in":{seconds},"access_token":"token-{number}"}}"#))
        }
        Answer::Other(status, body) => (status, body),
        Answer::Silence => std::future::pending().await,
    };
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = StatusCode::from_u16(status).unwrap();
    Ok(response)
}

/// A private CA.
pub(crate) struct Ca(CertifiedIssuer<'static, KeyPair>);

impl Ca {
    pub(crate) fn named(name: &str) -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    pub(crate) fn pem(&self) -> String {
        self.0.pem()
    }

    fn acceptor(&self) -> TlsAcceptor {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &self.0).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], PrivateKeyDer::try_from(key.serialize_der()).unwrap())
            .unwrap();
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        TlsAcceptor::from(Arc::new(config))
    }
}
