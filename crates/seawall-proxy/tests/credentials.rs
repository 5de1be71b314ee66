//! Credentials over loopback: tokens are got, kept fresh, shared, and survive an outage; TLS trusts whom it is told to.

#[path = "credentials/authority.rs"]
mod authority;

use authority::{Answer, Asked, Authority, Ca};
use seawall_config::{Overrides, SourceError};
use seawall_proxy::clock::Clock;
use seawall_proxy::upstream::credential::{
    CredentialError, CredentialSource, Credentials, EntraApplication, IdentityEnvironment, Surroundings, Timing,
    TokenStatus,
};
use seawall_proxy::upstream::tls::{Connectors, target};
use secrecy::SecretString;
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

const SECRET: &str = "S3cret~value+with/odd=signs";
/// Far above what any step takes; reaching it is a failure.
const LIMIT: Duration = Duration::from_secs(20);

fn surroundings() -> Surroundings {
    Surroundings {
        clock: Clock::start(),
        connectors: Arc::new(Connectors::new()),
        tasks: TaskTracker::new(),
        stop: CancellationToken::new(),
        seed: 7,
        identity: IdentityEnvironment::default(),
        timing: Timing {
            first_retry: Duration::from_millis(10),
            longest_retry: Duration::from_millis(40),
            ..Timing::default()
        },
    }
}

fn application(authority: &str) -> EntraApplication {
    EntraApplication {
        authority: authority.to_owned(),
        tenant_id: "contoso.example".to_owned(),
        client_id: "the-client".to_owned(),
        client_secret: SecretString::from(SECRET),
    }
}

/// The status once it is as wanted.
async fn until(source: &CredentialSource, wanted: impl FnMut(&TokenStatus) -> bool) -> TokenStatus {
    let mut status = source.status().expect("a token");
    let reached = tokio::time::timeout(LIMIT, status.wait_for(wanted)).await;
    reached.expect("in time").expect("the source lives").clone()
}

async fn asked(authority: &mut Authority) -> Asked {
    tokio::time::timeout(LIMIT, authority.asked.recv()).await.expect("in time").expect("the service lives")
}

/// The header's value, as text.
fn sent(source: &CredentialSource) -> String {
    let (name, value) = source.current().expect("a token").expect("a header");
    assert_eq!(name, "authorization");
    assert!(value.is_sensitive());
    value.to_str().expect("text").to_owned()
}

#[tokio::test]
async fn an_application_gets_its_token_and_shows_no_secret() {
    let mut authority = Authority::plain(Answer::Token(3600)).await;
    let credentials = Credentials::new(surroundings());
    let source = credentials.entra(&application(&authority.url)).unwrap();
    // The task has not run yet: asking does not wait for it.
    let missing = source.current().unwrap_err().to_string();
    assert!(missing.starts_with("no token yet from Microsoft Entra ID at 127.0.0.1"), "{missing}");

    let status = until(&source, |status| status.fetched == 1).await;
    assert_eq!((status.failed, status.failure), (0, None));
    assert_eq!(sent(&source), "Bearer token-1");
    let asked = asked(&mut authority).await;
    assert_eq!((asked.method.as_str(), asked.path.as_str()), ("POST", "/contoso.example/oauth2/v2.0/token"));
    assert_eq!(asked.headers["content-type"], "application/x-www-form-urlencoded");
    assert_eq!(asked.headers["host"], authority.url.trim_start_matches("http://"));
    assert_eq!(
        asked.body,
        "grant_type=client_credentials&client_id=the-client&client_secret=S3cret~value%2Bwith%2Fodd%3Dsigns\
         &scope=https%3A%2F%2Fcognitiveservices.azure.com%2F.default"
    );
    let shown = format!("{source:#?} {credentials:#?} {:?}", application(&authority.url));
    assert!(!shown.contains(SECRET) && !shown.contains("S3cret") && !shown.contains("token-1"), "{shown}");
}

/// The secrets of the config file in the test below.
struct Secrets;

impl seawall_config::CredentialSource for Secrets {
    fn environment(&self, name: &str) -> Result<SecretString, SourceError> {
        if name == "CLIENT_SECRET" { Ok(SecretString::from(SECRET)) } else { Err(SourceError::Missing) }
    }

    fn file(&self, _path: &Path) -> Result<SecretString, SourceError> {
        Err(SourceError::Missing)
    }
}

