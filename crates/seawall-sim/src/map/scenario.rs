//! The scenario of a cell: the template, with the cell's clients and trigger.

use super::grid::{Cell, Client, Load, Trigger};
use crate::actors::{number, number_of};
use crate::{Nanos, SECOND};
use seawall_cases::scenario::{Burst, Change, Clock, Engine, Event, Form, Retry, Scenario, Span, Work};

/// When the trigger begins.
pub(super) const TRIGGER_AT: Nanos = 120 * SECOND;
/// How long after the trigger the run is judged.
const AFTER: Nanos = 300 * SECOND;
/// How long it goes on then, for those who still wait.
const TAIL: Nanos = 70 * SECOND;
/// Servers. Their number is a multiple of what the giants take.
const ENGINES: usize = 10;
/// Documents of a burst.
const GIANTS: u32 = 5;
/// Part of the requests that a warm cache answers.
const HIT_PART: f64 = 0.5;

/// A cell's scenario, and what its run is judged by.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The scenario.
    pub scenario: Scenario,
    /// Requests a second that the servers can do.
    pub capacity_per_second: f64,
    /// When the trigger ends.
    pub trigger_end: Nanos,
    /// Until when requests are sent that count.
    pub judged_until: Nanos,
    /// When the run ends: every request that counts has ended.
    pub end: Nanos,
    /// The loss of goodput that the loss of capacity explains, as a part of what it was before.
    pub explained_loss: f64,
    /// Requests that the memory of all instances holds.
    pub memory: f64,
}

/// The template as it is in the file.
fn template() -> Result<Scenario, String> {
    Scenario::parse(include_str!("template.toml"), "template.toml").map_err(|errors| errors.render(false))
}

impl Plan {
    /// The plan of a cell; an error is a mistake in the template.
    pub fn of(cell: Cell) -> Result<Self, String> {
        let mut scenario = template()?;
        let first = scenario.engine.first().cloned().ok_or("the template has no engine")?;
        let engines = (0..ENGINES).map(|index| Engine { name: format!("engine-{index}"), ..first.clone() });
        scenario.engine = engines.collect();
        for router in &mut scenario.router {
            router.to = scenario.engine.iter().map(|engine| engine.name.clone()).collect();
        }
        let capacity_per_second = capacity(&scenario)?;
        let length = Nanos::from(cell.length.0) * SECOND;
        let trigger_end = TRIGGER_AT + length;
        let judged_until = trigger_end + AFTER;
        let end = judged_until + TAIL;
        scenario.scenario.end = Clock { nanos: end };
        let mut plan = Self {
            capacity_per_second,
            trigger_end,
            judged_until,
            end,
            explained_loss: explained_loss(cell.trigger, cell.load),
            memory: scenario
                .router
                .iter()
                .map(|router| f64::from(router.instances) * f64::from(router.memory_in_flight))
                .sum(),
            scenario,
        };
        plan.set_clients(cell);
        plan.set_trigger(cell.trigger, length);
        Ok(plan)
    }

    fn set_clients(&mut self, cell: Cell) {
        let scenario = &mut self.scenario;
        let caches = cell.trigger == Trigger::CacheWipe;
        let door = if caches { "cache" } else { "router" };
        let [clients, documents] = scenario.population.as_mut_slice() else { return };
        let rate = cell.load.part() * self.capacity_per_second;
        clients.rate_per_second = if caches { rate / (1.0 - HIT_PART) } else { rate };
        clients.retry = retry(cell.client);
        documents.retry = retry(cell.client);
        door.clone_into(&mut clients.to);
        if cell.client == Client::SevenBySeven {
            for layer in &mut scenario.layer {
                layer.retry = Retry { on: with_capacity(), ..retry(cell.client) };
                door.clone_into(&mut layer.to);
            }
            "layer".clone_into(&mut clients.to);
            // The layer talks to the wire; the clients see what it makes of it.
            clients.attempt_timeout = None;
        } else {
            scenario.layer.clear();
        }
        if caches {
            // With `a` lookups of an account within the time for which the cache keeps, it finds `a / (1 + a)` of them.
            let keeps = scenario.lookup_cache.first().map_or(0.0, |cache| seconds(cache.keeps));
            let lookups = HIT_PART / (1.0 - HIT_PART);
            clients.accounts = whole(clients.rate_per_second * keeps / lookups);
        } else {
            scenario.lookup_cache.clear();
        }
        if cell.trigger != Trigger::Giants {
            scenario.population.truncate(1);
        }
    }

