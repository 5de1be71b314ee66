//! One exchange with a service that gives tokens.
//!
//! Three services, one form of answer (RFC 6749, section 5): Microsoft Entra ID (flow of client credentials), the
//! metadata service of an Azure virtual machine, and the local endpoint of App Service and Container Apps.
//!
//! Every exchange has its own connection, since the next one is most of an hour away; it is bounded in time and in
//! bytes, and follows no redirect. Of a success nothing is ever shown, not even where it cannot be read. Of a refusal
//! the service's own words are shown, shortened, on one line, and with the secret masked should it be echoed.

use super::super::pool::{ConnectError, ConnectionPool};
use super::super::tls::{Connectors, certificate_remedy, target_of};
use super::service_url::ServiceUrl;
use super::{CredentialError, EntraApplication, IdentityEnvironment};
use crate::clock::{Clock, unix_seconds};
use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, HOST, HeaderName, HeaderValue, RETRY_AFTER, USER_AGENT};
use http::{HeaderMap, Method, Request, StatusCode, Uri};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;
use std::time::Duration;
use zeroize::Zeroizing;

/// The longest answer that is read: a token with hundreds of group claims is a tenth of it.
const ANSWER_LIMIT_BYTES: usize = 64 * 1024;
/// The longest description that is shown.
const DESCRIPTION_LIMIT_CHARACTERS: usize = 300;
/// Characters that need no escape in a path or a form (RFC 3986, section 2.3).
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// Whom the tokens are for.
const RESOURCE: &str = "https://cognitiveservices.azure.com/";

/// A token as it was given.
pub(super) struct Given {
    /// `Bearer ...`, marked as sensitive.
    pub(super) header: HeaderValue,
    /// How long it is good for, from the moment its request was sent.
    pub(super) life: Duration,
}

/// Why no token was had. Holds no secret.
#[derive(Debug, thiserror::Error)]
pub(super) enum FetchError {
    #[error("cannot connect: {reason}{}", remedy.map(|text| format!(" ({text})")).unwrap_or_default())]
    Connect { reason: ConnectError, remedy: Option<&'static str> },
    #[error("no whole answer within {0:?}")]
    TimedOut(Duration),
    #[error("the exchange broke off: {0}")]
    Http(#[from] hyper::Error),
    #[error("the answer is longer than {ANSWER_LIMIT_BYTES} bytes")]
    TooLong,
    #[error("it answered {status}{description}")]
    Refused { status: StatusCode, description: String, retry_after: Option<Duration> },
    #[error(
        "its answer is not one of a token service (a JSON object with `access_token`, and `expires_in` or \
         `expires_on` in seconds)"
    )]
    Malformed,
    #[error("the token it gave has expired already by this machine's clock: check the clock")]
    Expired,
}

impl FetchError {
    /// The wait that the service asked for.
    pub(super) fn retry_after(&self) -> Option<Duration> {
        if let Self::Refused { retry_after, .. } = self { *retry_after } else { None }
    }
}

/// A service that gives tokens, and the request that asks it for ours.
pub(super) struct TokenService {
    name: String,
    connections: ConnectionPool,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
    secret: Option<SecretString>,
}

impl fmt::Debug for TokenService {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("TokenService").field("name", &self.name).finish_non_exhaustive()
    }
}

