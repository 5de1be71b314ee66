//! Who calls whom in a random world, how fast, and how they retry.
//!
//! The servers come first, and the clients ask for a part of what they can serve: an overload that lasts is no fault, and
//! what remains of it once everything works again could not be judged.

use super::dice::{Dice, rounded};
use seawall_model::profile::Profile;
use std::fmt::Write;

/// How often a second clients ask at the most, so that a run takes no time.
const MOST_PER_SECOND: f64 = 20.0;
const MODELS: [&str; 2] = ["large", "small"];

/// A server of the world.
#[derive(Clone, Debug)]
pub(super) struct Server {
    pub(super) name: String,
    pub(super) kind: ServerKind,
    /// How many of the models it serves, from the first one on.
    pub(super) models: usize,
    /// Requests a second that it serves.
    pub(super) per_second: f64,
    /// The time of one, in milliseconds.
    pub(super) service_ms: u32,
    /// Requests that have to be on their way, or there, for it to be busy: what it serves at once, and
    /// what the way there and back takes.
    pub(super) at_once: u32,
    /// What the router calls: the server, or the network before it.
    pub(super) door: String,
}

/// The kind of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ServerKind {
    Engine,
    ModelPool,
}

/// Everybody in a random world.
#[derive(Debug)]
pub(super) struct Topology {
    pub(super) models: &'static [&'static str],
    pub(super) servers: Vec<Server>,
    pub(super) links: Vec<String>,
    pub(super) populations: Vec<String>,
    pub(super) instances: u32,
    /// The sections of its scenario file.
    pub(super) text: String,
    /// The same in a few words.
    pub(super) words: String,
}

impl Topology {
    pub(super) fn draw(dice: &mut Dice) -> Self {
        let models = &MODELS[..dice.whole(1, 2) as usize];
        let mut built = Self {
            models,
            servers: Vec::new(),
            links: Vec::new(),
            populations: Vec::new(),
            instances: dice.whole(1, 3),
            text: String::new(),
            words: String::new(),
        };
        for index in 0..dice.whole(1, 5) {
            built.add_server(index, dice);
        }
        let per_second = built.demand(dice);
        built.add_router(per_second, dice);
        let count = dice.whole(1, 3);
        for index in 0..count {
            built.add_population(index, per_second / f64::from(count), dice);
        }
        built
    }

    fn say(&mut self, words: &str) {
        let comma = if self.words.is_empty() { "" } else { ", " };
        self.words.push_str(comma);
        self.words.push_str(words);
    }

    fn write(&mut self, text: &str) {
        self.text.push_str(text);
        self.text.push('\n');
    }

    /// Perhaps a network before an actor; the name of what stands in front.
    /// The way to `to`, and how many milliseconds it takes.
    fn behind_link(&mut self, to: &str, dice: &mut Dice) -> (String, u32) {
        if dice.chance(0.5) {
            return (to.to_owned(), 0);
        }
        let name = format!("link-{}", self.links.len());
        let delay_ms = dice.whole(0, 80);
        self.write(&format!("[[link]]\nname = \"{name}\"\nto = \"{to}\"\ndelay = \"{delay_ms}ms\""));
        self.links.push(name.clone());
        (name, delay_ms)
    }

    fn add_server(&mut self, index: u32, dice: &mut Dice) {
        let name = format!("server-{index}");
        // The first one serves every model, so that there is one for each.
        let models = if index == 0 { self.models.len() } else { dice.whole(1, 2).min(2) as usize };
        let models = models.min(self.models.len());
        let service_ms = if index == 0 { dice.whole(100, 1_500) } else { dice.whole(100, 2_500) };
        let listed: Vec<String> = self.models[..models].iter().map(|model| format!("\"{model}\"")).collect();
        let head = format!("name = \"{name}\"\nmodels = [{}]\nregion = \"region-{}\"", listed.join(", "), index % 3);
        let kind = dice.one(&[ServerKind::Engine, ServerKind::Engine, ServerKind::ModelPool]);
        let per_second = if kind == ServerKind::Engine {
            let slots = if index == 0 { dice.whole(4, 16) } else { dice.whole(2, 16) };
            let (waiting, works_on) = (dice.whole(0, slots), dice.chance(0.3));
            self.write(&format!(
                "[[engine]]\n{head}\nslots = {slots}\nfixed_service = \"{service_ms}ms\"\nwaiting_limit = {waiting}\n\
                 works_on = {works_on}"
            ));
            f64::from(slots) * 1000.0 / f64::from(service_ms)
        } else {
            let per_second = dice.real(4.0, 15.0);
            let (refusal_ms, remembers_ms) = (dice.whole(10, 200), dice.whole(100, 1_000));
            self.write(&format!(
                "[[model_pool]]\n{head}\ncapacity_per_second = {per_second:.3}\nburst = \"2s\"\n\
                 latency = \"{service_ms}ms\"\nrefusal_latency = \"{refusal_ms}ms\"\nremembers = \"{remembers_ms}ms\""
            ));
            per_second
        };
        let (door, delay_ms) = self.behind_link(&name, dice);
        let busy = per_second * f64::from(service_ms + 2 * delay_ms) / 1000.0;
        let at_once = rounded(libm::ceil(busy - 1e-6));
        self.say(&format!("{kind:?} {per_second:.1}/s {service_ms}ms"));
        self.servers.push(Server { name, kind, models, per_second, service_ms, at_once, door });
    }

