//! What goes into the credential header of an upstream call.
//!
//! | credential | OpenAI | Azure | Anthropic |
//! | --- | --- | --- | --- |
//! | key | `authorization: Bearer K` | `api-key: K` | `x-api-key: K` |
//! | Microsoft Entra ID, managed identity | `authorization: Bearer T` | the same | the same |
//!
//! A key is fixed. A token is kept fresh by a background task (see [`Timing`] for its times), so that
//! [`CredentialSource::current`] never waits: before the first token and after the last one's end it is an error, which
//! the caller makes a failed attempt. Deployments with the same identity share one task and one token.
//!
//! Not built: workload identity federation (a Kubernetes service account's token in exchange for one of Entra ID),
//! Azure Arc, Service Fabric, client certificates, and the managed identity of a national cloud (Entra client
//! credentials follow their authority's cloud).
//!
//! Secrets are wiped from memory where we own it: configured secrets, request bodies, answers and header values.
//! Copies in the socket and TLS buffers are out of reach. Header values are marked as sensitive, `Debug` shows none.

mod fetch;
mod service_url;
mod token;

pub use token::{Timing, TokenStatus};

use self::fetch::TokenService;
use self::token::TokenCache;
use super::tls::{Connectors, TlsError};
use crate::clock::Clock;
use bytes::Bytes;
use http::header::{AUTHORIZATION, HeaderName, HeaderValue};
use seawall_config::{Credential, Dialect, EntraCredential, UpstreamConfig};
use seawall_core::random::Random;
use secrecy::{ExposeSecret as _, SecretString};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;
use zeroize::Zeroizing;

/// Where an Azure virtual machine's metadata service gives tokens.
const METADATA_URL: &str = "http://169.254.169.254/metadata/identity/oauth2/token";

/// Why a credential cannot be used. Nothing of the secret is in it.
#[derive(Debug, thiserror::Error)]
pub enum CredentialError {
    /// It would break the header.
    #[error(
        "the credential holds a character that cannot be in a header (white space, a line break or a letter outside \
         of ASCII): store the key alone"
    )]
    NotHeaderText,
    /// A token service's address is none.
    #[error(
        "{0} is not an address such as `https://host` or `http://host:port/path` (without user, password or query)"
    )]
    Url(&'static str),
    /// Half of the pair by which App Service and Container Apps tell their token endpoint.
    #[error(
        "{0} is set in the environment and {1} is not: App Service and Container Apps set both, a virtual machine \
         neither; Azure Arc and Service Fabric are not supported"
    )]
    HalfIdentity(&'static str, &'static str),
    /// TLS towards the token service.
    #[error(transparent)]
    Tls(#[from] TlsError),
}

/// There is no valid token now. The attempt fails; a later one may have one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoToken {
    /// Who gives it, and for whom.
    pub service: String,
    /// Whether there was one, which has ended since.
    pub expired: bool,
    /// Why the last try to get one failed; `None` while the first is under way.
    pub failure: Option<Arc<str>>,
}

impl std::error::Error for NoToken {}

impl std::fmt::Display for NoToken {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let state = if self.expired { "the last token has expired" } else { "no token yet" };
        write!(formatter, "{state} from {}", self.service)?;
        self.failure.as_ref().map_or(Ok(()), |failure| write!(formatter, ": {failure}"))
    }
}

/// What the environment says about managed identity. The program reads it; the data plane reads no environment.
#[derive(Clone, Debug)]
pub struct IdentityEnvironment {
    /// `IDENTITY_ENDPOINT`: set on App Service and Container Apps.
    pub endpoint: Option<String>,
    /// `IDENTITY_HEADER`: a secret that proves that we run there.
    pub header: Option<SecretString>,
    /// The metadata service that is asked where neither is set.
    pub metadata: String,
}

impl Default for IdentityEnvironment {
    /// A virtual machine, with its metadata service at its well-known address.
    fn default() -> Self {
        Self { endpoint: None, header: None, metadata: METADATA_URL.to_owned() }
    }
}

/// An application of Microsoft Entra ID, with the address of the authority as text.
#[derive(Clone, Debug)]
pub struct EntraApplication {
    /// Who gives the tokens, for example `https://login.microsoftonline.com`.
    pub authority: String,
    /// The directory.
    pub tenant_id: String,
    /// The application.
    pub client_id: String,
    /// Its secret.
    pub client_secret: SecretString,
}

