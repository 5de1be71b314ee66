//! How many requests an inference server works on and keeps waiting, as its metrics page tells it.
//!
//! | server | works on | keeps waiting |
//! | --- | --- | --- |
//! | vLLM | `vllm:num_requests_running` | `vllm:num_requests_waiting` |
//! | SGLang | `sglang:num_running_reqs` | `sglang:num_queue_reqs` |
//!
//! The text form of Prometheus: a line for each series. The engines of a server are summed up; the ranks that share one
//! batch, and the parts by priority of what is told as a whole, too, are counted once.

use seawall_core::capacity::ServerLoad;

const RUNNING: [&str; 2] = ["vllm:num_requests_running", "sglang:num_running_reqs"];
const WAITING: [&str; 2] = ["vllm:num_requests_waiting", "sglang:num_queue_reqs"];

/// A sum over series: of those of the model that is asked about, and of all.
#[derive(Default)]
struct Sum {
    own: Option<f64>,
    all: Option<f64>,
}

impl Sum {
    fn add(&mut self, value: f64, is_own: bool) {
        *self.all.get_or_insert(0.0) += value;
        if is_own {
            *self.own.get_or_insert(0.0) += value;
        }
    }

    /// Where no series names the model it goes by another name there, and all of them are meant.
    fn total(&self) -> Option<u32> {
        let sum = self.own.or(self.all)?;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a value is at most a million")]
        let whole = sum.clamp(0.0, 1e9) as u32;
        Some(whole)
    }
}

/// Reads the page; `None`: it does not say both. `model`: what the server calls the model.
pub fn server_load(page: &[u8], model: Option<&str>) -> Option<ServerLoad> {
    let (mut running, mut waiting) = (Sum::default(), Sum::default());
    for line in page.split(|byte| *byte == b'\n').filter_map(|line| std::str::from_utf8(line).ok()) {
        let name = line.split(['{', ' ', '\t']).next().unwrap_or_default();
        let sum = match name {
            _ if RUNNING.contains(&name) => &mut running,
            _ if WAITING.contains(&name) => &mut waiting,
            _ => continue,
        };
        let Some(series) = Series::read(&line[name.len()..]) else { continue };
        if series.is_counted_elsewhere() {
            continue;
        }
        sum.add(series.value, model.is_some() && series.label("model_name") == model);
    }
    Some(ServerLoad { running: running.total()?, waiting: waiting.total()? })
}

/// The labels and the value of a line.
struct Series<'a> {
    labels: &'a str,
    value: f64,
}

impl<'a> Series<'a> {
    /// Reads what follows the name.
    fn read(rest: &'a str) -> Option<Self> {
        let (labels, rest) = match rest.trim_start().strip_prefix('{') {
            None => ("", rest),
            Some(inner) => inner.rsplit_once('}')?,
        };
        let value: f64 = rest.split_whitespace().next()?.parse().ok()?;
        (0.0..=1e6).contains(&value).then_some(Self { labels, value })
    }

    /// The value of a label as it is written, with its escapes.
    fn label(&self, name: &str) -> Option<&'a str> {
        let mut rest = self.labels;
        loop {
            let (key, after) = rest.split_once("=\"")?;
            let mut escaped = false;
            let end = after.find(|next| {
                let is_end = next == '"' && !escaped;
                escaped = next == '\\' && !escaped;
                is_end
            })?;
            if key.trim_matches([',', ' ']) == name {
                return Some(&after[..end]);
            }
            rest = &after[end + 1..];
        }
    }

    fn is_counted_elsewhere(&self) -> bool {
        let other_rank = |name| self.label(name).is_some_and(|rank| rank != "0");
        other_rank("tp_rank") || other_rank("pp_rank") || self.label("priority").is_some_and(|part| !part.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(page: &str, model: Option<&str>) -> Option<(u32, u32)> {
        server_load(page.as_bytes(), model).map(|load| (load.running, load.waiting))
    }

    #[test]
    fn pages_of_both_servers() {
        let vllm = "# HELP vllm:num_requests_running Requests.\n# TYPE vllm:num_requests_running gauge\n\
                    vllm:num_requests_running{engine=\"0\",model_name=\"m\"} 5.0\n\
                    vllm:num_requests_running{engine=\"1\",model_name=\"m\"} 4.0\r\n\
                    vllm:num_requests_running_total{model_name=\"m\"} 99\n\
                    vllm:num_requests_waiting{engine=\"0\",model_name=\"m\"} 2.0 1700000000\n\
                    vllm:num_requests_waiting{engine=\"1\",model_name=\"m\"} 0.0\n";
        assert_eq!(read(vllm, Some("m")), Some((9, 2)));
        assert_eq!(read(vllm, Some("an-alias")), Some((9, 2)), "there is no other model");
        let sglang = "sglang:num_running_reqs{model_name=\"q\",tp_rank=\"0\",priority=\"\"} 3\n\
                      sglang:num_running_reqs{model_name=\"q\",tp_rank=\"1\",priority=\"\"} 3\n\
                      sglang:num_queue_reqs{model_name=\"q\",tp_rank=\"0\",priority=\"\"} 7\n\
                      sglang:num_queue_reqs{model_name=\"q\",tp_rank=\"0\",priority=\"1\"} 7\n";
        assert_eq!(read(sglang, None), Some((3, 7)));
        let two = "vllm:num_requests_running{model_name=\"a\"} 1\nvllm:num_requests_running{model_name=\"b,=\\\"\"} 2\n\
                   vllm:num_requests_waiting{model_name=\"a\"} 3\nvllm:num_requests_waiting{model_name=\"b,=\\\"\"} 4\n";
        assert_eq!((read(two, Some("a")), read(two, None)), (Some((1, 3)), Some((3, 7))));
        assert_eq!(read("vllm:num_requests_running 1\nvllm:num_requests_waiting 0\n", None), Some((1, 0)));
    }

    #[test]
    fn pages_that_say_nothing() {
        for page in [
            "",
            "<html>no such page</html>",
            "vllm:num_requests_running{model_name=\"m\"} 5.0\n",
            "vllm:num_requests_running{ 1\nvllm:num_requests_waiting 1\n",
            "vllm:num_requests_running NaN\nvllm:num_requests_waiting 1\n",
            "vllm:num_requests_running -1\nvllm:num_requests_waiting 1\n",
            "vllm:num_requests_running 1e9\nvllm:num_requests_waiting 1\n",
            "vllm:num_requests_running\nvllm:num_requests_waiting\n",
        ] {
            assert_eq!(read(page, None), None, "{page}");
        }
        assert_eq!(server_load(&[0xff, b'\n', 0x80], None), None);
    }
}
