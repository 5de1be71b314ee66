//! Work is in flight where an attempt is, and waits where a request does, and nowhere else.
//!
//! An account that is added to at one place and taken from at another drifts with the first path that is forgotten.
//! This sees it at the first moment at which nothing runs.

use seawall_core::cost::Work;
use seawall_core::engine::PoolView;

/// Looks at the accounts of one engine.
pub(crate) fn work_accounts(views: &[PoolView]) -> Option<String> {
    let lost = |work: Work, holders: usize| work != Work::ZERO && holders == 0;
    views.iter().find_map(|view| {
        if lost(view.work_waiting, view.waiting) {
            return Some(format!("{:?} waits in pool {} and no request does", view.work_waiting, view.pool.0));
        }
        let mut deployments = view.deployments.iter();
        let lost = deployments.find(|deployment| lost(deployment.work_in_flight, deployment.in_flight as usize))?;
        let (work, deployment) = (lost.work_in_flight, lost.deployment.0);
        Some(format!("{work:?} is in flight at deployment {deployment} and no attempt is"))
    })
}

#[cfg(test)]
mod tests {
    use super::super::work_conservation::tests::{deployment_view, pool_view};
    use super::*;
    use seawall_core::engine::DeploymentView;

    const SOME: Work = Work::from_thousandths(1);

    #[test]
    fn work_without_a_holder_is_seen() {
        let deployment = |in_flight, work_in_flight| DeploymentView {
            in_flight,
            work_in_flight,
            ..deployment_view(0, "healthy", true)
        };
        let seen = |waiting, work_waiting, deployment| {
            work_accounts(&[PoolView { waiting, work_waiting, ..pool_view(vec![deployment]) }])
        };
        assert_eq!(seen(0, Work::ZERO, deployment(0, Work::ZERO)), None);
        assert_eq!(seen(1, SOME, deployment(1, SOME)), None);
        let waits = "Work(1) waits in pool 0 and no request does".to_owned();
        assert_eq!(seen(0, SOME, deployment(1, SOME)), Some(waits));
        let in_flight = "Work(1) is in flight at deployment 0 and no attempt is".to_owned();
        assert_eq!(seen(1, SOME, deployment(0, SOME)), Some(in_flight));
    }
}
