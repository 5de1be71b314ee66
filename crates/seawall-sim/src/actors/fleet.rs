//! A fleet of equal instances behind a balancer that picks one at random: which of them are up, how they come back after
//! a restart, how they scale out, and how much memory one has. What an instance does with a request is its owner's.

use super::{Surroundings, number};
use crate::Nanos;
use crate::context::Context;
use crate::random::{Stream, nanos};
use crate::recorder::{Recorder, SeriesId};
use seawall_cases::scenario::{Change, Router, RouterScaling};

/// Timers of these kinds go to [`Fleet::timer`]; an owner's own kinds are smaller.
pub(super) const FIRST_KIND: u16 = 100;
const BACK: u16 = FIRST_KIND;
const SCALE: u16 = FIRST_KIND + 1;

#[derive(Debug, Default)]
struct Instance {
    up: bool,
    /// Counts its lives: a timer of an earlier one means nothing.
    life: u32,
    busy_nanos: Nanos,
}

/// The instances of a [`Router`], or of what stands in its place.
#[derive(Debug)]
pub(super) struct Fleet {
    instances: Vec<Instance>,
    up: Vec<u32>,
    memory: f64,
    features: Vec<(String, f64)>,
    restart: Nanos,
    restart_spread: f64,
    scaling: Option<RouterScaling>,
    crashed_lately: bool,
    down: bool,
    restarts: Stream,
    instances_series: SeriesId,
    up_series: SeriesId,
}

impl Fleet {
    pub(super) fn new(settings: &Router, around: &Surroundings<'_>, recorder: &mut Recorder) -> Self {
        let name = &settings.name;
        let mut instances: Vec<Instance> = Vec::new();
        instances.resize_with(settings.instances as usize, || Instance { up: true, ..Instance::default() });
        Self {
            instances,
            up: (0..settings.instances).collect(),
            memory: f64::from(settings.memory_in_flight) * around.scale,
            features: settings.feature.iter().map(|feature| (feature.name.clone(), feature.memory_percent)).collect(),
            restart: settings.restart.nanos,
            restart_spread: settings.restart_spread,
            scaling: settings.autoscaler.clone(),
            crashed_lately: false,
            down: false,
            restarts: around.stream(name, "restarts"),
            instances_series: recorder.level(format!("{name}.instances")),
            up_series: recorder.level(format!("{name}.up")),
        }
    }

    /// To be called when the run begins.
    pub(super) fn start(&self, context: &mut Context<'_>) {
        self.levels(context);
        if let Some(scaling) = &self.scaling {
            context.timer(scaling.every.nanos, SCALE, 0);
        }
    }

    /// How many instances there are, those that are down included.
    pub(super) const fn len(&self) -> usize {
        self.instances.len()
    }

    /// Requests in flight that the memory of an instance holds.
    pub(super) fn memory_in_flight(&self) -> f64 {
        let taken: f64 = self.features.iter().map(|(_, percent)| percent).sum();
        self.memory * (1.0 - taken / 100.0)
    }

    /// Requests that the memories of all instances hold together.
    pub(super) fn most_held(&self) -> usize {
        let each = usize::try_from(nanos(libm::ceil(self.memory))).unwrap_or(usize::MAX);
        self.instances.len().saturating_mul(each)
    }

    /// It scales no more.
    pub(super) fn stop(&mut self) {
        self.scaling = None;
    }

    /// One of those that are up; `None`: none is.
    pub(super) fn pick(&self, balancing: &mut Stream) -> Option<u32> {
        if self.up.is_empty() { None } else { Some(self.up[balancing.below(self.up.len())]) }
    }

    /// A mark for timers of the instance's present life: [`Fleet::alive`] reads it.
    pub(super) fn mark(&self, index: u32) -> u64 {
        (u64::from(self.instances[index as usize].life) << 32) | u64::from(index)
    }

    /// The instance of a mark; `None`: that life is over.
    pub(super) fn alive(&self, mark: u64) -> Option<u32> {
        let index = u32::try_from(mark & 0xffff_ffff).unwrap_or(u32::MAX);
        let instance = self.instances.get(index as usize)?;
        (u64::from(instance.life) == mark >> 32).then_some(index)
    }

    /// An instance worked for so long.
    pub(super) fn worked(&mut self, index: u32, span: Nanos) {
        self.instances[index as usize].busy_nanos += span;
    }

    /// An instance is gone; it comes back by itself, unless the whole fleet is down. Its owner drops what it held.
    pub(super) fn lose(&mut self, index: u32, context: &mut Context<'_>) {
        let instance = &mut self.instances[index as usize];
        instance.up = false;
        instance.life += 1;
        self.up.retain(|up| *up != index);
        self.crashed_lately = true;
        self.levels(context);
        if !self.down {
            let restart = self.restarts.around(self.restart, self.restart_spread);
            context.timer(restart, BACK, u64::from(index));
        }
    }

    /// A timer of a kind from [`FIRST_KIND`] on.
    pub(super) fn timer(&mut self, kind: u16, data: u64, context: &mut Context<'_>) {
        match kind {
            BACK => self.back(u32::try_from(data).unwrap_or(u32::MAX), context),
            SCALE => self.scale(context),
            _ => {}
        }
    }

    /// Takes an event of the scenario. Returns the instances that it brings down: their owner is to lose each of them.
    pub(super) fn change(&mut self, change: &Change, context: &mut Context<'_>) -> Vec<u32> {
        if let Some(feature) = &change.feature_off {
            self.features.retain(|(name, _)| name != feature);
        }
        for _ in 0..change.instances.unwrap_or(0) {
            self.add_instance(self.restart, context);
        }
        if let Some(part) = change.restart {
            let count = nanos(libm::round(number(self.up.len()) * part));
            return self.up.iter().copied().take(usize::try_from(count).unwrap_or(usize::MAX)).collect();
        }
        let Some(down) = change.down else { return Vec::new() };
        self.down = down;
        if down {
            return self.up.clone();
        }
        for index in 0..self.instances.len() {
            context.timer(self.restart, BACK, index as u64);
        }
        Vec::new()
    }

    fn levels(&self, context: &mut Context<'_>) {
        context.level(self.instances_series, number(self.instances.len()));
        context.level(self.up_series, number(self.up.len()));
    }

    fn back(&mut self, index: u32, context: &mut Context<'_>) {
        let instance = &mut self.instances[index as usize];
        if !instance.up && !self.down {
            instance.up = true;
            self.up.push(index);
            self.up.sort_unstable();
            self.levels(context);
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "spans are far below 2^53 microseconds")]
    fn scale(&mut self, context: &mut Context<'_>) {
        let Some(scaling) = &self.scaling else { return };
        let (every, start, quota, busy_above) =
            (scaling.every.nanos, scaling.start.nanos, scaling.quota, scaling.busy_above);
        context.timer(every, SCALE, 0);
        let busy: Nanos = self.instances.iter_mut().map(|instance| core::mem::take(&mut instance.busy_nanos)).sum();
        let is_busy = busy as f64 > busy_above * every as f64 * number(self.up.len().max(1));
        let crashed = core::mem::take(&mut self.crashed_lately);
        if (is_busy || crashed) && self.instances.len() < quota as usize {
            self.add_instance(start, context);
        }
    }

    fn add_instance(&mut self, start: Nanos, context: &mut Context<'_>) {
        self.instances.push(Instance::default());
        self.levels(context);
        context.timer(start, BACK, self.instances.len() as u64 - 1);
    }
}