impl TokenService {
    /// Microsoft Entra ID: `POST {authority}/{tenant}/oauth2/v2.0/token`.
    pub(super) fn entra(
        application: &EntraApplication,
        connectors: &Connectors,
        clock: Clock,
    ) -> Result<Self, CredentialError> {
        let EntraApplication { authority, tenant_id, client_id, client_secret } = application;
        let url = ServiceUrl::parse("authority", authority)?;
        let name = format!("Microsoft Entra ID at {} for application {client_id}", url.authority());
        let path = format!("{}/{}/oauth2/v2.0/token", url.path, escaped(tenant_id));
        let secret = Zeroizing::new(escaped(client_secret.expose_secret()));
        let scope = format!("{}.default", resource_of(&url.host));
        let form = Zeroizing::new(format!(
            "grant_type=client_credentials&client_id={}&client_secret={}&scope={}",
            escaped(client_id),
            *secret,
            escaped(&scope)
        ));
        let mut service = Self::new(name, &url, path, connectors, clock)?;
        service.method = Method::POST;
        let form_type = HeaderValue::from_static("application/x-www-form-urlencoded");
        service.headers.insert(CONTENT_TYPE, form_type);
        service.body = Bytes::from_owner(Zeroizing::new(form.as_bytes().to_vec()));
        service.secret = Some(client_secret.clone());
        Ok(service)
    }

    /// The managed identity of this machine: the platform's own endpoint where the environment names one, else the
    /// metadata service of a virtual machine.
    pub(super) fn managed_identity(
        client_id: Option<&str>,
        environment: &IdentityEnvironment,
        connectors: &Connectors,
        clock: Clock,
    ) -> Result<Self, CredentialError> {
        let (url, version, proof) = match (&environment.endpoint, &environment.header) {
            (Some(endpoint), Some(header)) => {
                let proof = (HeaderName::from_static("x-identity-header"), super::header_value("", header)?);
                (ServiceUrl::parse("IDENTITY_ENDPOINT", endpoint)?, "2019-08-01", proof)
            }
            (None, None) => {
                let proof = (HeaderName::from_static("metadata"), HeaderValue::from_static("true"));
                (ServiceUrl::parse("metadata service", &environment.metadata)?, "2018-02-01", proof)
            }
            (Some(_), None) => return Err(CredentialError::HalfIdentity("IDENTITY_ENDPOINT", "IDENTITY_HEADER")),
            (None, Some(_)) => return Err(CredentialError::HalfIdentity("IDENTITY_HEADER", "IDENTITY_ENDPOINT")),
        };
        let whose = client_id.map_or_else(|| "of this machine".to_owned(), |id| format!("with client id {id}"));
        let name = format!("the managed identity {whose} at {}", url.authority());
        let mut path = format!("{}?api-version={version}&resource={}", url.path, escaped(RESOURCE));
        if let Some(id) = client_id {
            path = format!("{path}&client_id={}", escaped(id));
        }
        let mut service = Self::new(name, &url, path, connectors, clock)?;
        service.headers.insert(proof.0, proof.1);
        service.secret.clone_from(&environment.header);
        Ok(service)
    }

    fn new(
        name: String,
        url: &ServiceUrl,
        path: String,
        connectors: &Connectors,
        clock: Clock,
    ) -> Result<Self, CredentialError> {
        // A url without a path leaves a query alone.
        let path = if path.starts_with('/') { path } else { format!("/{path}") };
        let uri = Uri::try_from(path).map_err(|_| CredentialError::Url(url.name))?;
        let target = target_of(url.encrypted, &url.host, url.port, None, connectors)?;
        let host = HeaderValue::try_from(url.authority()).expect("a parsed authority is header text");
        let mut headers = HeaderMap::new();
        headers.insert(HOST, host);
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        headers.insert(USER_AGENT, HeaderValue::from_static(concat!("seawall/", env!("CARGO_PKG_VERSION"))));
        let connections = ConnectionPool::new(target, clock, 1);
        Ok(Self { name, connections, method: Method::GET, uri, headers, body: Bytes::new(), secret: None })
    }

    /// For logs: which service, for whom.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Asks once. Everything together takes at most `limit`.
    pub(super) async fn fetch(&self, limit: Duration) -> Result<Given, FetchError> {
        tokio::time::timeout(limit, self.exchange(limit)).await.unwrap_or(Err(FetchError::TimedOut(limit)))
    }