#[tokio::test]
async fn a_config_file_leads_to_a_token_and_to_a_target() {
    let mut authority = Authority::plain(Answer::Token(3600)).await;
    let file = format!(
        r#"
        [[models]]
        name = "gpt"
        [[models.deployments]]
        name = "azure"
        url = "https://contoso.openai.azure.com"
        dialect = "azure"
        [models.deployments.credential.entra]
        tenant_id = "contoso.example"
        client_id = "the-client"
        client_secret = {{ env = "CLIENT_SECRET" }}
        authority = "{}/base"
        [[models.deployments]]
        name = "local"
        url = "http://127.0.0.1:8000/v1"
        [[tenants]]
        name = "team"
        keys = [{{ sha256 = "{}" }}]
        "#,
        authority.url,
        "0123456789abcdef".repeat(4),
    );
    let config = seawall_config::parse(&file, "test.toml", &Secrets, &Overrides::default())
        .unwrap_or_else(|errors| panic!("a good file: {errors:?}"));
    let credentials = Credentials::new(surroundings());
    let azure = credentials.source(&config.upstreams()[0]).unwrap();
    assert_eq!(asked(&mut authority).await.path, "/base/contoso.example/oauth2/v2.0/token");
    until(&azure, |status| status.fetched == 1).await;
    assert_eq!(sent(&azure), "Bearer token-1");
    let local = credentials.source(&config.upstreams()[1]).unwrap();
    assert_eq!(local.current(), Ok(None));

    let connectors = Connectors::with_default_roots(Ca::named("ours").pem());
    let target_of = |index: usize| target(&config.upstreams()[index].endpoint, None, &connectors).unwrap();
    let (encrypted, plain) = (target_of(0), target_of(1));
    assert_eq!((encrypted.host.as_str(), encrypted.port), ("contoso.openai.azure.com", 443));
    assert_eq!(encrypted.tls.expect("https").1.to_str(), "contoso.openai.azure.com");
    assert_eq!((plain.host.as_str(), plain.port, plain.tls.is_none()), ("127.0.0.1", 8000, true));
}

#[tokio::test]
async fn a_token_is_replaced_before_its_end() {
    let authority = Authority::plain(Answer::Token(3)).await;
    let mut surroundings = surroundings();
    surroundings.timing.shortest_refresh = Duration::ZERO;
    let clock = surroundings.clock;
    let source = Credentials::new(surroundings).entra(&application(&authority.url)).unwrap();
    let first = until(&source, |status| status.fetched == 1).await.expires.unwrap();
    let begun = clock.now();
    let second = until(&source, |status| status.fetched == 2).await.expires.unwrap();
    let replaced = clock.now();
    assert!(replaced < first && second > first, "replaced at {replaced:?}, the first ended at {first:?}");
    assert!(replaced.since(begun) > Duration::from_secs(2), "not before three quarters of its life");
    assert_eq!(sent(&source), "Bearer token-2");
}

