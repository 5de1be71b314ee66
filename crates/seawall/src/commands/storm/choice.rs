//! What the command line asks for: storms, loads, servers and clients.

use super::{Storm, StormError};
use crate::nearest::did_you_mean;
use http::{HeaderName, HeaderValue};
use seawall_cases::library;
use seawall_sim::Nanos;
use seawall_sim::storms::{CLIENTS, Cell, Clients, Law, Length, Load, SHAPES, Shape, Storm as Kind, Trouble};
use std::time::Duration;

/// The loads that make sense: below, nothing is full; beyond, the machine of the test is.
const LOADS: std::ops::RangeInclusive<f64> = 0.05..=20.0;

/// A header of every request.
#[derive(Clone, Debug)]
pub struct Header(pub(super) HeaderName, pub(super) HeaderValue);

/// Reads `name: value`.
pub(super) fn header(text: &str) -> Result<Header, String> {
    let wrong = || format!("`{text}` is no header: write `name: value`");
    let (name, value) = text.split_once(':').ok_or_else(wrong)?;
    let name = name.trim().parse().map_err(|_| wrong())?;
    Ok(Header(name, HeaderValue::from_str(value.trim()).map_err(|_| wrong())?))
}

/// The cells, storm by storm and load by load; an error names what there is.
pub(super) fn cells(storm: &Storm) -> Result<Vec<Cell>, StormError> {
    let kinds = kinds(storm.set.as_deref().unwrap_or_default())?;
    let shape = shape(&storm.shape)?;
    let clients = clients(&storm.clients)?;
    let loads: Vec<Load> = storm.load.split(',').map(|text| load(text.trim())).collect::<Result<_, _>>()?;
    let lengths = loads.into_iter().map(|load| Ok((load, length(storm.requests, shape, load)?)));
    let lengths: Vec<(Load, Length)> = lengths.collect::<Result<_, StormError>>()?;
    if storm.target.is_some() && storm.upstreams.is_some_and(|address| address.port() == 0) {
        return Err(StormError::Usage(
            "--upstreams: a balancer cannot know free ports; name a port, such as 127.0.0.1:9101".to_owned(),
        ));
    }
    let cell = |storm, (load, length)| Cell { shape, law: Law::Fixed, storm, load, clients, length };
    Ok(kinds.iter().flat_map(|kind| lengths.iter().map(|length| cell(*kind, *length))).collect())
}

fn kinds(set: &str) -> Result<Vec<Kind>, StormError> {
    match set.to_lowercase().as_str() {
        "a" => Ok(vec![Kind::A]),
        "b" => Ok(vec![Kind::B]),
        "all" => Ok(vec![Kind::A, Kind::B]),
        _ => Err(StormError::Usage(unknown(set))),
    }
}

/// Cases have live forms once they are compressed into minutes, which is a later part (issue 5 of the plan).
fn unknown(set: &str) -> String {
    if library().iter().any(|case| case.slug == set) {
        return format!(
            "the case `{set}` has no live form yet: it lasts hours, and its compressed form comes with issue 5; \
             `seawall replay {set}` runs it in the simulator. The live storms are a, b and all"
        );
    }
    let meant = did_you_mean(set, library().iter().map(|case| case.slug));
    format!("there is no storm `{set}`{meant}; the live storms are a, b and all")
}

/// Whether a shape can be had of real servers: each request takes the same time, whatever else runs, and none fails.
fn is_live(shape: &Shape) -> bool {
    let fails = matches!(shape.trouble, Trouble::Fails(..) | Trouble::Cold(_));
    shape.laws.contains(&Law::Fixed) && shape.batch_slowdown_percent <= 0.0 && !fails
}

fn shape(name: &str) -> Result<&'static Shape, StormError> {
    Shape::by_name(name).filter(|shape| is_live(shape)).ok_or_else(|| {
        let known: Vec<&str> = SHAPES.iter().filter(|shape| is_live(shape)).map(|shape| shape.name).collect();
        StormError::Usage(format!("--shape: there is no live `{name}`; there are {}", known.join(", ")))
    })
}

fn clients(name: &str) -> Result<Clients, StormError> {
    CLIENTS.into_iter().find(|clients| clients.to_string() == name).ok_or_else(|| {
        let known: Vec<String> = CLIENTS.iter().map(ToString::to_string).collect();
        StormError::Usage(format!("--clients: there is no `{name}`; there are {}", known.join(", ")))
    })
}

fn load(text: &str) -> Result<Load, StormError> {
    let number = text.parse().ok().filter(|number| LOADS.contains(number)).ok_or_else(|| {
        let (least, most) = (LOADS.start(), LOADS.end());
        StormError::Usage(format!(
            "--load: `{text}` is no load; write numbers from {least} to {most}, such as 0.8,1.2,2"
        ))
    })?;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "its range was looked at")]
    let percent = (number * 100.0_f64).round() as u32;
    Ok(Load(percent))
}

/// How long it takes to send that many; it has to be longer than the trouble, or nothing is learned of its end.
fn length(requests: u32, shape: &Shape, load: Load) -> Result<Length, StormError> {
    let per_second = load.part() * shape.capacity_per_second();
    let (from, to) = shape.times;
    let over = Duration::from_nanos(if to == Nanos::MAX { from } else { to });
    let lasts = Duration::from_secs_f64(f64::from(requests) / per_second);
    if lasts > over {
        return Ok(Length::SentUntil(Nanos::try_from(lasts.as_nanos()).unwrap_or(Nanos::MAX)));
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "`as` saturates")]
    let least = (over.as_secs_f64() * per_second) as u32 + 1;
    Err(StormError::Usage(format!(
        "--requests: {requests} at load {load} are sent in {:.1} s, before the trouble of `{}` is over at {} s; ask for \
         {least} or more, or for another --shape",
        lasts.as_secs_f64(),
        shape.name,
        over.as_secs()
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error<T: std::fmt::Debug>(result: Result<T, StormError>) -> String {
        result.expect_err("it is wrong").to_string()
    }

    #[test]
    fn a_run_lasts_until_after_the_trouble() {
        let bench = shape("bench").expect("a shape");
        assert_eq!(length(3000, bench, Load(80)).expect("long enough"), Length::SentUntil(93_750_000_000));
        let told = error(length(300, bench, Load(200)));
        assert!(told.contains("are sent in 3.8 s") && told.contains("ask for 1601 or more"), "{told}");
        assert!(length(1601, bench, Load(200)).is_ok());
    }

    #[test]
    fn what_there_is_not_is_refused_with_what_there_is() {
        assert!(error(shape("batch")).contains("there are bench, 2x6x0.05"));
        assert!(error(clients("sdks")).contains("there are sdk, immediate, 7x7, vercel, mixed"));
        for text in ["", "0", "21", "much", "-1", "NaN"] {
            assert!(error(load(text)).contains("such as 0.8,1.2,2"), "{text}");
        }
        assert_eq!(load("1.2").expect("a load"), Load(120));
        assert!(error(kinds("azure-2026-05-29-retry-storm")).contains("issue 5"));
        assert!(error(kinds("retry-storm")).contains("did you mean `azure-2026-05-29-retry-storm`?"));
    }

    #[test]
    fn headers_are_read() {
        let read = header("x-team: blue: red").expect("a header");
        assert_eq!((read.0.as_str(), read.1.to_str().expect("text")), ("x-team", "blue: red"));
        assert!(header("x team").is_err() && header("x-a: b\nc").is_err());
    }
}
