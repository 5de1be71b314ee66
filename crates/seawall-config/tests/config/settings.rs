//! A right file becomes the settings that it says.

use super::common;
use seawall_config::{
    AccessLog, Config, Credential, Dialect, Family, OverloadStatus, Overrides, RefusalWording, SingleUpstream,
    single_upstream,
};
use seawall_core::id::{PoolId, TenantId};
use seawall_core::settings::{
    Capacity, Criticality, DeploymentKind, EjectionSettings, Mode, QueueSettings, RetrySettings,
};
use secrecy::ExposeSecret as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

const FULL: &str = r#"
[server]
listen = "127.0.0.1:8081"
admin = "[::1]:9091"
data_dir = "data"
admin_token_file = "token"
drain_limit = "0s"
max_body = "1MiB"
header_timeout = "5s"
body_timeout = "2m"
max_connections = 7
buffered_bytes = "2MiB"
overload_status = 529
refusal_wording = "by-client"
access_log = "access.jsonl"

[[models]]
name = "chat"
aliases = ["talk"]
policy = "weighted"
mode = "observe"
[models.queue]
patience = "250ms"
max_waiting = 5
[models.retry]
max_attempts = 1
[models.ejection]
consecutive_failures = 9
[models.timeouts]
connect = "1s"

[[models.deployments]]
name = "reserved"
url = "https://r.openai.azure.com"
dialect = "azure"
model = "chat-prod"
api_version = "2024-10-21"
region = "swedencentral"
kind = "data-zone"
boundary = "eu"
capacity = { provisioned = 20 }
weight = 3
priority = 1
credential = { entra = { tenant_id = "t", client_id = "c", client_secret = { env = "UP" } } }

[[models.deployments]]
name = "paid"
url = "https://gateway:8443/v1"
capacity = { standard = 100 }
credential = { env = "UP" }
ca_file = "ca.pem"

[[models]]
name = "*"
[[models.deployments]]
name = "any"
url = "http://127.0.0.1:8000"
metrics_path = "/metrics"

[[tenants]]
name = "search"
keys = [{ env = "KEY" }, { file = "keys/file" }]
models = ["talk"]
mode = "enforce"
priority_ceiling = "sheddable-plus"
boundary = "eu"

[[tenants]]
name = "all"
keys = [{ sha256 = "a0dc30b67f4abdc2fa6ae2c0e4a5eaeecdf8cf0df7e0d8fb8a4bf7d2eaf3d8cd" }]
"#;

fn config(text: &str) -> Config {
    common::parse(text).expect("a right file")
}

#[test]
fn the_server_section_is_taken_over() {
    let config = config(FULL);
    let server = config.server();
    assert_eq!(server.listen, "127.0.0.1:8081".parse::<SocketAddr>().expect("an address"));
    assert_eq!(server.admin, "[::1]:9091".parse::<SocketAddr>().expect("an address"));
    assert_eq!((server.data_dir.as_path(), server.admin_token_file.as_path()), (Path::new("data"), Path::new("token")));
    assert_eq!((server.drain_limit, server.header_timeout), (Duration::ZERO, Duration::from_secs(5)));
    assert_eq!((server.max_body_bytes, server.buffered_bytes, server.max_connections), (1 << 20, 2 << 20, 7));
    assert_eq!(server.overload_status, OverloadStatus::Overloaded);
    assert_eq!(server.refusal_wording, RefusalWording::ByClient);
    assert_eq!(server.access_log, AccessLog::File(PathBuf::from("access.jsonl")));
}

#[test]
fn models_become_pools_with_the_engines_defaults() {
    let config = config(FULL);
    let pool = &config.core().pools[0];
    assert_eq!((pool.name.as_str(), pool.policy.as_str(), pool.deployments.len()), ("chat", "weighted", 2));
    assert_eq!(pool.queue, QueueSettings { patience: Duration::from_millis(250), max_waiting: 5 });
    assert_eq!(pool.retry, RetrySettings { max_attempts: 1, ..RetrySettings::default() });
    assert_eq!(pool.ejection, EjectionSettings { consecutive_failures: 9, ..EjectionSettings::default() });
    assert_eq!(pool.timeouts.connect, Duration::from_secs(1));
    assert_eq!(config.core().pools[1].queue, QueueSettings::default());
    assert_eq!(config.core().pools[1].policy, "priority");
    assert_eq!(config.model(PoolId(0)).family, Family::OpenAi);
}

#[test]
fn models_and_tenants_are_enforced_unless_they_are_observed() {
    let modes = |text: &str| {
        let config = config(text);
        let (pools, tenants) = (&config.core().pools, &config.core().tenants);
        [pools[0].mode, pools[1].mode, tenants[0].mode, tenants[1].mode]
    };
    assert_eq!(modes(FULL), [Mode::Observe, Mode::Enforce, Mode::Enforce, Mode::Enforce]);
    let turned = FULL.replace("observe", "other").replace("enforce", "observe").replace("other", "enforce");
    assert_eq!(modes(&turned), [Mode::Enforce, Mode::Enforce, Mode::Observe, Mode::Enforce]);
}

