//! The address of an upstream, in parts.

use http::Uri;
use std::fmt;

/// How an upstream is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// Plain text.
    Http,
    /// TLS.
    Https,
}

impl Scheme {
    /// `http` or `https`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }

    const fn default_port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }
}

/// Where an upstream is: scheme, host, port and the path in front of every path that is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    pub(crate) scheme: Scheme,
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) base_path: String,
}

impl Endpoint {
    /// Plain text or TLS.
    pub const fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// The host: a name in lower case or an address; an IPv6 address without its brackets.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port, the scheme's own where the file names none.
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// The path in front of every path that is asked for: empty or with a leading and without a trailing slash.
    ///
    /// What follows it depends on the dialect: OpenAI `/chat/completions` (a url without a path got `/v1` here), Azure
    /// `/openai/...`, Anthropic `/v1/messages`.
    pub fn base_path(&self) -> &str {
        &self.base_path
    }

    /// The value of a `Host` header: the port only where it is not the scheme's own.
    pub fn authority(&self) -> String {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        if self.port == self.scheme.default_port() { host } else { format!("{host}:{}", self.port) }
    }

    /// Reads a url.
    pub(crate) fn parse(text: &str) -> Result<Self, UrlError> {
        let Some((scheme, rest)) = text.split_once("://") else { return Err(UrlError::NoScheme) };
        let scheme = match scheme.to_ascii_lowercase().as_str() {
            "http" => Scheme::Http,
            "https" => Scheme::Https,
            _ => return Err(UrlError::OtherScheme),
        };
        if rest.split('/').next().is_some_and(|authority| authority.contains('@')) {
            return Err(UrlError::Credentials);
        }
        if rest.contains('?') || rest.contains('#') {
            return Err(UrlError::Query);
        }
        let uri: Uri = text.parse().map_err(|_| UrlError::Malformed)?;
        let authority = uri.authority().ok_or(UrlError::Malformed)?;
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase();
        if host.is_empty() || host.starts_with('.') || host.contains("..") {
            return Err(UrlError::Malformed);
        }
        let port = match authority.as_str().strip_prefix(authority.host()).unwrap_or_default() {
            "" => scheme.default_port(),
            port => port.trim_start_matches(':').parse().ok().filter(|port| *port > 0).ok_or(UrlError::Port)?,
        };
        Ok(Self { scheme, host, port, base_path: uri.path().trim_end_matches('/').to_owned() })
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}://{}{}", self.scheme.name(), self.authority(), self.base_path)
    }
}

/// What is wrong with a url. No message repeats the url: it may hold a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum UrlError {
    #[error("the url does not begin with `http://` or `https://`")]
    NoScheme,
    #[error("the url's scheme is neither `http` nor `https`")]
    OtherScheme,
    #[error("the url holds a user name or a password")]
    Credentials,
    #[error("the url holds a query or a fragment")]
    Query,
    #[error("the url's port is not a number from 1 to 65535")]
    Port,
    #[error("the url is malformed")]
    Malformed,
}

impl UrlError {
    /// What to do about it.
    pub(crate) const fn remedy(self) -> &'static str {
        match self {
            Self::NoScheme | Self::OtherScheme => "write the whole address, for example `https://api.openai.com/v1`",
            Self::Credentials => "remove it and name the secret in `credential = { env = \"NAME\" }`",
            Self::Query => "remove everything from the `?` or `#` on; an API version goes into `api_version`",
            Self::Port => "write a port such as `:8000`, or none for the scheme's own",
            Self::Malformed => "write it as `scheme://host:port/path`, for example `http://10.0.0.5:8000/v1`",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_told_apart() {
        for (url, shown, host, port, path) in [
            ("https://api.openai.com/v1/", "https://api.openai.com/v1", "api.openai.com", 443, "/v1"),
            ("http://10.0.0.5:8000", "http://10.0.0.5:8000", "10.0.0.5", 8000, ""),
            ("HTTP://Host:80/", "http://host", "host", 80, ""),
            ("http://[::1]:9100/a/b", "http://[::1]:9100/a/b", "::1", 9100, "/a/b"),
        ] {
            let endpoint = Endpoint::parse(url).expect("a good url");
            assert_eq!(endpoint.to_string(), shown);
            assert_eq!((endpoint.host(), endpoint.port(), endpoint.base_path()), (host, port, path));
        }
    }

    #[test]
    fn mistakes_are_told_apart() {
        for (url, error) in [
            ("api.openai.com", UrlError::NoScheme),
            ("ftp://host/", UrlError::OtherScheme),
            ("https://me:secret@host/", UrlError::Credentials),
            ("https://host/?api-version=1", UrlError::Query),
            ("https://host:99999/", UrlError::Port),
            ("https://host:0/", UrlError::Port),
            ("https://host:/", UrlError::Port),
            ("https:///path", UrlError::Malformed),
            ("https://ho st/", UrlError::Malformed),
            ("https://", UrlError::Malformed),
        ] {
            assert_eq!(Endpoint::parse(url), Err(error), "{url}");
        }
    }
}
