//! A change that reaches requests little by little.

use crate::Nanos;
use crate::random::place;

/// A value that is on its way to another one: each request sees the new one from its own moment on, which depends on its
/// number alone.
#[derive(Clone, Debug)]
pub struct Rollout<T> {
    before: T,
    after: T,
    begins: Nanos,
    span: Nanos,
}

impl<T: Clone> Rollout<T> {
    /// A value that does not change.
    pub fn fixed(value: T) -> Self {
        Self { before: value.clone(), after: value, begins: 0, span: 0 }
    }

    /// From `now` on it becomes `value` within `span`. A change that is still on its way is taken as complete.
    pub fn change(&mut self, now: Nanos, value: T, span: Nanos) {
        self.before = core::mem::replace(&mut self.after, value);
        self.begins = now;
        self.span = span;
    }

    /// The value for the request of this number.
    #[expect(clippy::cast_precision_loss, reason = "spans are far below 2^53 microseconds")]
    pub fn of(&self, now: Nanos, request: u64) -> &T {
        let since = now.saturating_sub(self.begins);
        if since >= self.span || place(request) * (self.span as f64) < since as f64 {
            &self.after
        } else {
            &self.before
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_that_has_changed_stays_changed() {
        let mut rollout = Rollout::fixed(1);
        rollout.change(100, 2, 100);
        let after = |now| (0..1000).filter(|number| *rollout.of(now, *number) == 2).count();
        assert_eq!((after(100), after(200)), (0, 1000));
        assert!((450..550).contains(&after(150)));
        for number in 0..1000 {
            let changed: Vec<bool> = (100..=200).map(|now| *rollout.of(now, number) == 2).collect();
            assert!(changed.is_sorted());
        }
    }
}