#[test]
fn deployments_keep_their_place_and_their_capacity() {
    let config = config(FULL);
    let [reserved, paid, any] = config.core().deployments.as_slice() else { panic!("three deployments") };
    assert_eq!((reserved.pool, reserved.capacity), (PoolId(0), Capacity::Provisioned { size: 20 }));
    assert_eq!((reserved.kind, reserved.boundary.as_deref()), (DeploymentKind::DataZone, Some("eu")));
    assert_eq!((reserved.weight, reserved.priority_group, reserved.region.as_str()), (3, 1, "swedencentral"));
    assert_eq!((paid.capacity, paid.weight, paid.priority_group), (Capacity::Standard { size: Some(100) }, 1, 0));
    assert_eq!((any.pool, any.capacity), (PoolId(1), Capacity::Standard { size: None }));
    for (index, deployment) in config.core().deployments.iter().enumerate() {
        let pool = &config.core().pools[deployment.pool.index()];
        assert!(pool.deployments.iter().any(|id| id.index() == index));
    }
}

#[test]
fn upstreams_say_how_they_are_reached() {
    let config = config(FULL);
    let [reserved, paid, any] = config.upstreams() else { panic!("three upstreams") };
    assert_eq!(reserved.endpoint.to_string(), "https://r.openai.azure.com");
    assert_eq!((reserved.dialect, reserved.model.as_deref()), (Dialect::Azure, Some("chat-prod")));
    assert_eq!(reserved.api_version.as_deref(), Some("2024-10-21"));
    let Credential::Entra(entra) = &reserved.credential else { panic!("an Entra credential") };
    assert_eq!(entra.client_secret.expose_secret(), "upstream-secret-1");
    assert_eq!(entra.authority.to_string(), "https://login.microsoftonline.com");
    assert_eq!((paid.model.as_deref(), paid.endpoint.authority()), (Some("chat"), "gateway:8443".to_owned()));
    assert!(paid.ca_pem.as_ref().is_some_and(|pem| pem.contains("BEGIN CERTIFICATE")));
    let Credential::Key(key) = &paid.credential else { panic!("a key") };
    assert_eq!(key.expose_secret(), "upstream-secret-1");
    assert_eq!((any.model.as_deref(), any.endpoint.to_string().as_str()), (None, "http://127.0.0.1:8000/v1"));
    assert!(matches!(any.credential, Credential::None));
    assert_eq!([paid, any].map(|upstream| upstream.metrics_path.as_deref()), [None, Some("/metrics")]);
}

#[test]
fn tenants_are_found_by_key_and_models_by_name() {
    let config = config(FULL);
    assert_eq!(config.tenant_of(b"client-secret-1"), Some(TenantId(0)));
    assert_eq!(config.tenant_of(b"client-secret-3"), Some(TenantId(0)));
    assert_eq!(config.tenant_of(b"wrong"), None);
    assert_eq!((config.tenant_of(b""), config.anonymous_tenant()), (None, None));
    let tenant = &config.core().tenants[0];
    assert_eq!((tenant.priority_ceiling, tenant.boundary.as_deref()), (Criticality::SheddablePlus, Some("eu")));
    assert_eq!((config.pool_of("chat"), config.pool_of("talk")), (Some(PoolId(0)), Some(PoolId(0))));
    assert_eq!(config.pool_of("gpt-unheard-of"), Some(PoolId(1)));
    let names = |tenant| config.models_of(tenant).map(|model| model.name.as_str()).collect::<Vec<_>>();
    assert_eq!((names(TenantId(0)), names(TenantId(1))), (vec!["chat"], vec!["chat", "*"]));
}

#[test]
fn no_secret_is_shown() {
    let shown = format!("{:?}", config(FULL));
    assert!(!shown.contains("secret-1") && !shown.contains("secret-3"), "{shown}");
}

#[test]
fn the_command_line_wins() {
    let overrides = Overrides {
        listen: Some("127.0.0.1:1".parse().expect("an address")),
        admin: Some("127.0.0.1:2".parse().expect("an address")),
        data_dir: Some("elsewhere".into()),
        admin_token_file: None,
    };
    let config =
        Config::demo(&[("north", "127.0.0.1:3".parse().expect("an address"))], &overrides).expect("a good demo");
    assert_eq!((config.server().listen.port(), config.server().admin.port()), (1, 2));
    assert_eq!(config.server().admin_token_file, Path::new("elsewhere/admin-token"));
}

#[test]
fn the_demo_has_two_models_two_tenants_and_its_regions() {
    let address = |port| SocketAddr::from(([127, 0, 0, 1], port));
    let regions = [("north", address(1)), ("west", address(2)), ("south", address(3))];
    let config = Config::demo(&regions, &Overrides::default()).expect("a good demo");
    let demo = config.tenant_of(b"demo-key").expect("the demo's key");
    let batch = config.tenant_of(b"demo-batch-key").expect("the batch key");
    assert_eq!(config.core().tenants[demo.index()].name, "demo");
    assert_eq!(config.core().tenants[demo.index()].priority_ceiling, Criticality::Critical);
    assert_eq!(config.core().tenants[batch.index()].name, "batch");
    assert_eq!(config.core().tenants[batch.index()].priority_ceiling, Criticality::Sheddable);
    assert_eq!(
        config.models().iter().map(|model| model.name.as_str()).collect::<Vec<_>>(),
        ["demo-chat", "demo-embed"]
    );
    assert_eq!(config.core().deployments.len(), 6);
    assert_eq!(config.upstreams()[4].endpoint.to_string(), "http://127.0.0.1:2/v1");
}

