//! What a run leaves behind: counts and levels per second, and marks. Its size depends on the length of the run in
//! seconds and on the number of actors, never on the number of requests.

use crate::random::mix;
use crate::spread::Spread;
use crate::{Nanos, SECOND};

/// A series' number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeriesId(u32);

/// The number of a spread of spans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpreadId(u32);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Counts, added up within a second.
    Count,
    /// Counts that belong to an earlier second than the one in which they become known.
    Earlier,
    /// A level that stays until it is set again.
    Level,
    /// The greatest value of the whole run.
    Mark,
}

#[derive(Clone, Debug)]
struct Series {
    name: String,
    kind: Kind,
    values: Vec<f32>,
    mark: f64,
}

/// The series of a run.
#[derive(Clone, Debug)]
pub struct Recorder {
    start: Nanos,
    seconds: usize,
    series: Vec<Series>,
    spreads: Vec<(String, Spread)>,
    spreads_from: Nanos,
}

impl Recorder {
    /// Series from `start` to `end`.
    pub fn new(start: Nanos, end: Nanos) -> Self {
        let seconds = usize::try_from(end.saturating_sub(start).div_ceil(SECOND)).unwrap_or(0) + 1;
        Self { start, seconds, series: Vec::new(), spreads: Vec::new(), spreads_from: 0 }
    }

    /// When it begins.
    pub const fn start(&self) -> Nanos {
        self.start
    }

    /// How many seconds it has.
    pub const fn seconds(&self) -> usize {
        self.seconds
    }

    fn open(&mut self, name: String, kind: Kind) -> SeriesId {
        let known = self.series.iter().position(|series| series.name == name);
        let index = known.unwrap_or_else(|| {
            let values = match kind {
                Kind::Count | Kind::Earlier => vec![0.0; self.seconds],
                Kind::Level => vec![f32::NAN; self.seconds],
                Kind::Mark => Vec::new(),
            };
            self.series.push(Series { name, kind, values, mark: f64::NAN });
            self.series.len() - 1
        });
        SeriesId(u32::try_from(index).expect("fewer than 2^32 series"))
    }

    /// A series of counts of that name; the same one each time.
    pub fn count(&mut self, name: String) -> SeriesId {
        self.open(name, Kind::Count)
    }

    /// A series of counts that become known later than the second to which they belong, such as what became of the
    /// requests of a second. Two runs that part ways only later may differ here earlier: it leaves no [`Trail`].
    pub fn count_of_earlier(&mut self, name: String) -> SeriesId {
        self.open(name, Kind::Earlier)
    }

    /// A series of a level of that name.
    pub fn level(&mut self, name: String) -> SeriesId {
        self.open(name, Kind::Level)
    }

    /// A mark of that name: the greatest value of the run.
    pub fn mark(&mut self, name: String) -> SeriesId {
        self.open(name, Kind::Mark)
    }

    /// A spread of spans of that name over the whole run; the same one each time.
    pub fn spread(&mut self, name: String) -> SpreadId {
        let known = self.spreads.iter().position(|(known, _)| *known == name);
        let index = known.unwrap_or_else(|| {
            self.spreads.push((name, Spread::default()));
            self.spreads.len() - 1
        });
        SpreadId(u32::try_from(index).expect("fewer than 2^32 spreads"))
    }

    /// Spreads count from this time on only.
    pub const fn spreads_from(&mut self, time: Nanos) {
        self.spreads_from = time;
    }

    /// One more span, at this time.
    pub fn span(&mut self, id: SpreadId, now: Nanos, span: Nanos) {
        if now >= self.spreads_from {
            self.spreads[id.0 as usize].1.add(span);
        }
    }

    /// The spread of that name; `None`: there is none.
    pub fn spread_of(&self, name: &str) -> Option<&Spread> {
        self.spreads.iter().find(|(known, _)| known == name).map(|(_, spread)| spread)
    }

    /// One more, at this time.
    pub fn add(&mut self, id: SeriesId, now: Nanos) {
        self.add_many(id, now, 1.0);
    }

    /// So many more.
    #[expect(clippy::cast_possible_truncation, reason = "what one event adds is small")]
    pub fn add_many(&mut self, id: SeriesId, now: Nanos, count: f64) {
        let second = self.second(now);
        if let Some(value) = self.series[id.0 as usize].values.get_mut(second) {
            *value += count as f32;
        }
    }

    /// The level from this time on; the last one of a second stands for the second.
    #[expect(clippy::cast_possible_truncation, reason = "levels are small")]
    pub fn set(&mut self, id: SeriesId, now: Nanos, level: f64) {
        let second = self.second(now);
        if let Some(value) = self.series[id.0 as usize].values.get_mut(second) {
            *value = level as f32;
        }
    }

    /// Raises a mark to at least this value.
    pub fn raise(&mut self, id: SeriesId, value: f64) {
        let mark = &mut self.series[id.0 as usize].mark;
        if mark.is_nan() || value > *mark {
            *mark = value;
        }
    }

    fn second(&self, now: Nanos) -> usize {
        usize::try_from(now.saturating_sub(self.start) / SECOND).unwrap_or(usize::MAX)
    }

    /// Carries levels on over the seconds in which they were not set. To be called once, at the end.
    pub fn finish(&mut self) {
        for series in self.series.iter_mut().filter(|series| series.kind == Kind::Level) {
            let mut last = 0.0;
            for value in &mut series.values {
                if value.is_nan() {
                    *value = last;
                }
                last = *value;
            }
        }
    }

    /// A hash of every count and level up to each second, as far as they were known in that second.
    pub fn trail(&self) -> Trail {
        let known_at_once = |series: &&Series| matches!(series.kind, Kind::Count | Kind::Level);
        let counted: Vec<&Series> = self.series.iter().filter(known_at_once).collect();
        let second = |hash: &mut u64, second: usize| {
            let values = counted.iter().map(|series| series.values[second].to_bits());
            *hash = values.fold(*hash, |hash, bits| mix(hash ^ u64::from(bits)));
            Some(*hash)
        };
        Trail { start: self.start, hashes: (0..self.seconds).scan(counted.len() as u64, second).collect() }
    }

    /// The names of all series, in the order in which they were opened.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.series.iter().map(|series| series.name.as_str())
    }

    /// The values of a series, one for each second; `None`: there is none of that name. A mark has no values.
    pub fn values(&self, name: &str) -> Option<&[f32]> {
        self.series.iter().find(|series| series.name == name).map(|series| series.values.as_slice())
    }

    /// Whether the series is a level.
    pub fn is_level(&self, name: &str) -> bool {
        self.series.iter().any(|series| series.name == name && series.kind == Kind::Level)
    }

    /// The value of a mark; `None`: there is none of that name, or nothing raised it.
    pub fn mark_value(&self, name: &str) -> Option<f64> {
        let series = self.series.iter().find(|series| series.name == name && series.kind == Kind::Mark)?;
        (!series.mark.is_nan()).then_some(series.mark)
    }
}

/// A hash of everything that was recorded up to each second: small enough to keep when the series are gone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trail {
    start: Nanos,
    hashes: Vec<u64>,
}

impl Trail {
    /// Until which minute since midnight two runs of the same actors are the same.
    pub fn same_until(&self, other: &Self) -> f64 {
        let same = self.hashes.iter().zip(&other.hashes).take_while(|(left, right)| left == right).count();
        #[expect(clippy::cast_precision_loss, reason = "a day has few seconds")]
        let minute = (self.start / SECOND + same as Nanos) as f64 / 60.0;
        minute
    }
}
