//! The target: which address, and whether it may be loaded at all.

use super::error::LoadError;
use super::options::LoadOptions;
use http::Uri;
use http::uri::Scheme;
use std::net::SocketAddr;

/// A checked target.
#[derive(Clone, Debug)]
pub(super) struct Target {
    /// Addresses in the resolver's order.
    pub(super) addresses: Vec<SocketAddr>,
    /// Value of the `host` header.
    pub(super) host: String,
    /// Path and query of the endpoint.
    pub(super) path: String,
}

impl Target {
    /// Reads the URL, resolves the host once, and refuses what is not on this machine unless it is allowed.
    pub(super) async fn resolve(options: &LoadOptions) -> Result<Self, LoadError> {
        const EXAMPLE: &str = "write a plain http URL such as http://127.0.0.1:8080";
        let wrong = |problem: String| LoadError::invalid("target", problem, EXAMPLE);
        let text = &options.target;
        let uri: Uri = text.parse().map_err(|error| wrong(format!("`{text}` is no URL ({error})")))?;
        if uri.scheme() == Some(&Scheme::HTTPS) {
            return Err(LoadError::invalid(
                "target",
                format!("`{text}` is https, and the load generator speaks plain http only"),
                "send the load to a Seawall on this machine and let its upstream be the https one",
            ));
        }
        if uri.scheme() != Some(&Scheme::HTTP) {
            return Err(wrong(format!("`{text}` does not begin with http://")));
        }
        let authority = uri.authority().ok_or_else(|| wrong(format!("`{text}` names no host")))?;
        if authority.as_str().contains('@') {
            return Err(wrong("the URL holds a user name or password, which would be printed".to_owned()));
        }
        if uri.query().is_some() {
            return Err(wrong(format!("`{text}` has a query, but it is only the base of the endpoints")));
        }
        let name = authority.host().trim_start_matches('[').trim_end_matches(']');
        let port = authority.port_u16().unwrap_or(80);
        let host = format!("{}:{port}", authority.host());
        let addresses: Vec<_> = tokio::net::lookup_host((name, port))
            .await
            .map_err(|source| LoadError::Resolve { host: host.clone(), source })?
            .collect();
        let remote = addresses.iter().find(|address| !address.ip().to_canonical().is_loopback());
        if let Some(remote) = remote.filter(|_| !options.allow_remote) {
            return Err(LoadError::invalid(
                "target",
                format!("`{text}` is {}, which is not this machine", remote.ip()),
                "give --allow-remote if its owner agrees to be loaded",
            ));
        }
        let base = uri.path().trim_end_matches('/').trim_end_matches("/v1");
        Ok(Self { addresses, host: authority.as_str().to_owned(), path: format!("{base}{}", options.endpoint.path()) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn error(target: &str) -> String {
        Target::resolve(&LoadOptions::new(target)).await.expect_err("the target is refused").to_string()
    }

    #[tokio::test]
    async fn targets_are_refused_with_a_remedy() {
        for (target, words) in [
            (
                "http://192.0.2.1:8080",
                "`http://192.0.2.1:8080` is 192.0.2.1, which is not this machine; give --allow-remote",
            ),
            ("https://127.0.0.1", "speaks plain http only; send the load to a Seawall on this machine"),
            ("127.0.0.1:8080", "write a plain http URL such as"),
            ("http://user:pass@127.0.0.1", "user name or password"),
            ("http://127.0.0.1/?a=b", "has a query"),
            ("not a url", "is no URL"),
        ] {
            let message = error(target).await;
            assert!(message.starts_with("target: ") && message.contains(words), "{target}: {message}");
        }
    }

    #[tokio::test]
    async fn base_paths_and_remote_targets_are_taken_when_allowed() {
        for (target, path) in [
            ("http://127.0.0.1:81", "/v1/chat/completions"),
            ("http://127.0.0.1:81/v1/", "/v1/chat/completions"),
            ("http://[::1]:81/pool/v1", "/pool/v1/chat/completions"),
        ] {
            let found = Target::resolve(&LoadOptions::new(target)).await.expect("the target is on this machine");
            assert_eq!(found.path, path);
        }
        let remote = LoadOptions { allow_remote: true, ..LoadOptions::new("http://192.0.2.1:8080") };
        assert_eq!(Target::resolve(&remote).await.expect("it is allowed").host, "192.0.2.1:8080");
    }
}