#[test]
fn one_upstream_serves_every_model() {
    for (url, dialect) in [
        ("https://api.openai.com", Dialect::OpenAi),
        ("https://r.openai.azure.com", Dialect::Azure),
        ("https://api.anthropic.com", Dialect::Anthropic),
    ] {
        let text =
            single_upstream(SingleUpstream { url, key_env: Some("UP"), dialect: None, client_key_env: Some("KEY") });
        let config = config(&text);
        assert_eq!((config.upstreams()[0].dialect, config.upstreams()[0].model.as_deref()), (dialect, None));
        assert_eq!(config.tenant_of(b"client-secret-1"), Some(TenantId(0)));
        assert_eq!(config.pool_of("whatever"), Some(PoolId(0)));
    }
}

#[test]
fn one_upstream_without_keys_takes_the_demo_key_on_loopback_only() {
    let text = single_upstream(SingleUpstream {
        url: "http://127.0.0.1:8000",
        key_env: None,
        dialect: Some(Dialect::OpenAi),
        client_key_env: None,
    });
    assert_eq!(config(&text).tenant_of(b"demo-key"), Some(TenantId(0)));
    let overrides = Overrides { listen: Some("0.0.0.0:8080".parse().expect("an address")), ..Overrides::default() };
    let errors =
        seawall_config::check_text(&text, "seawall.toml", &overrides).expect_err("demo keys on all interfaces");
    assert!(errors.to_string().contains("is a demo key"), "{errors}");
}

#[test]
fn a_text_from_the_command_line_cannot_leave_its_place() {
    let url = "http://h/\"\n[[tenants]]\nname = \"x";
    let text = single_upstream(SingleUpstream { url, key_env: None, dialect: None, client_key_env: None });
    let errors = common::parse(&text).expect_err("a malformed url");
    assert_eq!(errors.problems().len(), 1, "{errors}");
    assert!(errors.problems()[0].message.contains("`url` is not usable"));
}

#[test]
fn anonymous_clients_share_one_tenant() {
    let text = "[server]\nallow_anonymous = true\n[[models]]\nname = \"m\"\n[[models.deployments]]\nname = \"d\"\nurl = \"http://h\"\n";
    let config = config(text);
    let tenant = config.anonymous_tenant().expect("the anonymous tenant");
    assert_eq!(config.core().tenants[tenant.index()].name, "anonymous");
    assert_eq!(config.models_of(tenant).count(), 1);
}

#[test]
fn a_check_needs_no_secrets_and_loading_does() {
    let text = FULL.replace("\"KEY\"", "\"NOT_SET\"");
    assert_eq!(seawall_config::check_text(&text, "seawall.toml", &Overrides::default()), Ok(()));
    let errors = common::parse(&text).expect_err("a variable that is not set");
    assert_eq!(errors.problems()[0].message, "the environment variable `NOT_SET` is not set");
}

#[test]
fn a_file_that_is_not_there_is_told() {
    let path = Path::new("no-such-folder/seawall.toml");
    let errors = seawall_config::load(path, &common::SECRETS, &Overrides::default()).expect_err("no file");
    assert_eq!(errors.problems()[0].message, "the config file cannot be read: it does not exist");
    assert!(seawall_config::check_file(path, &Overrides::default()).is_err());
}

/// The fallbacks of a fallback follow it, and each model stands there once.
#[test]
fn fallbacks_come_to_one_chain() {
    let entry = |name: &str, fallback: &str| {
        format!(
            "[[models]]\nname = \"{name}\"\nfallback = {fallback}\ncontext_fallback = {fallback}\n\
             [[models.deployments]]\nname = \"{name}1\"\n\
             url = \"https://host/v1\"\n"
        )
    };
    let models = [entry("a", r#"["b", "c"]"#), entry("b", r#"["d"]"#), entry("c", r#"["d"]"#), entry("d", "[]")];
    let tenant = "[[tenants]]\nname = \"t\"\nkeys = [{ env = \"KEY\" }]\nmodels = [\"*\"]\n";
    let config = common::parse(&(models.concat() + tenant)).unwrap_or_else(|errors| panic!("{errors}"));
    let indices = |chain: &[PoolId]| -> Vec<usize> { chain.iter().map(|pool| pool.index()).collect() };
    let pools = &config.core().pools;
    for (pool, expected) in pools.iter().zip([vec![1, 3, 2], vec![3], vec![3], vec![]]) {
        assert_eq!([indices(&pool.fallbacks), indices(&pool.context_fallbacks)], [expected.clone(), expected]);
    }
}
