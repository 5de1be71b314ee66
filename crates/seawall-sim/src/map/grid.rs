//! The axes of the map, and its cells.

use std::fmt;

/// What stands between clients and servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Subject {
    /// A naive router.
    Naive,
    /// Seawall in its place.
    Seawall,
}

/// How the clients retry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Client {
    /// Not at all.
    None,
    /// As the OpenAI SDK for Python was measured to.
    Sdk,
    /// Seven attempts at once, each of which a layer makes seven attempts of.
    SevenBySeven,
}

/// The load before the trigger, in percent of the servers' capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Load(pub u32);

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Trigger {
    /// Every server works slower: so many percent of its speed are gone.
    CapacityLoss(u32),
    /// So many times the arrivals.
    Arrivals(u32),
    /// A cache that answers half of the requests is gone, and comes back empty.
    CacheWipe,
    /// Five documents, each of which keeps one server's reading of prompts busy.
    Giants,
}

/// How long the trigger lasts, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Length(pub u32);

/// One cell of the map.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cell {
    /// The router.
    pub subject: Subject,
    /// The clients.
    pub client: Client,
    /// The load.
    pub load: Load,
    /// The trigger.
    pub trigger: Trigger,
    /// Its length.
    pub length: Length,
}

/// The routers, in the order in which they are shown.
pub const SUBJECTS: [Subject; 2] = [Subject::Naive, Subject::Seawall];
/// The clients.
pub const CLIENTS: [Client; 3] = [Client::None, Client::Sdk, Client::SevenBySeven];
/// The loads.
pub const LOADS: [Load; 4] = [Load(50), Load(70), Load(85), Load(95)];
/// The triggers.
pub const TRIGGERS: [Trigger; 8] = [
    Trigger::CapacityLoss(50),
    Trigger::CapacityLoss(90),
    Trigger::CapacityLoss(100),
    Trigger::Arrivals(2),
    Trigger::Arrivals(10),
    Trigger::Arrivals(50),
    Trigger::CacheWipe,
    Trigger::Giants,
];
/// The lengths.
pub const LENGTHS: [Length; 3] = [Length(5), Length(30), Length(120)];

impl fmt::Display for Subject {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Naive => "naive",
            Self::Seawall => "seawall",
        })
    }
}

impl fmt::Display for Client {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::None => "none",
            Self::Sdk => "sdk",
            Self::SevenBySeven => "7x7",
        })
    }
}

impl fmt::Display for Load {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.part())
    }
}

impl fmt::Display for Trigger {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CapacityLoss(percent) => write!(formatter, "loss-{percent}"),
            Self::Arrivals(factor) => write!(formatter, "arrivals-{factor}x"),
            Self::CacheWipe => write!(formatter, "cache-wipe"),
            Self::Giants => write!(formatter, "giants"),
        }
    }
}

impl fmt::Display for Length {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}s", self.0)
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.words().join("/"))
    }
}

impl Load {
    /// As a part of one.
    pub fn part(self) -> f64 {
        f64::from(self.0) / 100.0
    }
}

impl Cell {
    /// Every cell, in order.
    pub fn all() -> impl Iterator<Item = Self> {
        let plans = CLIENTS.into_iter().flat_map(|client| LOADS.into_iter().map(move |load| (client, load)));
        let faults =
            || TRIGGERS.into_iter().flat_map(|trigger| LENGTHS.into_iter().map(move |length| (trigger, length)));
        let all = SUBJECTS.into_iter().flat_map(move |subject| plans.clone().map(move |plan| (subject, plan)));
        all.flat_map(move |(subject, (client, load))| {
            faults().map(move |(trigger, length)| Self { subject, client, load, trigger, length })
        })
    }

    /// The words of its name, one for each axis.
    pub fn words(self) -> [String; 5] {
        let Self { subject, client, load, trigger, length } = self;
        [subject.to_string(), client.to_string(), load.to_string(), trigger.to_string(), length.to_string()]
    }
}

/// Which cells are wanted.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// The wanted words of each axis; an empty one wants all.
    wanted: [Vec<String>; 5],
}

impl Filter {
    /// Reads words with commas between them, such as `naive,0.95,loss-50`: of each axis one of its words has to fit, an
    /// axis without a word is whole. The error names the words that there are.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut filter = Self::default();
        for word in text.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            let axis = axes().iter().position(|words| words.iter().any(|known| known == word));
            let axis = axis.ok_or_else(|| {
                let known: Vec<String> = axes().iter().map(|words| words.join(", ")).collect();
                format!("no cell of the map is called `{word}`; the words are {}", known.join("; "))
            })?;
            filter.wanted[axis].push(word.to_owned());
        }
        Ok(filter)
    }

    /// Whether a cell is wanted.
    pub fn fits(&self, cell: Cell) -> bool {
        let fits = |(wanted, word): (&Vec<String>, String)| wanted.is_empty() || wanted.contains(&word);
        self.wanted.iter().zip(cell.words()).all(fits)
    }
}

/// The words of each axis.
fn axes() -> [Vec<String>; 5] {
    fn words<T: fmt::Display>(values: &[T]) -> Vec<String> {
        values.iter().map(T::to_string).collect()
    }
    [words(&SUBJECTS), words(&CLIENTS), words(&LOADS), words(&TRIGGERS), words(&LENGTHS)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_cell_has_a_name_of_its_own() {
        let names: BTreeSet<String> = Cell::all().map(|cell| cell.to_string()).collect();
        assert_eq!((names.len(), Cell::all().count()), (576, 576));
        assert!(names.contains("seawall/7x7/0.95/arrivals-50x/120s"), "{:?}", names.first());
    }

    #[test]
    fn a_filter_picks_by_the_words_of_each_axis() {
        let count =
            |text: &str| Filter::parse(text).map(|filter| Cell::all().filter(|cell| filter.fits(*cell)).count());
        assert_eq!(count(""), Ok(576));
        assert_eq!(count("naive"), Ok(288));
        assert_eq!(count("naive, 0.95, 0.5, loss-50"), Ok(3 * 2 * 3));
        assert_eq!(count("naive,none,0.5,giants,5s"), Ok(1));
        let error = count("naive,0.96").expect_err("there is no such load");
        assert!(error.contains("`0.96`") && error.contains("0.5, 0.7, 0.85, 0.95"), "{error}");
    }
}