impl From<&EntraCredential> for EntraApplication {
    fn from(credential: &EntraCredential) -> Self {
        Self {
            authority: credential.authority.to_string(),
            tenant_id: credential.tenant_id.clone(),
            client_id: credential.client_id.clone(),
            client_secret: credential.client_secret.clone(),
        }
    }
}

/// What credentials need of the process.
#[derive(Debug)]
pub struct Surroundings {
    /// The data plane's clock.
    pub clock: Clock,
    /// Trust towards token services: always its default roots, never a deployment's own CA.
    pub connectors: Arc<Connectors>,
    /// Where the refreshing tasks are counted.
    pub tasks: TaskTracker,
    /// Ends the refreshing tasks.
    pub stop: CancellationToken,
    /// The seed of the jitter; different in each process, so that replicas do not refresh together.
    pub seed: u64,
    /// What the environment says about managed identity.
    pub identity: IdentityEnvironment,
    /// The times of token caches.
    pub timing: Timing,
}

/// Makes the credential sources of a process and shares what is identical.
#[derive(Debug)]
pub struct Credentials {
    surroundings: Surroundings,
    shared: Mutex<Vec<(Identity, Weak<SharedToken>)>>,
}

/// What makes two credentials identical. The secret counts as its hash.
#[derive(Debug, PartialEq, Eq)]
enum Identity {
    Entra { authority: String, tenant_id: String, client_id: String, secret: blake3::Hash },
    Managed { client_id: Option<String> },
}

/// A token and, for as long as a source holds it, the task that keeps it fresh.
#[derive(Debug)]
struct SharedToken {
    cache: Arc<TokenCache>,
    _stop: DropGuard,
}

/// The credential of one upstream.
#[derive(Debug)]
pub struct CredentialSource(Kind);

#[derive(Debug)]
enum Kind {
    None,
    Key(HeaderName, HeaderValue),
    Token(Arc<SharedToken>),
}

impl Credentials {
    /// None made yet.
    pub fn new(surroundings: Surroundings) -> Self {
        Self { surroundings, shared: Mutex::default() }
    }

    /// The source for `upstream`. Must be called inside the runtime: a token's task starts at once.
    pub fn source(&self, upstream: &UpstreamConfig) -> Result<Arc<CredentialSource>, CredentialError> {
        match &upstream.credential {
            Credential::None => Ok(Arc::new(CredentialSource(Kind::None))),
            Credential::Key(key) => self::key(upstream.dialect, key),
            Credential::Entra(credential) => self.entra(&credential.into()),
            Credential::ManagedIdentity { client_id } => self.managed_identity(client_id.as_deref()),
        }
    }

    /// The source of an application's tokens.
    pub fn entra(&self, application: &EntraApplication) -> Result<Arc<CredentialSource>, CredentialError> {
        let identity = Identity::Entra {
            authority: application.authority.clone(),
            tenant_id: application.tenant_id.clone(),
            client_id: application.client_id.clone(),
            secret: blake3::hash(application.client_secret.expose_secret().as_bytes()),
        };
        let Surroundings { connectors, clock, .. } = &self.surroundings;
        self.token(identity, || TokenService::entra(application, connectors, *clock))
    }

    /// The source of a managed identity's tokens.
    pub fn managed_identity(&self, client_id: Option<&str>) -> Result<Arc<CredentialSource>, CredentialError> {
        let Surroundings { connectors, clock, identity: environment, .. } = &self.surroundings;
        let identity = Identity::Managed { client_id: client_id.map(str::to_owned) };
        self.token(identity, || TokenService::managed_identity(client_id, environment, connectors, *clock))
    }

    fn token(
        &self,
        identity: Identity,
        service: impl FnOnce() -> Result<TokenService, CredentialError>,
    ) -> Result<Arc<CredentialSource>, CredentialError> {
        let mut all = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|(_, shared)| shared.strong_count() > 0);
        let known = all.iter().find(|(known, _)| *known == identity).and_then(|(_, shared)| shared.upgrade());
        let shared = if let Some(shared) = known {
            shared
        } else {
            let shared = Arc::new(self.start(service()?));
            all.push((identity, Arc::downgrade(&shared)));
            shared
        };
        Ok(Arc::new(CredentialSource(Kind::Token(shared))))
    }

    fn start(&self, service: TokenService) -> SharedToken {
        let Surroundings { clock, tasks, stop, seed, timing, .. } = &self.surroundings;
        let stop = stop.child_token();
        // Tokens of one process are spread too.
        let name = blake3::hash(service.name().as_bytes());
        let own = u64::from_le_bytes(name.as_bytes()[..8].try_into().expect("eight bytes"));
        let cache = Arc::new(TokenCache::new(service, *clock, *timing));
        tasks.spawn(Arc::clone(&cache).keep_fresh(Random::new(seed ^ own), stop.clone()));
        SharedToken { cache, _stop: stop.drop_guard() }
    }
}

