//! The address of a token service, in parts.

use super::CredentialError;
use http::Uri;

/// Scheme, host, port and path of a token service.
pub(super) struct ServiceUrl {
    /// The setting that holds it.
    pub(super) name: &'static str,
    /// Whether it is `https`.
    pub(super) encrypted: bool,
    /// A name or an address; an IPv6 address without its brackets.
    pub(super) host: String,
    /// The port, the scheme's own where the url names none.
    pub(super) port: u16,
    /// Empty or with a leading and without a trailing slash.
    pub(super) path: String,
}

impl ServiceUrl {
    /// Reads `text`, which the setting `name` holds. The error does not repeat the text.
    pub(super) fn parse(name: &'static str, text: &str) -> Result<Self, CredentialError> {
        let wrong = || CredentialError::Url(name);
        let uri: Uri = text.parse().map_err(|_| wrong())?;
        let encrypted = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            _ => return Err(wrong()),
        };
        let authority = uri.authority().filter(|part| !part.as_str().contains('@')).ok_or_else(wrong)?;
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase();
        let default_port = if encrypted { 443 } else { 80 };
        let bare = authority.as_str().len() == authority.host().len();
        let port = if bare { Some(default_port) } else { authority.port_u16() };
        if host.is_empty() || uri.query().is_some() {
            return Err(wrong());
        }
        let port = port.filter(|port| *port > 0).ok_or_else(wrong)?;
        Ok(Self { name, encrypted, host, port, path: uri.path().trim_end_matches('/').to_owned() })
    }

    /// The value of a `Host` header: the port only where it is not the scheme's own.
    pub(super) fn authority(&self) -> String {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        let default_port = if self.encrypted { 443 } else { 80 };
        if self.port == default_port { host } else { format!("{host}:{}", self.port) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_told_apart() {
        for (text, encrypted, authority, port, path) in [
            ("https://login.microsoftonline.com", true, "login.microsoftonline.com", 443, ""),
            ("http://LOCALHOST:42356/msi/token", false, "localhost:42356", 42356, "/msi/token"),
            ("http://[::1]:80/a/", false, "[::1]", 80, "/a"),
        ] {
            let url = ServiceUrl::parse("IDENTITY_ENDPOINT", text).expect("a good url");
            assert_eq!((url.encrypted, url.port, url.path.as_str()), (encrypted, port, path));
            assert_eq!(url.authority(), authority);
        }
    }

    #[test]
    fn mistakes_name_the_setting_and_not_the_text() {
        for text in [
            "",
            "/path",
            "localhost:1",
            "ftp://hidden/",
            "http://me:hidden@host/",
            "http://hidden:99999/",
            "http://h:/",
            "http://h/?hidden",
        ] {
            let told = ServiceUrl::parse("IDENTITY_ENDPOINT", text).err().expect(text).to_string();
            assert!(told.contains("IDENTITY_ENDPOINT") && !told.contains("hidden"), "{told}");
        }
    }
}