    async fn exchange(&self, limit: Duration) -> Result<Given, FetchError> {
        let mut connection = self.connections.get(true, limit).await.map_err(|reason| {
            let remedy = if let ConnectError::Io(error) = &reason { certificate_remedy(error) } else { None };
            FetchError::Connect { reason, remedy }
        })?;
        let mut request = Request::new(Full::new(self.body.clone()));
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = self.uri.clone();
        *request.headers_mut() = self.headers.clone();
        let answer = connection.sender().send_request(request).await?;
        let (status, retry_after) = (answer.status(), stated_wait(answer.headers()));
        let body = collect(answer.into_body()).await?;
        if status == StatusCode::OK {
            return read_token(&body, unix_seconds());
        }
        let description = described(&body, self.secret.as_ref());
        Err(FetchError::Refused { status, description, retry_after })
    }
}

/// The resource's address in the cloud that an authority belongs to: national clouds have their own.
fn resource_of(authority_host: &str) -> &'static str {
    match authority_host {
        "login.microsoftonline.us" => "https://cognitiveservices.azure.us/",
        "login.chinacloudapi.cn" | "login.partner.microsoftonline.cn" => "https://cognitiveservices.azure.cn/",
        _ => RESOURCE,
    }
}

fn escaped(text: &str) -> String {
    utf8_percent_encode(text, ESCAPED).to_string()
}

fn stated_wait(headers: &HeaderMap) -> Option<Duration> {
    headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok().map(Duration::from_secs)
}

/// The whole body, in memory that is wiped. Room for the longest is taken at once: growing would leave copies behind.
async fn collect(mut body: Incoming) -> Result<Zeroizing<Vec<u8>>, FetchError> {
    let mut bytes = Zeroizing::new(Vec::with_capacity(ANSWER_LIMIT_BYTES));
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame?.into_data() else { continue };
        if bytes.len() + data.len() > ANSWER_LIMIT_BYTES {
            return Err(FetchError::TooLong);
        }
        bytes.extend_from_slice(&data);
    }
    Ok(bytes)
}

/// The fields of a success that matter; numbers come as numbers or as text.
#[derive(Deserialize)]
struct TokenAnswer<'a> {
    #[serde(borrow)]
    access_token: Cow<'a, str>,
    #[serde(borrow, default)]
    expires_in: Option<&'a RawValue>,
    #[serde(borrow, default)]
    expires_on: Option<&'a RawValue>,
}

/// The token of a success. Of `expires_in` and `expires_on` the earlier counts: a metadata service answers from its
/// cache, where the first may be the token's life when it was issued.
fn read_token(body: &[u8], unix_now: u64) -> Result<Given, FetchError> {
    let answer: TokenAnswer<'_> = serde_json::from_slice(body).map_err(|_| FetchError::Malformed)?;
    let relative = answer.expires_in.map(seconds).transpose()?;
    let absolute = answer.expires_on.map(seconds).transpose()?.map(|at| at.saturating_sub(unix_now));
    let life = match (relative, absolute) {
        (Some(relative), Some(absolute)) => relative.min(absolute),
        (one, other) => one.or(other).ok_or(FetchError::Malformed)?,
    };
    if life == 0 {
        return Err(FetchError::Expired);
    }
    if answer.access_token.is_empty() {
        return Err(FetchError::Malformed);
    }
    let header = super::sensitive("Bearer ", &answer.access_token).ok_or(FetchError::Malformed)?;
    Ok(Given { header, life: Duration::from_secs(life) })
}

fn seconds(value: &RawValue) -> Result<u64, FetchError> {
    value.get().trim_matches('"').parse().map_err(|_| FetchError::Malformed)
}

/// The fields of a refusal: RFC 6749's, or the platform's `message`.
#[derive(Deserialize)]
struct Refusal {
    #[serde(default)]
    error: Option<String>,
    #[serde(default, alias = "message")]
    error_description: Option<String>,
}