#[tokio::test]
async fn an_outage_keeps_the_last_token_to_its_end_and_a_recovery_is_noticed() {
    let authority = Authority::plain(Answer::Token(3)).await;
    let mut surroundings = surroundings();
    surroundings.timing.shortest_refresh = Duration::ZERO;
    let clock = surroundings.clock;
    let source = Credentials::new(surroundings).entra(&application(&authority.url)).unwrap();
    let expires = until(&source, |status| status.fetched == 1).await.expires.unwrap();

    authority.answer_with(Answer::Other(503, r#"{"error":"temporarily_unavailable"}"#.to_owned()));
    until(&source, |status| status.failed == 2).await;
    assert!(clock.now() < expires);
    assert_eq!(sent(&source), "Bearer token-1");

    tokio::time::sleep_until(clock.to_tokio(expires)).await;
    let missing = source.current().unwrap_err();
    assert!(missing.expired);
    let told = missing.to_string();
    assert!(told.starts_with("the last token has expired") && told.contains("503"), "{told}");
    assert!(told.ends_with("temporarily_unavailable"), "{told}");

    authority.answer_with(Answer::Token(3600));
    let status = until(&source, |status| status.fetched == 2).await;
    assert_eq!(status.failure, None);
    assert!(sent(&source).starts_with("Bearer token-"));
}

#[derive(Clone, Default)]
struct Captured(Arc<Mutex<Vec<u8>>>);

impl Write for Captured {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("no writer panics").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn a_wrong_secret_is_told_in_the_log_without_the_secret() {
    let log = Captured::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    let description = format!(r"AADSTS7000215: Invalid client secret '{SECRET}'.\r\nTrace ID: 1");
    let body = format!(r#"{{"error":"invalid_client","error_description":"{description}"}}"#);
    let authority = Authority::plain(Answer::Other(401, body)).await;
    let source = Credentials::new(surroundings()).entra(&application(&authority.url)).unwrap();
    let status = until(&source, |status| status.failed == 3).await;
    authority.answer_with(Answer::Token(3600));
    until(&source, |status| status.fetched == 1).await;

    let failure = status.failure.unwrap();
    assert_eq!(&*failure, "it answered 401 Unauthorized: invalid_client: AADSTS7000215: Invalid client secret '***'.");
    let log = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert!(log.contains(&*failure) && log.contains("the-client") && log.contains("retry_in_ms="), "{log}");
    assert!(log.contains("got a token"), "{log}");
    assert!(!log.contains("S3cret") && !log.contains("token-"), "{log}");
}

#[tokio::test]
async fn tls_trusts_the_named_ca_and_no_other() {
    let ours = Ca::named("ours");
    let authority = Authority::encrypted(Answer::Token(3600), &ours).await;
    let with_roots = |pem: String| {
        let connectors = Arc::new(Connectors::with_default_roots(pem));
        Credentials::new(Surroundings { connectors, ..surroundings() })
    };

    let source = with_roots(ours.pem()).entra(&application(&authority.url)).unwrap();
    until(&source, |status| status.fetched == 1).await;
    assert_eq!(sent(&source), "Bearer token-1");

    for (other, reason) in [("other", "UnknownIssuer"), ("ours", "BadSignature")] {
        let source = with_roots(Ca::named(other).pem()).entra(&application(&authority.url)).unwrap();
        let failure = until(&source, |status| status.failed == 1).await.failure.unwrap();
        assert!(failure.contains(reason) && failure.contains("no trusted CA signed"), "{failure}");
    }

    // The certificate is for `localhost`.
    let by_address = authority.url.replace("localhost", "127.0.0.1");
    let source = with_roots(ours.pem()).entra(&application(&by_address)).unwrap();
    let failure = until(&source, |status| status.failed == 1).await.failure.unwrap();
    assert!(failure.contains("its certificate is for another name"), "{failure}");
}

#[tokio::test]
async fn identical_credentials_share_one_token_and_the_last_holder_ends_its_task() {
    let mut authority = Authority::plain(Answer::Token(3600)).await;
    let surroundings = surroundings();
    let tasks = surroundings.tasks.clone();
    let credentials = Credentials::new(surroundings);
    let sources: Vec<_> = (0..100).map(|_| credentials.entra(&application(&authority.url)).unwrap()).collect();
    let mut changed = application(&authority.url);
    changed.client_secret = SecretString::from("rotated");
    let rotated = credentials.entra(&changed).unwrap();
    assert_eq!(tasks.len(), 2);
    for source in sources.iter().chain([&rotated]) {
        until(source, |status| status.fetched == 1).await;
    }
    assert_eq!(sent(&sources[0]), sent(&sources[99]));
    assert_ne!(sent(&sources[0]), sent(&rotated));
    asked(&mut authority).await;
    asked(&mut authority).await;
    assert!(authority.asked.try_recv().is_err(), "one request for each distinct credential");

    drop((sources, rotated));
    tasks.close();
    tokio::time::timeout(LIMIT, tasks.wait()).await.expect("the tasks end with their holders");
}

#[tokio::test]
async fn a_refused_token_is_replaced_once_in_a_while() {
    let authority = Authority::plain(Answer::Token(3600)).await;
    let source = Credentials::new(surroundings()).entra(&application(&authority.url)).unwrap();
    until(&source, |status| status.fetched == 1).await;
    source.credential_refused();
    assert_eq!(sent(&source), "Bearer token-1", "it serves until there is another");
    until(&source, |status| status.fetched == 2).await;
    assert_eq!(sent(&source), "Bearer token-2");
}

#[tokio::test]
async fn a_stop_ends_a_task_that_waits_for_a_silent_service() {
    let mut authority = Authority::plain(Answer::Silence).await;
    let surroundings = surroundings();
    let (tasks, stop) = (surroundings.tasks.clone(), surroundings.stop.clone());
    let source = Credentials::new(surroundings).entra(&application(&authority.url)).unwrap();
    asked(&mut authority).await;
    stop.cancel();
    tasks.close();
    tokio::time::timeout(Duration::from_secs(3), tasks.wait()).await.expect("sooner than an exchange may take");
    assert!(source.current().is_err());
}

#[tokio::test]
async fn an_exchange_is_bounded_in_time_and_bytes_and_follows_no_redirect() {
    let authority = Authority::plain(Answer::Silence).await;
    let mut surroundings = surroundings();
    surroundings.timing.exchange = Duration::from_millis(200);
    let source = Credentials::new(surroundings).entra(&application(&authority.url)).unwrap();
    let failure = until(&source, |status| status.failed == 1).await.failure.unwrap();
    assert_eq!(&*failure, "no whole answer within 200ms");
    for (answer, told) in [
        (Answer::Other(200, " ".repeat(65 * 1024)), "longer than 65536 bytes"),
        (Answer::Other(302, String::new()), "it answered 302 Found"),
        (Answer::Other(200, "<html>".to_owned()), "not one of a token service"),
        (Answer::Token(0), "check the clock"),
    ] {
        authority.answer_with(answer);
        until(&source, |status| status.failure.as_ref().is_some_and(|failure| failure.contains(told))).await;
    }
}

#[tokio::test]
async fn a_managed_identity_asks_the_machines_metadata_service() {
    let mut authority = Authority::plain(Answer::Token(3600)).await;
    let metadata = format!("{}/metadata/identity/oauth2/token", authority.url);
    let identity = IdentityEnvironment { metadata, ..IdentityEnvironment::default() };
    let credentials = Credentials::new(Surroundings { identity, ..surroundings() });
    let source = credentials.managed_identity(None).unwrap();
    let seen = asked(&mut authority).await;
    let path = "/metadata/identity/oauth2/token?api-version=2018-02-01\
                &resource=https%3A%2F%2Fcognitiveservices.azure.com%2F";
    assert_eq!((seen.method.as_str(), seen.path.as_str(), seen.body.as_str()), ("GET", path, ""));
    assert_eq!(seen.headers["metadata"], "true");
    until(&source, |status| status.fetched == 1).await;
    assert_eq!(sent(&source), "Bearer token-1");

    let assigned = credentials.managed_identity(Some("1111-2222")).unwrap();
    assert_eq!(asked(&mut authority).await.path, format!("{path}&client_id=1111-2222"));
    until(&assigned, |status| status.fetched == 1).await;

    let identity = IdentityEnvironment { metadata: authority.url.clone(), ..IdentityEnvironment::default() };
    let without_path = Credentials::new(Surroundings { identity, ..surroundings() }).managed_identity(None).unwrap();
    assert!(asked(&mut authority).await.path.starts_with("/?api-version="));
    until(&without_path, |status| status.fetched == 1).await;
}

#[tokio::test]
async fn a_managed_identity_uses_the_platforms_endpoint_where_there_is_one() {
    let mut authority = Authority::plain(Answer::Token(3600)).await;
    let endpoint = format!("{}/msi/token", authority.url);
    let header = SecretString::from("proof-of-place");
    let identity =
        IdentityEnvironment { endpoint: Some(endpoint), header: Some(header), ..IdentityEnvironment::default() };
    let credentials = Credentials::new(Surroundings { identity, ..surroundings() });
    let source = credentials.managed_identity(Some("1111-2222")).unwrap();
    let seen = asked(&mut authority).await;
    assert_eq!(
        seen.path,
        "/msi/token?api-version=2019-08-01&resource=https%3A%2F%2Fcognitiveservices.azure.com%2F&client_id=1111-2222"
    );
    assert_eq!(seen.headers["x-identity-header"], "proof-of-place");
    assert!(!seen.headers.contains_key("metadata"));
    until(&source, |status| status.fetched == 1).await;
    assert!(!format!("{credentials:?} {source:?}").contains("proof-of-place"));
}

#[tokio::test]
async fn half_of_the_platforms_pair_and_bad_addresses_are_told_at_the_start() {
    let identity = IdentityEnvironment { endpoint: Some("http://localhost:1/".to_owned()), ..Default::default() };
    let credentials = Credentials::new(Surroundings { identity, ..surroundings() });
    let error = credentials.managed_identity(None).unwrap_err();
    assert!(matches!(error, CredentialError::HalfIdentity("IDENTITY_ENDPOINT", "IDENTITY_HEADER")), "{error}");
    let error = credentials.entra(&application("login.example")).unwrap_err();
    assert!(matches!(error, CredentialError::Url("authority")), "{error}");
}

#[tokio::test]
async fn a_machine_without_a_metadata_service_is_told() {
    // A port that was free a moment ago.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let metadata = format!("http://127.0.0.1:{port}/token");
    let identity = IdentityEnvironment { metadata, ..IdentityEnvironment::default() };
    let source = Credentials::new(Surroundings { identity, ..surroundings() }).managed_identity(None).unwrap();
    until(&source, |status| status.failed == 1).await;
    let told = source.current().unwrap_err().to_string();
    assert!(told.contains("the managed identity of this machine") && told.contains("cannot connect"), "{told}");
}