impl CredentialSource {
    /// The header to send now; `None`: none. Never waits.
    pub fn current(&self) -> Result<Option<(HeaderName, HeaderValue)>, NoToken> {
        match &self.0 {
            Kind::None => Ok(None),
            Kind::Key(name, value) => Ok(Some((name.clone(), value.clone()))),
            Kind::Token(shared) => shared.cache.current().map(|value| Some((AUTHORIZATION, value))),
        }
    }

    /// Tells that an upstream answered 401: a token is asked for anew, at most once every 30 s; a key stays as it is.
    pub fn credential_refused(&self) {
        if let Kind::Token(shared) = &self.0 {
            shared.cache.refused();
        }
    }

    /// How the fetching of tokens goes; `None` for a credential that is none.
    pub fn status(&self) -> Option<watch::Receiver<TokenStatus>> {
        if let Kind::Token(shared) = &self.0 { Some(shared.cache.status()) } else { None }
    }
}

/// The source of a key in the dialect's own header.
fn key(dialect: Dialect, key: &SecretString) -> Result<Arc<CredentialSource>, CredentialError> {
    let (name, scheme) = match dialect {
        Dialect::OpenAi => (AUTHORIZATION, "Bearer "),
        Dialect::Azure => (HeaderName::from_static("api-key"), ""),
        Dialect::Anthropic => (HeaderName::from_static("x-api-key"), ""),
    };
    Ok(Arc::new(CredentialSource(Kind::Key(name, header_value(scheme, key)?))))
}

fn header_value(scheme: &str, secret: &SecretString) -> Result<HeaderValue, CredentialError> {
    sensitive(scheme, secret.expose_secret()).ok_or(CredentialError::NotHeaderText)
}

/// `scheme` and `secret` as a sensitive header value, in memory that is wiped after its last copy is dropped; `None`
/// unless the secret is visible ASCII throughout.
fn sensitive(scheme: &str, secret: &str) -> Option<HeaderValue> {
    if secret.is_empty() || !secret.bytes().all(|byte| byte.is_ascii_graphic()) {
        return None;
    }
    let mut text = Zeroizing::new(Vec::with_capacity(scheme.len() + secret.len()));
    text.extend_from_slice(scheme.as_bytes());
    text.extend_from_slice(secret.as_bytes());
    let mut value = HeaderValue::from_maybe_shared(Bytes::from_owner(text)).ok()?;
    value.set_sensitive(true);
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_goes_into_the_dialects_own_header() {
        let secret = SecretString::from("the-key");
        for (dialect, name, text) in [
            (Dialect::OpenAi, "authorization", "Bearer the-key"),
            (Dialect::Azure, "api-key", "the-key"),
            (Dialect::Anthropic, "x-api-key", "the-key"),
        ] {
            let source = key(dialect, &secret).unwrap();
            let (header, value) = source.current().unwrap().unwrap();
            assert_eq!((header.as_str(), value.to_str().unwrap()), (name, text));
            assert!(value.is_sensitive());
            assert!(!format!("{source:?} {value:?}").contains("the-key"));
            source.credential_refused();
            assert!(source.current().unwrap().is_some() && source.status().is_none());
        }
    }

    #[test]
    fn a_key_that_would_break_the_header_is_refused_without_showing_it() {
        for text in ["hunter\ntwo", "hunter two", "hunt\u{e9}r", ""] {
            let told = key(Dialect::OpenAi, &SecretString::from(text)).unwrap_err();
            assert!(matches!(told, CredentialError::NotHeaderText));
            assert!(text.is_empty() || !format!("{told} {told:?}").contains(text));
        }
    }

    #[test]
    fn no_credential_is_no_header() {
        assert_eq!(CredentialSource(Kind::None).current(), Ok(None));
    }
}
