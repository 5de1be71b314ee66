//! No request waits for a first attempt while a deployment that it may go to has room.
//!
//! A request that waits for a *second* attempt may have to: its replacement has to be paid for, or the only room is where
//! it has just failed. What is out of rotation has no room for anybody, unless so much is out that health is ignored, or
//! nothing else is there. What answers nothing has none while something else answers.

use super::{Boundaries, ClassOrder, Lane};
use seawall_core::engine::{DeploymentView, PoolView};
use seawall_core::health::in_panic;
use seawall_core::protection::Protection;
use seawall_core::settings::Settings;

/// Looks at the lines of one engine after all that was due by now has been done. `waiting`: those that wait for a first
/// attempt; `all_waiting`: how many its host believes to wait for any.
pub(crate) fn work_conservation(
    settings: &Settings,
    views: &[PoolView],
    waiting: &ClassOrder,
    all_waiting: usize,
) -> Option<String> {
    let in_lines: usize = views.iter().map(|view| view.waiting).sum();
    if in_lines != all_waiting {
        return Some(format!(
            "{in_lines} requests wait in its lines, and {all_waiting} of its requests are not at work"
        ));
    }
    let boundaries = Boundaries::of(settings);
    waiting.waiting().find_map(|(lane, count)| {
        let idle = idle(settings, &views[lane.pool], lane, &boundaries)?;
        let name = &settings.deployments[idle.deployment.index()].name;
        Some(format!("{count} requests wait for a first attempt while the deployment `{name}` has room"))
    })
}

/// A deployment that the requests of a lane may go to and that has room.
fn idle<'a>(
    settings: &Settings,
    view: &'a PoolView,
    lane: Lane,
    boundaries: &Boundaries<'_>,
) -> Option<&'a DeploymentView> {
    let healthy = view.deployments.iter().filter(|deployment| deployment.health == "healthy").count();
    let pool = &settings.pools[lane.pool];
    let panic =
        pool.protections.has(Protection::PanicMode) && in_panic(healthy, view.deployments.len(), &pool.ejection);
    let boundary =
        |view: &DeploymentView| boundaries.number(settings.deployments[view.deployment.index()].boundary.as_deref());
    let permitted = |view: &&DeploymentView| lane.boundary == 0 || boundary(view) == lane.boundary;
    let permitted = view.deployments.iter().filter(permitted);
    let any_answers = permitted.clone().any(|view| view.answers);
    let is_gone = |view: &DeploymentView| any_answers && !view.answers;
    let is_kept = |view: &DeploymentView| !is_gone(view) && (panic || matches!(view.health, "healthy" | "failing"));
    let nothing_is_kept = !permitted.clone().any(is_kept);
    permitted.filter(|view| nothing_is_kept || is_kept(view)).find(|view| view.has_room)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use seawall_core::cost::Work;
    use seawall_core::id::{DeploymentId, PoolId};

    use seawall_core::settings::{Criticality, DeploymentSettings, PoolSettings, TenantSettings};
    use seawall_core::time::Duration;

    fn settings(deployments: usize) -> Settings {
        let ids = (0..deployments).map(DeploymentId::from_index);
        let deployment = |id: DeploymentId| DeploymentSettings {
            boundary: id.0.is_multiple_of(2).then(|| "eu".to_owned()),
            ..DeploymentSettings::new(format!("d{}", id.0), PoolId(0))
        };
        Settings {
            deployments: ids.clone().map(deployment).collect(),
            pools: vec![PoolSettings { discovery: "ceiling".to_owned(), ..PoolSettings::new("m", ids.collect()) }],
            tenants: vec![TenantSettings {
                boundary: Some("eu".to_owned()),
                ..TenantSettings::new("t", vec![PoolId(0)])
            }],
            seed: 1,
        }
    }

    /// An idle deployment.
    pub(in super::super) fn deployment_view(index: usize, health: &'static str, has_room: bool) -> DeploymentView {
        DeploymentView {
            deployment: DeploymentId::from_index(index),
            in_flight: 0,
            work_in_flight: Work::ZERO,
            would_run: 0,
            limit: None,
            has_room,
            answers: true,
            health,
            closed_for: Duration::ZERO,
            share_percent: 100,
            latency: Duration::ZERO,
        }
    }

    /// A pool in which one request waits.
    pub(in super::super) fn pool_view(deployments: Vec<DeploymentView>) -> PoolView {
        PoolView {
            pool: PoolId(0),
            waiting: 1,
            would_wait: 0,
            work_waiting: Work::ZERO,
            expected_output_tokens: 256,
            output_thousandths: 2_000,
            deployments,
        }
    }

    /// What is seen when one request waits and the deployments are in these states, with or without room.
    fn seen(deployments: &[(&'static str, bool)]) -> Option<String> {
        seen_inside(deployments, 0)
    }

    /// The same where the request has to stay inside a boundary, in which every second deployment is.
    fn seen_inside(deployments: &[(&'static str, bool)], boundary: usize) -> Option<String> {
        let views = deployments.iter().enumerate();
        let view =
            pool_view(views.map(|(index, (health, has_room))| deployment_view(index, health, *has_room)).collect());
        let mut order = ClassOrder::default();
        let turn = order.arrives(Lane { pool: 0, boundary }, Criticality::Critical);
        order.waits(turn);
        work_conservation(&settings(deployments.len()), &[view], &order, 1)
    }

    #[test]
    fn a_wait_beside_room_is_seen() {
        let idle = Some("1 requests wait for a first attempt while the deployment `d1` has room".to_owned());
        assert_eq!(seen(&[("healthy", false), ("healthy", true)]), idle);
        assert_eq!(seen(&[("healthy", false), ("failing", true)]), idle);
        assert_eq!(seen(&[("healthy", false), ("healthy", false)]), None);
        // What is out has no room, unless most is out, or all.
        assert_eq!(seen(&[("healthy", false), ("ejected", true)]), None);
        assert_eq!(seen(&[("healthy", false), ("ejected", true), ("ejected", false)]), idle);
        assert_eq!(seen(&[("ejected", false), ("probing", true)]), idle);
        // Room outside its boundary is none.
        assert_eq!(seen_inside(&[("healthy", false), ("healthy", true)], 1), None);
        assert!(seen_inside(&[("healthy", true), ("healthy", true)], 1).is_some());
    }

    #[test]
    fn a_request_that_its_host_lost_count_of_is_seen() {
        let order = ClassOrder::default();
        let view = pool_view(Vec::new());
        let found = work_conservation(&settings(0), &[view], &order, 2);
        assert_eq!(found.as_deref(), Some("1 requests wait in its lines, and 2 of its requests are not at work"));
    }
}
