//! Law 1: Seawall makes no attempt without a permit, and never more than two for one flight.
//!
//! The attempts of one *distinct* request are bounded where the engine recognises its repeats; the figures of a case count
//! them.

use crate::calls::ActorId;
use seawall_core::permit::AttemptPermit;

/// Attempts for one flight at the most.
const MOST_ATTEMPTS: u32 = 2;

/// Permits that were given and not used yet, for each actor that needs them.
#[derive(Debug, Default)]
pub(crate) struct Permits(Vec<Option<u32>>);

impl Permits {
    /// From here on this actor makes no attempt without a permit.
    pub(crate) fn enforce(&mut self, actor: ActorId) {
        let place = actor.index();
        self.0.resize(self.0.len().max(place + 1), None);
        self.0[place].get_or_insert(0);
    }

    /// A permit is used up for an attempt that follows; `attempts`: how many its flight has had, this one included.
    pub(crate) fn used(&mut self, actor: ActorId, permit: &AttemptPermit, attempts: u32) -> Option<String> {
        if let Some(Some(unused)) = self.0.get_mut(actor.index()) {
            *unused += 1;
        }
        if attempts > MOST_ATTEMPTS {
            return Some(format!("a flight has {attempts} attempts, more than {MOST_ATTEMPTS}"));
        }
        let number = permit.number();
        (number != attempts).then(|| format!("a permit for attempt {number} is used for attempt {attempts}"))
    }

    /// An actor makes an attempt.
    pub(crate) fn attempt(&mut self, actor: ActorId) -> Option<String> {
        let unused = self.0.get_mut(actor.index())?.as_mut()?;
        if *unused == 0 {
            return Some("it makes an attempt without a permit".to_owned());
        }
        *unused -= 1;
        None
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::calls::{Call, CallId, Calls, Reply};
    use crate::checkers::UnderWay;
    use crate::context::{Actor, Context};
    use crate::world::World;
    use seawall_core::Engine;
    use seawall_core::cost::Demand;
    use seawall_core::engine::{Arrival, Input, Output};
    use seawall_core::id::{DeploymentId, PoolId, RequestId, TenantId};

    use seawall_core::settings::{Criticality, DeploymentSettings, PoolSettings, Settings, TenantSettings};
    use seawall_core::time::Instant;

    /// A call like any other.
    pub(in super::super) fn call() -> Call {
        let mut calls = Calls::default();
        let request = calls.open_request(super::super::bounded_memory::tests::facts());
        Call {
            request,
            from: ActorId(0),
            to: ActorId(1),
            token: 0,
            state: 0,
            deadline: u64::MAX,
            told_attempt: 0,
            body: 0,
            connect_nanos: 0,
            abandoned: false,
            answer_at: u64::MAX,
        }
    }

    /// A permit: only an engine makes one.
    fn permit() -> AttemptPermit {
        let pool = PoolSettings { discovery: "ceiling".to_owned(), ..PoolSettings::new("m", vec![DeploymentId(0)]) };
        let deployment = DeploymentSettings::new("d", PoolId(0));
        let tenant = TenantSettings::new("t", vec![PoolId(0)]);
        let settings = Settings { pools: vec![pool], deployments: vec![deployment], tenants: vec![tenant], seed: 1 };
        let mut engine = Engine::new(Instant::ZERO, &settings);
        let (request, tenant, pool) = (RequestId(1), TenantId(0), PoolId(0));
        let criticality = Criticality::default();
        let demand = Demand::default();
        let arrival =
            Arrival { request, tenant, pool, criticality, deadline: None, patience: None, identity: None, demand };
        engine.handle(Instant::ZERO, Input::Arrived(arrival));
        let Some(Output::Dispatch(dispatch)) = engine.poll() else { panic!("an idle engine dispatches at once") };
        dispatch.permit
    }

    /// Needs permits and sends without one.
    struct Unruly;

    impl Actor for Unruly {
        fn start(&mut self, context: &mut Context<'_>) {
            context.needs_permits();
            let request = context.open_request(super::super::bounded_memory::tests::facts());
            context.send(ActorId(0), request, 0, u64::MAX);
            context.release(request);
        }

        fn arrive(&mut self, call: CallId, context: &mut Context<'_>) {
            context.reply(call, Reply::SUCCESS);
        }

        fn held(&self) -> usize {
            0
        }

        fn bound(&self, _: UnderWay) -> usize {
            0
        }
    }

    #[test]
    fn an_attempt_without_a_permit_is_seen() {
        let mut world = World::new(0, 1);
        world.add(Box::new(Unruly));
        world.start();
        world.drain(1);
        assert_eq!(world.violations(), ["00:00 `0`: it makes an attempt without a permit"]);
    }

    #[test]
    fn an_attempt_takes_a_permit() {
        let (mut permits, seawall, other) = (Permits::default(), ActorId(3), ActorId(1));
        permits.enforce(seawall);
        assert_eq!(permits.used(seawall, &permit(), 1), None);
        assert_eq!((permits.attempt(seawall), permits.attempt(other)), (None, None));
        assert_eq!(permits.attempt(seawall).as_deref(), Some("it makes an attempt without a permit"));
    }

    #[test]
    fn a_third_attempt_and_a_permit_for_another_one_are_seen() {
        let mut permits = Permits::default();
        permits.enforce(ActorId(0));
        let seen = permits.used(ActorId(0), &permit(), 2);
        assert_eq!(seen.as_deref(), Some("a permit for attempt 1 is used for attempt 2"));
        let seen = permits.used(ActorId(0), &permit(), 3);
        assert_eq!(seen.as_deref(), Some("a flight has 3 attempts, more than 2"));
    }
}