    fn set_trigger(&mut self, trigger: Trigger, length: Nanos) {
        let names: Vec<String> = self.scenario.engine.iter().map(|engine| engine.name.clone()).collect();
        match trigger {
            Trigger::CapacityLoss(percent) => {
                let left = f64::from(100 - percent) / 100.0;
                for name in &names {
                    let factor = |factor| Change { capacity_factor: Some(factor), ..Change::default() };
                    self.between(name, factor(left), factor(1.0));
                }
            }
            Trigger::Arrivals(times) => {
                let factor = |factor| Change { rate_factor: Some(factor), ..Change::default() };
                self.between("clients", factor(f64::from(times)), factor(1.0));
            }
            Trigger::CacheWipe => {
                let bypass = |bypass| Change { bypass: Some(bypass), ..Change::default() };
                let clear = Change { clear: Some(true), ..Change::default() };
                self.happens("cache", self.trigger_end, clear);
                self.between("cache", bypass(true), bypass(false));
            }
            Trigger::Giants => {
                let speed = self.scenario.engine.first().map_or(0, |engine| engine.prefill_tokens_per_second);
                let prompt_tokens = u32::try_from(Nanos::from(speed) * (length / SECOND)).unwrap_or(u32::MAX);
                let work =
                    Work { mean: Span { nanos: length }, sigma: 0.0, stages: None, prompt_tokens, output_tokens: 1 };
                let burst = Burst { count: GIANTS, apart: Span::default(), work: Some(work) };
                self.happens("documents", TRIGGER_AT, Change { burst: Some(burst), ..Change::default() });
            }
        }
    }

    /// Something changes when the trigger begins, and changes back when it ends.
    fn between(&mut self, actor: &str, begins: Change, ends: Change) {
        self.happens(actor, TRIGGER_AT, begins);
        self.happens(actor, self.trigger_end, ends);
    }

    fn happens(&mut self, actor: &str, at: Nanos, change: Change) {
        let name = format!("{actor}-{}", self.scenario.event.len());
        let at = Clock { nanos: at };
        self.scenario.event.push(Event { name, at, over: None, actor: actor.to_owned(), change, published: None });
    }
}

/// Requests a second that the servers can do together: slots by the time that a request takes in one. The first token
/// comes with the end of the prompt.
fn capacity(scenario: &Scenario) -> Result<f64, String> {
    let work =
        scenario.population.first().and_then(|clients| clients.work).ok_or("the template's clients have no work")?;
    let one = |engine: &Engine| {
        let prompt = f64::from(work.prompt_tokens) / f64::from(engine.prefill_tokens_per_second);
        let answer = f64::from(work.output_tokens.saturating_sub(1)) / f64::from(engine.decode_tokens_per_second);
        f64::from(engine.slots) / (prompt + answer)
    };
    Ok(scenario.engine.iter().map(one).sum())
}

/// What goes with the capacity. More arrivals take none. Without the cache the servers can do what they can do, and the
/// rest of what was answered before goes with it.
fn explained_loss(trigger: Trigger, load: Load) -> f64 {
    match trigger {
        Trigger::CapacityLoss(percent) => f64::from(percent) / 100.0,
        Trigger::Arrivals(_) => 0.0,
        Trigger::CacheWipe => (1.0 - (1.0 - HIT_PART) / load.part()).max(0.0),
        Trigger::Giants => f64::from(GIANTS) / number(ENGINES),
    }
}

fn retry(client: Client) -> Retry {
    match client {
        Client::None => Retry::default(),
        Client::Sdk => Retry { profile: Some("openai-python".to_owned()), ..Retry::default() },
        Client::SevenBySeven => Retry { attempts: 7, ..Retry::default() },
    }
}

/// The clients leave a lack of capacity alone, as the measured pair of loops does; their layer does not.
fn with_capacity() -> Vec<Form> {
    [Form::Capacity].into_iter().chain(Retry::default().on).collect()
}

fn seconds(span: Span) -> f64 {
    number_of(span.nanos) / number_of(SECOND)
}

fn whole(value: f64) -> u32 {
    u32::try_from(crate::random::nanos(libm::round(value))).unwrap_or(u32::MAX)
}
