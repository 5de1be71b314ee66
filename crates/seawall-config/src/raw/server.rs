//! `[server]`.

use crate::units::{AddressText, DurationOrZero, DurationText, SizeText};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

/// Listeners, limits and the program's own files. Relative paths start at the working directory.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Server {
    /// Where clients connect: an IP address and a port, not a host's name. On another address than loopback the demo
    /// keys and `allow_anonymous` are refused.
    pub(crate) listen: AddressText,
    /// Where operators connect: health, metrics and changes at run time. On another address than loopback
    /// `admin_token_file` must be set.
    pub(crate) admin: AddressText,
    /// The folder of the program's own files, made if it is absent: the admin token, and what was learned of the
    /// deployments' capacities (`capacity.json`, written each half minute and at the end), where a restart begins. If it
    /// cannot be written, a warning says so, and a restart finds capacities anew.
    #[schemars(extend("format" = "path"))]
    pub(crate) data_dir: String,
    /// The file with the token that admin calls which change something must carry. If it is not set, the token is in
    /// `admin-token` in `data_dir`, made at the first start and readable by its owner only.
    #[schemars(extend("format" = "path"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) admin_token_file: Option<String>,
    /// How long running requests may go on after SIGTERM before they are cut off. Half a minute is what most
    /// orchestrators wait before they kill; raise both for long streams.
    pub(crate) drain_limit: DurationOrZero,
    /// The largest request body. 64 MiB takes a long context with images.
    pub(crate) max_body: SizeText,
    /// How long a client may take to send a request's head; a slower one is cut off, it would hold a connection.
    pub(crate) header_timeout: DurationText,
    /// How long a client may take to send a request's body; a slower one is told 408.
    pub(crate) body_timeout: DurationText,
    /// Connections of clients at once. One more waits unaccepted. At about 20 KiB each, 10,000 take 200 MiB.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub(crate) max_connections: u32,
    /// Bytes of request bodies held at once, waiting and running requests together; at the bound new bodies are
    /// refused before they are read. Answers that a client may come back for are kept within half of it. At least
    /// `max_body`.
    pub(crate) buffered_bytes: SizeText,
    /// The status that tells clients that capacity is exhausted. Every measured client waits on 429 as it is told;
    /// choose 503 or 529 only where a balancer or an error budget in front needs a 5xx.
    pub(crate) overload_status: OverloadStatusText,
    /// How refusals without a return time are worded: `uniform` for all clients alike, `by-client` in the stricter form
    /// for the user agents that were measured to obey it.
    pub(crate) refusal_wording: RefusalWordingText,
    /// Where the access log goes, one JSON line a request: `stdout`, `off`, or the path of a file that is appended to.
    #[schemars(extend("format" = "path"))]
    pub(crate) access_log: String,
    /// Serve clients without a key, all as one tenant `anonymous` that may use every model. Only with a loopback
    /// `listen` address and without any `[[tenants]]`.
    pub(crate) allow_anonymous: bool,
}

const fn loopback(port: u16) -> AddressText {
    AddressText(SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), port))
}

impl Default for Server {
    fn default() -> Self {
        Self {
            listen: loopback(8080),
            admin: loopback(9090),
            data_dir: "seawall-data".to_owned(),
            admin_token_file: None,
            drain_limit: DurationOrZero(Duration::from_secs(30)),
            max_body: SizeText(64 << 20),
            header_timeout: DurationText(Duration::from_secs(10)),
            body_timeout: DurationText(Duration::from_mins(1)),
            max_connections: 10_000,
            buffered_bytes: SizeText(512 << 20),
            overload_status: OverloadStatusText(429),
            refusal_wording: RefusalWordingText::Uniform,
            access_log: "stdout".to_owned(),
            allow_anonymous: false,
        }
    }
}

/// 429, 503 or 529.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct OverloadStatusText(pub(crate) u16);

impl JsonSchema for OverloadStatusText {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "OverloadStatus".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "integer", "enum": [429, 503, 529] })
    }
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub(crate) enum RefusalWordingText {
    Uniform,
    ByClient,
}
