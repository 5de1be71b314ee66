//! `[server]`.

use super::Context;
use crate::config::{AccessLog, OverloadStatus, RefusalWording, ServerConfig};
use crate::raw::{RefusalWordingText, Server};
use seawall_document::Node;
use std::net::SocketAddr;
use std::path::PathBuf;

pub(crate) fn check(raw: &Server, node: &Node, context: &mut Context<'_>) -> ServerConfig {
    let overrides = context.overrides;
    let data_dir = overrides.data_dir.clone().unwrap_or_else(|| PathBuf::from(&raw.data_dir));
    let told_token_file =
        overrides.admin_token_file.clone().or_else(|| raw.admin_token_file.as_ref().map(PathBuf::from));
    let server = ServerConfig {
        listen: overrides.listen.unwrap_or(raw.listen.0),
        admin: overrides.admin.unwrap_or(raw.admin.0),
        admin_token_file: told_token_file.clone().unwrap_or_else(|| data_dir.join("admin-token")),
        data_dir,
        drain_limit: raw.drain_limit.0,
        max_body_bytes: raw.max_body.0,
        header_timeout: raw.header_timeout.0,
        body_timeout: raw.body_timeout.0,
        max_connections: raw.max_connections,
        buffered_bytes: raw.buffered_bytes.0,
        overload_status: match raw.overload_status.0 {
            503 => OverloadStatus::ServiceUnavailable,
            529 => OverloadStatus::Overloaded,
            _ => OverloadStatus::TooManyRequests,
        },
        refusal_wording: match raw.refusal_wording {
            RefusalWordingText::Uniform => RefusalWording::Uniform,
            RefusalWordingText::ByClient => RefusalWording::ByClient,
        },
        access_log: match raw.access_log.as_str() {
            "stdout" => AccessLog::Stdout,
            "off" => AccessLog::Off,
            path => AccessLog::File(PathBuf::from(path)),
        },
    };
    if server.buffered_bytes < server.max_body_bytes {
        let place = node.get("buffered_bytes").unwrap_or_else(|| node.get_or_self("max_body"));
        let message = format!("`buffered_bytes` ({}) is less than `max_body` ({})", raw.buffered_bytes, raw.max_body);
        context.report.at(place, message, "raise `buffered_bytes` or lower `max_body`: the largest body must fit");
    }
    listeners(&server, told_token_file.is_some(), node, context);
    server
}

fn listeners(server: &ServerConfig, token_file_is_told: bool, node: &Node, context: &mut Context<'_>) {
    if collide(server.listen, server.admin) {
        let message = format!("`listen` ({}) and `admin` ({}) are the same place", server.listen, server.admin);
        at_address(context, node, "admin", message, "give `admin` another port, for example `127.0.0.1:9090`");
    }
    if !server.admin.ip().is_loopback() && !token_file_is_told {
        let message = format!("`admin` ({}) is reachable from other machines without a token of yours", server.admin);
        let remedy =
            "set `admin_token_file` to a file with a token, or use a loopback address such as `127.0.0.1:9090`";
        at_address(context, node, "admin", message, remedy);
    }
}

/// Whether both cannot be listened on. Port 0 stands for any free port.
fn collide(one: SocketAddr, other: SocketAddr) -> bool {
    let same_address = one.ip() == other.ip() || one.ip().is_unspecified() || other.ip().is_unspecified();
    one.port() != 0 && one.port() == other.port() && same_address
}

/// Reports a mistake about an address: at the command line's argument where that one counts.
pub(crate) fn at_address(context: &mut Context<'_>, node: &Node, name: &str, message: String, remedy: &str) {
    let overridden = match name {
        "listen" => context.overrides.listen.is_some(),
        _ => context.overrides.admin.is_some(),
    };
    if overridden {
        context.report.push(&format!("--{name}"), None, message, remedy);
    } else {
        context.report.at(node.get_or_self(name), message, remedy);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_collide_on_the_same_port_only() {
        let address = |text: &str| text.parse::<SocketAddr>().expect("a good address");
        assert!(collide(address("127.0.0.1:80"), address("127.0.0.1:80")));
        assert!(collide(address("0.0.0.0:80"), address("127.0.0.1:80")));
        assert!(!collide(address("127.0.0.1:80"), address("127.0.0.1:81")));
        assert!(!collide(address("127.0.0.2:80"), address("127.0.0.1:80")));
        assert!(!collide(address("127.0.0.1:0"), address("127.0.0.1:0")));
    }
}
