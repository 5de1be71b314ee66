//! The tables of the layers. `ARCHITECTURE.md` shows the first one to people.

/// One crate of the workspace and what it may use.
#[derive(Clone, Copy, Debug)]
pub struct Layer {
    /// Its name.
    pub name: &'static str,
    /// The crates of the workspace that it may depend on.
    pub may_use: &'static [&'static str],
    /// Whether it must not reach a runtime, a socket or a clock.
    pub pure: bool,
    /// Whether it is `#![no_std]` with a short list of dependencies.
    pub no_std: bool,
}

const fn host(name: &'static str, may_use: &'static [&'static str]) -> Layer {
    Layer { name, may_use, pure: false, no_std: false }
}

const fn pure(name: &'static str, may_use: &'static [&'static str]) -> Layer {
    Layer { name, may_use, pure: true, no_std: false }
}

const fn no_std(name: &'static str) -> Layer {
    Layer { name, may_use: &[], pure: true, no_std: true }
}

/// Every crate, also those that come with later work: a crate that does not exist breaks no rule.
pub const CRATES: &[Layer] = &[
    no_std("seawall-core"),
    no_std("seawall-model"),
    pure("seawall-wire", &["seawall-core"]),
    pure("seawall-document", &[]),
    pure("seawall-config", &["seawall-core", "seawall-document"]),
    pure("seawall-cases", &["seawall-document"]),
    pure("seawall-audit", &["seawall-config", "seawall-cases"]),
    pure("seawall-sim", &["seawall-config", "seawall-core", "seawall-model", "seawall-cases"]),
    host("seawall-store", &["seawall-core", "seawall-config"]),
    host(
        "seawall-proxy",
        &["seawall-wire", "seawall-config", "seawall-store", "seawall-core", "seawall-cases", "seawall-audit"],
    ),
    host("seawall-lab", &["seawall-model", "seawall-wire", "seawall-cases"]),
    host(
        "seawall",
        &[
            "seawall-core",
            "seawall-model",
            "seawall-wire",
            "seawall-document",
            "seawall-config",
            "seawall-cases",
            "seawall-audit",
            "seawall-sim",
            "seawall-store",
            "seawall-proxy",
            "seawall-lab",
        ],
    ),
    host("xtask", &[]),
];

/// What a pure crate must not reach: runtimes, sockets, HTTP and TLS stacks, clocks.
pub const BANNED_FROM_PURE: &[&str] = &[
    "tokio",
    "tokio-util",
    "tokio-rustls",
    "async-std",
    "smol",
    "async-io",
    "mio",
    "polling",
    "socket2",
    "hyper",
    "hyper-util",
    "h2",
    "reqwest",
    "ureq",
    "rustls",
    "native-tls",
    "openssl",
    "jiff",
    "chrono",
    "time",
    "quanta",
    "web-time",
    "getrandom",
];

/// What `seawall-core` and `seawall-model` may use, and what these need.
pub const ALLOWED_BELOW_CORE: &[&str] =
    &["indexmap", "smallvec", "hashbrown", "libm", "rand_core", "rand_pcg", "foldhash", "equivalent"];

/// Crates that must not be built, with the reason.
pub const BANNED_EVERYWHERE: &[(&str, &str)] = &[
    ("ring", "one cryptographic provider only, and it is aws-lc-rs"),
    ("native-tls", "TLS is rustls, the same on every machine"),
    ("openssl", "TLS is rustls, the same on every machine"),
    ("openssl-sys", "TLS is rustls, the same on every machine"),
];

/// Features that must stay off, with the reason: package, feature, why.
pub const BANNED_FEATURES: &[(&str, &str, &str)] =
    &[("serde_json", "arbitrary_precision", "it changes how every number of the whole program is read")];
