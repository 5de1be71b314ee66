//! The servers of a storm, as its plan says.

use seawall_lab::fleet::{
    Departure, EngineSettings, FleetHandle, FleetOptions, Order, Pacing, Rejection, ServerOptions, start,
};
use seawall_sim::storms::{Cell, Plan, Trouble};
use std::net::SocketAddr;

/// More waiting places than this are no bound.
const WITHOUT_BOUND: u32 = 1_000_000;
/// Open connections: those of every attempt that a balancer holds at the same time.
const CONNECTIONS: usize = 16_384;
/// Millionths.
const WHOLE: f64 = 1_000_000.0;

/// Starts the servers of a cell.
pub(super) async fn of(cell: Cell, plan: &Plan, listen: SocketAddr, seed: u64) -> Result<FleetHandle, String> {
    let server = |engine: &seawall_cases::scenario::Engine| {
        let settings = EngineSettings {
            waiting_limit: (engine.waiting_limit < WITHOUT_BOUND).then_some(engine.waiting_limit),
            departure: if engine.works_on { Departure::KeepsRunning } else { Departure::FreesSlot },
            order: if engine.random_order { Order::Random { seed } } else { Order::Arrival },
            ..EngineSettings::fixed(engine.slots, cell.shape.service)
        };
        // A refusal that says nothing of when to come back.
        let rejection = Rejection { status: 503, retry_after: None, ..Rejection::default() };
        let pacing = Pacing::Engine(settings);
        ServerOptions { pacing, rejection, ..ServerOptions::new(&engine.name, &engine.name) }
    };
    let servers = plan.scenario.engine.iter().map(server).collect();
    let options = FleetOptions { seed, max_connections: CONNECTIONS, ..FleetOptions::of(listen, servers) };
    start(options).await.map_err(|error| error.to_string().replace("--listen", "--upstreams"))
}

/// Lets the trouble of a shape begin, or end.
pub(super) fn change(fleet: &FleetHandle, cell: Cell, begins: bool) {
    match cell.shape.trouble {
        Trouble::Slower(part) => {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a part of a million")]
            let ill = (part * WHOLE) as u32;
            fleet.set_speed_ppm(if begins { ill } else { 1_000_000 });
        }
        // No such shape is run live.
        Trouble::Fails(..) | Trouble::Cold(_) => {}
        Trouble::Slots(slots) => fleet.set_slots(if begins { slots } else { cell.shape.slots }),
    }
}
