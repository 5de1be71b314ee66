//! Beside a run: lets the trouble begin and end, and looks at servers and balancer.

use super::target::Target;
use super::{fleet, memory};
use seawall_lab::fleet::FleetHandle;
use seawall_sim::storms::{Cell, Plan};
use seawall_sim::{Nanos, SECOND};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep_until, timeout};

/// How often memory is looked at.
const LOOKS: Nanos = SECOND / 4;
/// A balancer that refuses connections for so many seconds is gone.
const REFUSALS: u32 = 5;
const CONNECT_WITHIN: Duration = Duration::from_millis(500);

/// What is seen in the course of a run.
#[derive(Debug, Default)]
pub(super) struct Watch {
    /// Requests that run in the servers at the end of each second.
    pub(super) running: Vec<f64>,
    /// The most memory that the balancer had.
    pub(super) peak_memory_bytes: Option<u64>,
    refusals: u32,
}

/// Something that is to be done at a time of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Begin,
    End,
}

impl Watch {
    /// Goes on until the run is over and this is dropped, or until there is a problem, which it tells.
    pub(super) async fn follow(
        &mut self,
        (cell, plan): (Cell, &Plan),
        fleet: &FleetHandle,
        target: &mut Target,
        start: Instant,
    ) -> String {
        let mut steps = steps(&plan.troubles).into_iter().peekable();
        let address = address(&target.url);
        for look in 1_u64.. {
            let at = look * LOOKS;
            while let Some((step_at, step)) = steps.next_if(|(step_at, _)| *step_at <= at) {
                sleep_until(start + Duration::from_nanos(step_at)).await;
                fleet::change(fleet, cell, step == Step::Begin);
            }
            sleep_until(start + Duration::from_nanos(at)).await;
            let memory = target.process.and_then(memory::resident_bytes);
            self.peak_memory_bytes = self.peak_memory_bytes.max(memory);
            if !at.is_multiple_of(SECOND) {
                continue;
            }
            self.running.push(f64::from(u32::try_from(fleet.counts().running).unwrap_or(u32::MAX)));
            if let Some(problem) = target.problem() {
                return problem;
            }
            if let Some(address) = address
                && self.is_gone(address).await
            {
                return format!(
                    "{} has refused connections for {REFUSALS} s; see the balancer's log, start it again and repeat",
                    target.url
                );
            }
        }
        "the run has no end".to_owned()
    }

    async fn is_gone(&mut self, address: SocketAddr) -> bool {
        // One that is only slow is what a storm is about: its figures tell.
        let refused = matches!(timeout(CONNECT_WITHIN, TcpStream::connect(address)).await, Ok(Err(_)));
        self.refusals = if refused { self.refusals + 1 } else { 0 };
        self.refusals >= REFUSALS
    }
}

fn steps(troubles: &[(Nanos, Nanos)]) -> Vec<(Nanos, Step)> {
    let both = troubles.iter().flat_map(|(from, to)| {
        let ends = (to > from).then_some((*to, Step::End));
        [Some((*from, Step::Begin)), ends].into_iter().flatten()
    });
    both.collect()
}

/// The address of a URL whose host is one; of others nobody is asked.
fn address(url: &str) -> Option<SocketAddr> {
    let rest = url.strip_prefix("http://")?;
    rest.split('/').next()?.replace("localhost", "127.0.0.1").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trouble_that_stays_has_no_end() {
        assert_eq!(steps(&[(10, 20), (30, 30)]), [(10, Step::Begin), (20, Step::End), (30, Step::Begin)]);
    }

    #[test]
    fn the_address_of_a_target_is_read_from_its_url() {
        let local = Some(SocketAddr::from(([127, 0, 0, 1], 80)));
        assert_eq!(address("http://127.0.0.1:80/v1"), local);
        assert_eq!(address("http://localhost:80"), local);
        assert_eq!(address("http://balancer:80"), None);
    }
}