/// What a refusal says, to be put behind its status: empty or with a colon in front.
fn described(body: &[u8], secret: Option<&SecretString>) -> String {
    let Ok(refusal) = serde_json::from_slice::<Refusal>(body) else { return String::new() };
    let parts: Vec<String> = [refusal.error, refusal.error_description].into_iter().flatten().collect();
    let mut text = parts.join(": ");
    if let Some(secret) = secret.map(SecretString::expose_secret).filter(|secret| !secret.is_empty()) {
        text = text.replace(secret, "***").replace(&escaped(secret), "***");
    }
    // The first line is the reason; what follows are trace and correlation ids.
    let line: String = text.lines().next().unwrap_or_default().chars().filter(|c| !c.is_control()).collect();
    if line.is_empty() {
        return String::new();
    }
    let shown: String = line.chars().take(DESCRIPTION_LIMIT_CHARACTERS).collect();
    format!(": {shown}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_800_000_000;

    fn life(body: &str) -> Result<u64, FetchError> {
        read_token(body.as_bytes(), NOW).map(|given| given.life.as_secs())
    }

    #[test]
    fn a_life_is_read_from_numbers_and_texts_and_the_earlier_end_counts() {
        assert_eq!(life(r#"{"access_token":"t","expires_in":3599,"token_type":"Bearer"}"#).unwrap(), 3599);
        assert_eq!(life(r#"{"access_token":"t","expires_in":"3599"}"#).unwrap(), 3599);
        assert_eq!(life(r#"{"access_token":"t","expires_on":"1800000060"}"#).unwrap(), 60);
        assert_eq!(life(r#"{"access_token":"t","expires_in":"86399","expires_on":"1800000060"}"#).unwrap(), 60);
        assert_eq!(life(r#"{"access_token":"t","expires_in":30,"expires_on":1800000060}"#).unwrap(), 30);
    }

    #[test]
    fn what_is_no_token_is_told_without_its_content() {
        for body in [
            "<html>secret-token</html>",
            r#"["secret-token"]"#,
            r#"{"access_token":"secret-token"}"#,
            r#"{"access_token":"","expires_in":1}"#,
            r#"{"access_token":"secret-token","expires_in":"soon"}"#,
            r#"{"access_token":"secret-token","expires_in":-1}"#,
            r#"{"access_token":"secret-token\n","expires_in":9}"#,
            r#"{"access_token":{"secret-token":1},"expires_in":9}"#,
        ] {
            let error = life(body).unwrap_err();
            assert!(matches!(error, FetchError::Malformed), "{body}");
            assert!(!format!("{error} {error:?}").contains("secret-token"));
        }
        for body in [r#"{"access_token":"t","expires_in":0}"#, r#"{"access_token":"t","expires_on":1799999999}"#] {
            assert!(matches!(life(body).unwrap_err(), FetchError::Expired), "{body}");
        }
    }

    #[test]
    fn a_refusal_is_shown_on_one_line_without_the_secret() {
        let secret = SecretString::from("s3 cret");
        let shown = |body: &str| described(body.as_bytes(), Some(&secret));
        let body =
            r#"{"error":"invalid_client","error_description":"AADSTS7000215: bad 's3 cret', s3%20cret.\r\nTrace: 1"}"#;
        assert_eq!(shown(body), ": invalid_client: AADSTS7000215: bad '***', ***.");
        assert_eq!(shown(r#"{"statusCode":400,"message":"No such identity"}"#), ": No such identity");
        assert_eq!(shown("<html>"), "");
        assert_eq!(shown("{}"), "");
        let long = format!(r#"{{"error":"{}"}}"#, "x".repeat(1_000));
        assert_eq!(shown(&long).len(), 2 + DESCRIPTION_LIMIT_CHARACTERS);
    }

    #[test]
    fn national_clouds_have_their_own_resource() {
        assert_eq!(resource_of("login.microsoftonline.com"), RESOURCE);
        assert_eq!(resource_of("login.microsoftonline.us"), "https://cognitiveservices.azure.us/");
        assert_eq!(resource_of("login.chinacloudapi.cn"), "https://cognitiveservices.azure.cn/");
    }
}
