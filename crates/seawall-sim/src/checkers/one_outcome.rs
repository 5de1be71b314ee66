//! Every call has exactly one outcome: it is answered once, or its caller leaves. That none is left without one is for
//! [`super::drained`] to see.

/// A call is answered that was answered before.
pub(crate) fn second_answer() -> String {
    "it answers a call twice".to_owned()
}

/// A call is dropped. `is_abandoned`: its caller has left; `is_answered`: it was answered.
pub(crate) fn dropped(is_abandoned: bool, is_answered: bool) -> Option<String> {
    (!is_abandoned && !is_answered).then(|| "it drops a call whose caller waits".to_owned())
}

/// An engine ends a request that its host does not hold. `has_left`: the host has just told it that the client is gone.
pub(crate) fn unknown_end(has_left: bool) -> Option<String> {
    (!has_left).then(|| "its engine ends a request that has ended or never was".to_owned())
}

/// How many requests an engine has, and how many its host has given it that have not ended.
pub(crate) fn count(engine: usize, host: usize) -> Option<String> {
    (engine != host).then(|| format!("its engine has {engine} requests, and its host has given it {host}"))
}

#[cfg(test)]
mod tests {
    use crate::checkers::UnderWay;
    use crate::context::{Actor, Context};
    use crate::{Call, CallId, Nanos, Reply, World};
    use seawall_cases::scenario::Form;

    /// Sends one request and takes what comes.
    struct Client;

    impl Actor for Client {
        fn start(&mut self, context: &mut Context<'_>) {
            let request = context.open_request(crate::checkers::bounded_memory::tests::facts());
            context.send(crate::ActorId(1), request, 0, Nanos::MAX);
            context.release(request);
        }

        fn arrive(&mut self, _: CallId, _: &mut Context<'_>) {}

        fn held(&self) -> usize {
            0
        }

        fn bound(&self, _: UnderWay) -> usize {
            0
        }
    }

    /// Answers in its own way.
    struct Server(fn(CallId, &mut Context<'_>));

    impl Actor for Server {
        fn arrive(&mut self, call: CallId, context: &mut Context<'_>) {
            (self.0)(call, context);
        }

        fn held(&self) -> usize {
            0
        }

        fn bound(&self, _: UnderWay) -> usize {
            0
        }
    }

    fn violations(answer: fn(CallId, &mut Context<'_>)) -> Vec<String> {
        let mut world = World::new(0, 1);
        world.add(Box::new(Client));
        world.add(Box::new(Server(answer)));
        world.start();
        world.drain(crate::SECOND);
        world.violations().to_vec()
    }

    #[test]
    fn one_answer_is_right() {
        assert_eq!(violations(|call, context| context.reply(call, Reply::SUCCESS)), [""; 0]);
    }

    #[test]
    fn a_second_answer_is_seen() {
        let twice = |call, context: &mut Context<'_>| {
            context.reply(call, Reply::SUCCESS);
            context.reply(call, Reply::failure(Form::Error));
        };
        assert_eq!(violations(twice), ["00:00 `1`: it answers a call twice"]);
    }

    #[test]
    fn a_dropped_call_is_seen() {
        assert_eq!(violations(|call, context| context.close(call)), ["00:00 `1`: it drops a call whose caller waits"]);
    }

    #[test]
    fn a_call_that_is_forgotten_is_seen_at_the_end() {
        let forgets = |_: CallId, _: &mut Context<'_>| {};
        let expected = "00:00:01 when all should be over there are 1 calls, 1 requests and 0 events";
        assert_eq!(violations(forgets), [expected]);
    }

    #[test]
    fn a_call_that_comes_back_to_nobody_is_dropped_in_peace() {
        let abandoned = Call { abandoned: true, ..crate::checkers::permits::tests::call() };
        assert_eq!(super::dropped(abandoned.abandoned, abandoned.is_answered()), None);
        assert_eq!(super::unknown_end(true), None);
        assert!(super::unknown_end(false).is_some());
    }

    #[test]
    fn a_request_that_only_one_side_knows_is_seen() {
        assert_eq!(super::count(2, 2), None);
        assert_eq!(super::count(2, 1).as_deref(), Some("its engine has 2 requests, and its host has given it 1"));
    }
}
