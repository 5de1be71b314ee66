//! Where a process spends its processor time, as `perf` sees it.

use crate::{Failure, command};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

/// Groups by words in a symbol's name; the first that fits counts.
const GROUPS: [(&str, &[&str]); 7] = [
    ("Seawall's own code", &["seawall_"]),
    ("allocation (mimalloc)", &["mi_"]),
    ("runtime (tokio)", &["tokio", "mio::"]),
    ("HTTP (hyper, httparse, http)", &["hyper", "httparse", "http::"]),
    ("buffers (bytes)", &["bytes::"]),
    ("JSON of the access log (serde_json)", &["serde"]),
    ("copying memory (libc)", &["memmove", "memcpy", "memset"]),
];

/// The shares of a profile.
#[derive(Debug, PartialEq)]
pub(super) struct Profile(Vec<(String, f64)>);

impl Profile {
    /// Records process `id` for `seconds`; `None` where `perf` is not there or may not look.
    pub(super) fn of(id: u32, seconds: u64, folder: &Path) -> Result<Option<Self>, Failure> {
        let file = folder.join("perf.data");
        let mut record = Command::new("perf");
        record.args(["record", "-q", "-F", "4000", "-p", &id.to_string(), "-o"]).arg(&file);
        if !command::works(record.args(["--", "sleep", &seconds.to_string()])) {
            return Ok(None);
        }
        let mut read = Command::new("perf");
        read.args(["report", "--stdio", "--no-children", "-g", "none", "-F", "overhead,comm,dso,symbol", "-i"])
            .arg(&file);
        command::output(&mut read).map(|text| Some(Self::read(&text)))
    }

    fn read(report: &str) -> Self {
        let mut shares: BTreeMap<&str, f64> = BTreeMap::new();
        for line in report.lines() {
            let Some((share, rest)) = line.trim().split_once('%') else { continue };
            let Ok(share) = share.parse::<f64>() else { continue };
            let kernel = rest.split_once(" [k] ").map(|(head, symbol)| (head, symbol, true));
            let own = || rest.split_once(" [.] ").map(|(head, symbol)| (head, symbol, false));
            let Some((head, symbol, is_kernel)) = kernel.or_else(own) else { continue };
            *shares.entry(group(head, symbol, is_kernel)).or_default() += share;
        }
        let mut shares: Vec<(String, f64)> = shares.into_iter().map(|(name, share)| (name.to_owned(), share)).collect();
        shares.sort_by(|one, other| other.1.total_cmp(&one.1));
        Self(shares)
    }

    /// A table, in microseconds of a request that costs `request_us`.
    pub(super) fn table(&self, request_us: f64) -> String {
        let mut table = String::from("| where | share | per request |\n| --- | --- | --- |\n");
        for (name, share) in &self.0 {
            writeln!(table, "| {name} | {share:.1}% | {:.1} us |", request_us * share / 100.0)
                .expect("a string takes any text");
        }
        table
    }

    /// The largest group, and the largest in the process itself.
    pub(super) fn largest(&self) -> String {
        let named = |found: Option<&(String, f64)>| {
            found.map_or_else(|| "nothing".to_owned(), |(name, share)| format!("{name} ({share:.0}%)"))
        };
        let outside = |name: &str| name == KERNEL;
        format!(
            "{}; outside of the kernel {}",
            named(self.0.first()),
            named(self.0.iter().find(|row| !outside(&row.0)))
        )
    }
}

const KERNEL: &str = "kernel: sockets and wake-ups";

fn group(head: &str, symbol: &str, is_kernel: bool) -> &'static str {
    if head.trim_start().starts_with("access-log") {
        return "access log's thread";
    }
    if is_kernel {
        return KERNEL;
    }
    let fits = |words: &&[&str]| words.iter().any(|word| symbol.contains(word));
    GROUPS.iter().find(|(_, words)| fits(words)).map_or("other", |(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_are_summed_by_group_and_the_largest_are_named() {
        let report = "# a comment with 5% in it\n\
            \x20   30.00%  tokio-rt-worker  [kernel.kallsyms]  [k] tcp_sendmsg\n\
            \x20   12.00%  tokio-rt-worker  [kernel.kallsyms]  [k] tcp_ack\n\
            \x20    6.50%  tokio-rt-worker  seawall            [.] seawall_core::engine::Engine::handle\n\
            \x20    9.00%  tokio-rt-worker  seawall            [.] hyper::proto::h1::dispatch\n\
            \x20    1.00%  access-log       seawall            [.] serde_json::ser::to_writer\n";
        let profile = Profile::read(report);
        let expected = [
            (KERNEL, 42.0),
            ("HTTP (hyper, httparse, http)", 9.0),
            ("Seawall's own code", 6.5),
            ("access log's thread", 1.0),
        ];
        assert_eq!(profile, Profile(expected.map(|(name, share)| (name.to_owned(), share)).to_vec()));
        assert!(profile.table(20.0).contains("| Seawall's own code | 6.5% | 1.3 us |"));
        assert_eq!(
            profile.largest(),
            "kernel: sockets and wake-ups (42%); outside of the kernel HTTP (hyper, httparse, http) (9%)"
        );
    }
}
