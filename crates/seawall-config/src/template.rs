//! Config files that Seawall writes itself: the demo, and the file for one upstream. Both are read back like any other
//! file, so there is one way to a [`Config`].

use crate::config::{Config, Dialect};
use crate::endpoint::Endpoint;
use crate::keys::digest;
use crate::{Overrides, SystemSource, parse};
use seawall_document::Errors;
use std::fmt::Write as _;
use std::net::SocketAddr;

/// The key of the demo's tenant `demo`. Everyone knows it: only listeners on loopback accept it.
pub const DEMO_KEY: &str = "demo-key";

/// The key of the demo's tenant `batch`.
pub const DEMO_BATCH_KEY: &str = "demo-batch-key";

/// The demo's models.
pub const DEMO_MODELS: [&str; 2] = ["demo-chat", "demo-embed"];

/// The config file of the demo: [`DEMO_MODELS`], each served in every region, and the tenants `demo` and `batch`.
///
/// `regions` are the names and addresses of the upstreams, which speak plain HTTP.
pub fn demo(regions: &[(&str, SocketAddr)]) -> String {
    let mut text = String::from("# The demo that `seawall serve` starts without a config file.\n");
    for model in DEMO_MODELS {
        push(&mut text, format_args!("\n[[models]]\nname = {}\n", quoted(model)));
        for (region, address) in regions {
            let name = quoted(&format!("{model}-{region}"));
            let url = quoted(&format!("http://{address}/v1"));
            let region = quoted(region);
            push(&mut text, format_args!("\n[[models.deployments]]\nname = {name}\nurl = {url}\nregion = {region}\n"));
        }
    }
    for (tenant, key, ceiling) in [("demo", DEMO_KEY, "critical"), ("batch", DEMO_BATCH_KEY, "sheddable")] {
        let tenant = quoted(tenant);
        let sha256 = hexadecimal(key);
        push(
            &mut text,
            format_args!(
                "\n[[tenants]]\nname = {tenant}\n# The SHA-256 of \"{key}\".\nkeys = [{{ sha256 = \"{sha256}\" }}]\n\
                 priority_ceiling = \"{ceiling}\"\n"
            ),
        );
    }
    text
}

impl Config {
    /// The checked settings of the demo. Fails where `overrides` put a listener on another address than loopback:
    /// everyone knows the demo's keys.
    pub fn demo(regions: &[(&str, SocketAddr)], overrides: &Overrides) -> Result<Self, Errors> {
        parse(&demo(regions), "(demo)", &SystemSource, overrides)
    }
}

/// One upstream, as the command line tells it.
#[derive(Clone, Copy, Debug)]
pub struct SingleUpstream<'a> {
    /// `--upstream`.
    pub url: &'a str,
    /// `--key-env`: the environment variable with the upstream's key; `None`: it takes none.
    pub key_env: Option<&'a str>,
    /// `--dialect`; `None`: told from the url, see [`dialect_of`].
    pub dialect: Option<Dialect>,
    /// `--client-key-env`: the environment variable with the key that clients present; `None`: [`DEMO_KEY`], which
    /// only listeners on loopback accept.
    pub client_key_env: Option<&'a str>,
}

/// The commented config file for one upstream that serves every model under the client's own name for it.
///
/// `seawall serve --upstream` reads it back; `seawall init` writes it for people to go on from.
pub fn single_upstream(upstream: SingleUpstream<'_>) -> String {
    let url = quoted(upstream.url);
    let dialect = upstream.dialect.unwrap_or_else(|| dialect_of(upstream.url)).name();
    let credential = match upstream.key_env {
        Some(name) => format!(
            "# The key is in this environment variable; a file works too: {{ file = \"/run/secrets/key\" }}.\n\
             credential = {{ env = {} }}\n",
            quoted(name)
        ),
        None => "# Without a credential: add one with `credential = { env = \"NAME\" }`.\n".to_owned(),
    };
    let keys = match upstream.client_key_env {
        Some(name) => {
            format!("# Clients present the key in this environment variable.\nkeys = [{{ env = {} }}]\n", quoted(name))
        }
        None => format!(
            "# The SHA-256 of \"{DEMO_KEY}\", which everyone knows and only a loopback `listen` address accepts.\n\
             # Replace it with one of your own: keys = [{{ env = \"NAME\" }}].\n\
             keys = [{{ sha256 = \"{}\" }}]\n",
            hexadecimal(DEMO_KEY)
        ),
    };
    format!(
        "# A Seawall config file. Check it with `seawall check --config FILE`.\n\
         # Every setting, its default and the reason for it: docs/reference/config.md.\n\
         \n\
         [server]\n\
         listen = \"127.0.0.1:8080\" # where clients connect\n\
         admin = \"127.0.0.1:9090\"  # health, metrics, changes at run time\n\
         \n\
         # `*` takes every model and passes the client's name for it on. Name models one by one to give each its own\n\
         # deployments, waiting line and retry budget.\n\
         [[models]]\n\
         name = \"*\"\n\
         \n\
         # Add more deployments of the same kind: failures and full capacity then move on to the next one.\n\
         [[models.deployments]]\n\
         name = \"upstream\"\n\
         url = {url}\n\
         dialect = \"{dialect}\"\n\
         {credential}\
         \n\
         [[tenants]]\n\
         name = \"default\"\n\
         {keys}"
    )
}

/// The dialect that a url tells by its host: Azure's and Anthropic's own hosts, OpenAI's for every other one.
pub fn dialect_of(url: &str) -> Dialect {
    let Ok(endpoint) = Endpoint::parse(url) else { return Dialect::OpenAi };
    let azure = [".openai.azure.com", ".services.ai.azure.com", ".cognitiveservices.azure.com"];
    if azure.iter().any(|domain| endpoint.host().ends_with(domain)) {
        Dialect::Azure
    } else if endpoint.host() == "api.anthropic.com" {
        Dialect::Anthropic
    } else {
        Dialect::OpenAi
    }
}

fn push(text: &mut String, part: std::fmt::Arguments<'_>) {
    text.write_fmt(part).expect("writing to a string does not fail");
}

/// A TOML text, whatever it holds.
fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

fn hexadecimal(key: &str) -> String {
    let mut text = String::new();
    for byte in digest(key.as_bytes()) {
        push(&mut text, format_args!("{byte:02x}"));
    }
    text
}