    /// Requests a second of all clients together, who ask for every model alike.
    fn demand(&self, dice: &mut Dice) -> f64 {
        let of_model = |model: usize| {
            let able = self.servers.iter().filter(|server| server.models > model);
            able.map(|server| server.per_second / f64::from(u32::try_from(server.models).unwrap_or(1))).sum::<f64>()
        };
        let least = (0..self.models.len()).map(of_model).fold(f64::INFINITY, f64::min);
        let models = f64::from(u32::try_from(self.models.len()).unwrap_or(1));
        (dice.real(0.2, 0.6) * least * models).min(MOST_PER_SECOND)
    }

    fn add_router(&mut self, per_second: f64, dice: &mut Dice) {
        let instances = self.instances;
        // Even without one of several it handles what comes on a good day.
        let left = f64::from(instances.saturating_sub(1).max(1));
        let rate = dice.real(2.0, 6.0) * per_second / left;
        let service_ms = self.servers.iter().map(|server| server.service_ms).max().unwrap_or(0);
        let in_flight = per_second * (f64::from(service_ms) / 1000.0 + 1.0) / left;
        let memory = rounded(in_flight * dice.real(3.0, 8.0)).max(20);
        let restart_s = dice.whole(2, 20);
        let doors: Vec<String> = self.servers.iter().map(|server| format!("\"{}\"", server.door)).collect();
        let (own, doors) = (dice.whole(1, 2), doors.join(", "));
        self.write(&format!(
            "[[router]]\nname = \"router\"\nto = [{doors}]\ninstances = {instances}\nrate_per_second = {rate:.3}\n\
             memory_in_flight = {memory}\nrestart = \"{restart_s}s\"\nrestart_spread = 0.2\nattempts = {own}\n\
             attempt_timeout = \"60s\""
        ));
        self.say(&format!("{instances} x {rate:.1}/s, memory {memory}"));
    }

    fn add_population(&mut self, index: u32, per_second: f64, dice: &mut Dice) {
        let name = format!("clients-{index}");
        let mut to = "router".to_owned();
        let mut words = format!("{per_second:.1}/s");
        for layer in 0..dice.whole(0, 2) {
            to = self.behind_link(&to, dice).0;
            let (retry, told) = retry(dice, false);
            let mut text = format!("[[layer]]\nname = \"layer-{index}-{layer}\"\nto = \"{to}\"\nretry = {retry}");
            if dice.chance(0.5) {
                text.push_str("\nrewords = { capacity = \"unavailable\", overloaded = \"unavailable\" }");
            }
            for key in ["drops_advice", "drops_counters", "alters_body"] {
                let _ = write!(text, "\n{key} = {}", dice.chance(0.5));
            }
            self.write(&text);
            let _ = write!(words, " via {told}");
            to = format!("layer-{index}-{layer}");
        }
        let to = self.behind_link(&to, dice).0;
        let (retry, told) = retry(dice, true);
        let class = dice.one(&["critical-plus", "critical", "critical", "sheddable-plus", "sheddable"]);
        let workload = dice.whole(0, 1);
        let listed: Vec<String> = self.models.iter().map(|model| format!("\"{model}\"")).collect();
        let mut text = format!(
            "[[population]]\nname = \"{name}\"\nworkload = \"workload-{workload}\"\ncriticality = \"{class}\"\n\
             to = \"{to}\"\nmodels = [{}]\nrate_per_second = {per_second:.3}\nretry = {retry}",
            listed.join(", ")
        );
        if dice.chance(0.5) {
            let _ = write!(text, "\nattempt_timeout = \"{}s\"", dice.whole(30, 60));
        }
        if dice.chance(0.5) {
            let _ = write!(text, "\npatience = \"{}s\"", dice.whole(60, 180));
        }
        self.write(&text);
        self.say(&format!("{words} from {told} ({class})"));
        self.populations.push(name);
    }
}

/// How somebody retries: as a scenario writes it, and in a word. A client may be a measured one.
fn retry(dice: &mut Dice, is_client: bool) -> (String, String) {
    const ALL: &str = "[\"capacity\", \"overloaded\", \"unavailable\", \"error\", \"connection-lost\", \
                       \"connection-refused\", \"timeout\"]";
    match dice.whole(0, if is_client { 4 } else { 2 }) {
        0 => ("{ attempts = 1 }".to_owned(), "none".to_owned()),
        1 => (format!("{{ attempts = 7, on = {ALL} }}"), "7 at once".to_owned()),
        2 => {
            let (attempts, wait_ms, doubles) = (dice.whole(2, 5), dice.whole(100, 2_000), dice.chance(0.7));
            let obeys = dice.chance(0.5);
            let text = format!(
                "{{ attempts = {attempts}, wait = \"{wait_ms}ms\", doubles = {doubles}, obeys_advice = {obeys}, on = {ALL} }}"
            );
            (text, format!("{attempts} after {wait_ms}ms"))
        }
        _ => {
            let profile = Profile::ALL[dice.whole(0, u32::try_from(Profile::ALL.len()).unwrap_or(1) - 1) as usize].name;
            (format!("{{ profile = \"{profile}\" }}"), profile.to_owned())
        }
    }
}
