//! TLS towards upstreams: whom to trust, and by which name an upstream must prove itself.
//!
//! Trust is the operating system's roots, or *only* the certificates that a deployment names: a private CA is named to
//! shut the others out, so it never adds to the system's. The cryptography provider is given explicitly, so nothing
//! depends on a default of the process. ALPN offers HTTP/1.1 alone, which is what the connection pool speaks.
//!
//! A client configuration holds every root (about 150, parsed) and the session cache, so each distinct trust is built
//! once and shared: a hundred deployments on the system's roots load them once and resume each other's sessions.
//! There is no way to switch verification off.

use super::pool::{Target, TlsConnectorDebug};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, pem};
use rustls::{ClientConfig, RootCertStore};
use seawall_config::{Endpoint, Scheme};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use tokio_rustls::TlsConnector;

/// Why TLS towards an upstream cannot be set up. Each message says what to do.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The system has no root certificates, or none that can be read.
    #[error(
        "no root certificates were found on this system{0}: install its package of them (`ca-certificates` on most \
         Linux distributions), set SSL_CERT_FILE to a PEM file of roots, or name the deployment's own CA"
    )]
    NoSystemRoots(String),
    /// The PEM text holds no certificate.
    #[error("the CA file holds no certificate: it must have a part that begins with `-----BEGIN CERTIFICATE-----`")]
    NoCertificate,
    /// The PEM text is broken.
    #[error("the CA file is not valid PEM ({0}): export the CA's certificate again in PEM form")]
    Pem(pem::Error),
    /// A certificate in it cannot serve as a root.
    #[error("certificate {number} of the CA file cannot be used as a root ({reason}): name the CA's own certificate")]
    Certificate {
        /// Its place in the file, from 1.
        number: usize,
        /// What is wrong with it.
        reason: rustls::Error,
    },
    /// The host is neither a DNS name nor an address.
    #[error("`{0}` can not be the name in a certificate: use a DNS name in ASCII (`xn--...`) or an IP address")]
    Name(String),
    /// The TLS library refuses its own defaults.
    #[error("TLS can not be set up: {0}")]
    Setup(rustls::Error),
}

/// The connectors made so far, one for each distinct trust.
///
/// The system's roots are read when the first upstream needs them: a process that uses plain text or private CAs only
/// runs on a system without any. A failure is not remembered; the next call reads again.
#[derive(Default)]
pub struct Connectors {
    /// What stands in for the system's roots.
    default_pem: Option<String>,
    made: Mutex<BTreeMap<Option<String>, TlsConnector>>,
}

impl fmt::Debug for Connectors {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let made = self.made.lock().unwrap_or_else(PoisonError::into_inner).len();
        formatter.debug_struct("Connectors").field("made", &made).finish_non_exhaustive()
    }
}

impl Connectors {
    /// No connector yet; trust is the system's roots.
    pub fn new() -> Self {
        Self::default()
    }

    /// No connector yet; trust is these certificates (PEM) wherever it would be the system's roots.
    pub fn with_default_roots(pem: impl Into<String>) -> Self {
        Self { default_pem: Some(pem.into()), made: Mutex::default() }
    }

    /// The connector that trusts the certificates in `ca_pem` alone; `None`: the system's roots.
    pub fn connector(&self, ca_pem: Option<&str>) -> Result<TlsConnector, TlsError> {
        let pem = ca_pem.or(self.default_pem.as_deref()).map(str::to_owned);
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(connector) = made.get(&pem) {
            return Ok(connector.clone());
        }
        let roots = match &pem {
            Some(pem) => private_roots(pem)?,
            None => system_roots()?,
        };
        let connector = TlsConnector::from(Arc::new(client_config(roots)?));
        made.insert(pem, connector.clone());
        Ok(connector)
    }
}

/// The name that the certificate of `host` must carry. An IPv6 address comes without brackets.
pub fn server_name(host: &str) -> Result<ServerName<'static>, TlsError> {
    ServerName::try_from(host.to_owned()).map_err(|_| TlsError::Name(host.to_owned()))
}

/// Where and how to connect to `endpoint`: plain text needs neither roots nor a name.
pub fn target(endpoint: &Endpoint, ca_pem: Option<&str>, connectors: &Connectors) -> Result<Target, TlsError> {
    let encrypted = endpoint.scheme() == Scheme::Https;
    target_of(encrypted, endpoint.host(), endpoint.port(), encrypted.then_some(ca_pem).flatten(), connectors)
}

/// [`target`], from its parts.
pub(super) fn target_of(
    encrypted: bool,
    host: &str,
    port: u16,
    ca_pem: Option<&str>,
    connectors: &Connectors,
) -> Result<Target, TlsError> {
    let tls =
        if encrypted { Some((TlsConnectorDebug(connectors.connector(ca_pem)?), server_name(host)?)) } else { None };
    Ok(Target { host: host.to_owned(), port, tls })
}

/// What to do about a failed connection, where the reason is that the peer's certificate was not accepted.
pub fn certificate_remedy(error: &std::io::Error) -> Option<&'static str> {
    use rustls::CertificateError;
    let inner = error.get_ref()?.downcast_ref::<rustls::Error>()?;
    let rustls::Error::InvalidCertificate(reason) = inner else { return None };
    Some(match reason {
        // A CA that was made anew under its old name is found by that name, and then its signature does not fit.
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            "no trusted CA signed its certificate: add the CA to the system's roots (or SSL_CERT_FILE), or name it for \
             this upstream; behind a proxy that inspects TLS, that proxy's CA"
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "its certificate is for another name: check the host in the url"
        }
        CertificateError::Expired
        | CertificateError::ExpiredContext { .. }
        | CertificateError::NotValidYet
        | CertificateError::NotValidYetContext { .. } => {
            "its certificate is not valid now: renew it, or set this machine's clock"
        }
        _ => "its certificate was not accepted: have it reissued",
    })
}

fn client_config(roots: RootCertStore) -> Result<ClientConfig, TlsError> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let mut config = builder.map_err(TlsError::Setup)?.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

fn private_roots(pem: &str) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for (index, certificate) in CertificateDer::pem_slice_iter(pem.as_bytes()).enumerate() {
        let certificate = certificate.map_err(TlsError::Pem)?;
        roots.add(certificate).map_err(|reason| TlsError::Certificate { number: index + 1, reason })?;
    }
    if roots.is_empty() { Err(TlsError::NoCertificate) } else { Ok(roots) }
}

fn system_roots() -> Result<RootCertStore, TlsError> {
    let found = rustls_native_certs::load_native_certs();
    for error in &found.errors {
        tracing::warn!(%error, "some of the system's root certificates cannot be read; the others are used");
    }
    usable_roots(found.certs, found.errors.first().map(ToString::to_string))
}

/// Those of the system's certificates that can be roots: a store that has grown over the years holds some that can not.
fn usable_roots(
    certificates: Vec<CertificateDer<'static>>,
    failure: Option<String>,
) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    let (used, ignored) = roots.add_parsable_certificates(certificates);
    if used == 0 {
        return Err(TlsError::NoSystemRoots(failure.map(|reason| format!(" ({reason})")).unwrap_or_default()));
    }
    tracing::debug!(used, ignored, "the system's root certificates are loaded");
    Ok(roots)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ca_pem() -> String {
        let mut params = rcgen::CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        params.self_signed(&rcgen::KeyPair::generate().unwrap()).unwrap().pem()
    }

    fn shared(first: &TlsConnector, second: &TlsConnector) -> bool {
        Arc::ptr_eq(first.config(), second.config())
    }

    #[test]
    fn one_connector_for_each_distinct_ca() {
        let connectors = Connectors::new();
        let (one, other) = (ca_pem(), ca_pem());
        let first = connectors.connector(Some(&one)).unwrap();
        assert!(shared(&first, &connectors.connector(Some(&one)).unwrap()));
        assert!(!shared(&first, &connectors.connector(Some(&other)).unwrap()));
        assert_eq!(first.config().alpn_protocols, [b"http/1.1".to_vec()]);
    }

    #[test]
    fn default_roots_stand_in_for_the_systems() {
        let pem = ca_pem();
        let connectors = Connectors::with_default_roots(pem.clone());
        let default = connectors.connector(None).unwrap();
        assert!(shared(&default, &connectors.connector(Some(&pem)).unwrap()));
    }

    #[test]
    fn a_bad_ca_file_is_told_with_its_remedy() {
        let connectors = Connectors::new();
        let told = |pem: &str| connectors.connector(Some(pem)).err().unwrap().to_string();
        assert!(told("").contains("-----BEGIN CERTIFICATE-----"));
        assert!(told("-----BEGIN CERTIFICATE-----\n!!\n-----END CERTIFICATE-----\n").contains("not valid PEM"));
        let no_certificate = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        assert!(told(&format!("{}{no_certificate}", ca_pem())).contains("certificate 2 of the CA file"));
        assert_eq!(format!("{connectors:?}"), "Connectors { made: 0, .. }");
    }

    #[test]
    fn a_system_without_roots_is_told_what_to_install() {
        let told = usable_roots(Vec::new(), Some("no such file".to_owned())).unwrap_err().to_string();
        for part in ["(no such file)", "ca-certificates", "SSL_CERT_FILE"] {
            assert!(told.contains(part), "{told}");
        }
        let mixed =
            vec![CertificateDer::from(vec![0_u8; 8]), CertificateDer::from_pem_slice(ca_pem().as_bytes()).unwrap()];
        assert_eq!(usable_roots(mixed, None).unwrap().len(), 1);
    }

    #[test]
    fn names_and_addresses_are_told_from_other_text() {
        for host in ["api.openai.com", "10.0.0.5", "::1"] {
            assert!(server_name(host).is_ok(), "{host}");
        }
        for host in ["", "ho st", "münchen.example", "[::1]"] {
            assert!(server_name(host).unwrap_err().to_string().contains("DNS name"), "{host}");
        }
    }

    #[test]
    fn only_https_has_a_connector() {
        let connectors = Connectors::with_default_roots(ca_pem());
        let plain = target_of(false, "host", 80, None, &connectors).unwrap();
        assert!(plain.tls.is_none());
        let encrypted = target_of(true, "host", 443, None, &connectors).unwrap();
        assert_eq!(encrypted.tls.unwrap().1, server_name("host").unwrap());
    }
}
