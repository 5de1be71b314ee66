//! A case: the file as it is, and changed copies of it.

use seawall_cases::scenario::{Change, Counterfactual, RampPoint, Scenario, Setting, Span};
use serde_json::Value;

/// A scenario with its name.
#[derive(Clone, Debug)]
pub struct Case {
    /// Its folder's name.
    pub slug: String,
    /// The scenario.
    pub scenario: Scenario,
    value: Value,
}

impl Case {
    /// The case of a scenario file's text.
    pub fn new(slug: &str, text: &str) -> Result<Self, String> {
        let value = Scenario::value(text).map_err(|error| error.to_string())?;
        Self::of(slug, value)
    }

    fn of(slug: &str, value: Value) -> Result<Self, String> {
        let scenario = Scenario::from_value(value.clone()).map_err(|error| error.to_string())?;
        Ok(Self { slug: slug.to_owned(), scenario, value })
    }

    /// The scenario of a counterfactual.
    pub fn with(&self, change: &Counterfactual) -> Result<Scenario, String> {
        let mut value = self.value.clone();
        if let Some(Value::Array(events)) = value.get_mut("event") {
            let is_left_out = |event: &Value| change.without.iter().any(|name| event["name"] == **name);
            events.retain(|event| !is_left_out(event));
        }
        // The checks are those of the case. Kept in the copy, they would name events that it does not have.
        if let Some(sections) = value.as_object_mut() {
            sections.retain(|name, _| name != "counterfactual" && name != "check");
        }
        for setting in &change.set {
            apply(&mut value, setting)?;
        }
        // The copy has no copies and no checks of its own: they may name events that are left out.
        if let Some(file) = value.as_object_mut() {
            file.remove("counterfactual");
            file.remove("check");
        }
        Scenario::from_value(value).map_err(|error| format!("counterfactual `{}`: {error}", change.name))
    }

    /// The scenario with one setting of one actor multiplied.
    pub fn varied(&self, actor: &str, key: &str, factor: f64) -> Result<Scenario, String> {
        let mut value = self.value.clone();
        let place = find(&mut value, actor, key)?;
        *place = multiplied(place, factor).ok_or_else(|| format!("`{actor}.{key}` is no number and no span"))?;
        Scenario::from_value(value).map_err(|error| format!("{actor}.{key}: {error}"))
    }
}

fn multiplied(value: &Value, factor: f64) -> Option<Value> {
    match value {
        Value::Number(number) if number.is_u64() => {
            // At least one more, or one less: a variation that changes nothing would show nothing.
            let exact = number.as_f64()? * factor;
            let whole = if factor < 1.0 { libm::floor(exact) } else { libm::ceil(exact) };
            Some(Value::from(crate::random::nanos(whole)))
        }
        Value::Number(number) => Some(Value::from(number.as_f64()? * factor)),
        Value::String(text) => {
            #[expect(clippy::cast_precision_loss, reason = "spans are far below 2^53 microseconds")]
            let micros = (Span::parse(text)?.nanos / 1000) as f64 * factor;
            Some(Value::from(format!("{}us", crate::random::nanos(libm::round(micros)))))
        }
        _ => None,
    }
}

/// The place of a key of the actor, or the event, of that name; the last part of the key need not exist yet.
fn find<'a>(value: &'a mut Value, actor: &str, key: &str) -> Result<&'a mut Value, String> {
    let sections = value.as_object_mut().into_iter().flat_map(serde_json::Map::iter_mut);
    let items = sections.filter_map(|(_, section)| section.as_array_mut()).flatten();
    let mut place = items
        .into_iter()
        .find(|item| item["name"] == *actor)
        .ok_or_else(|| format!("there is no actor and no event `{actor}` in the file"))?;
    for part in key.split('.') {
        place = if let Ok(index) = part.parse::<usize>() {
            place.get_mut(index).ok_or_else(|| format!("`{actor}.{key}` has no item {index}"))?
        } else {
            let table = place.as_object_mut().ok_or_else(|| format!("`{actor}.{key}` is no table"))?;
            table.entry(part).or_insert(Value::Null)
        };
    }
    Ok(place)
}

fn apply(value: &mut Value, setting: &Setting) -> Result<(), String> {
    if setting.remove {
        let (table, key) = setting.key.rsplit_once('.').unwrap_or(("", &setting.key));
        let place =
            if table.is_empty() { find_actor(value, &setting.actor)? } else { find(value, &setting.actor, table)? };
        if let Some(table) = place.as_object_mut() {
            table.remove(key);
        }
        return Ok(());
    }
    let place = find(value, &setting.actor, &setting.key)?;
    let number = setting.number.map(|number| {
        let is_whole = libm::round(number).to_bits() == number.to_bits() && number >= 0.0;
        if is_whole { Value::from(crate::random::nanos(number)) } else { Value::from(number) }
    });
    let given = [
        setting.text.as_deref().map(Value::from),
        number,
        setting.flag.map(Value::from),
        setting.curve.as_ref().map(|curve| curve.iter().map(corner).collect()),
        setting.change.as_ref().and_then(change),
    ];
    let given: Vec<Value> = given.into_iter().flatten().collect();
    let [new] = given.as_slice() else {
        return Err(format!("`{}.{}` takes exactly one of text, number, flag, curve", setting.actor, setting.key));
    };
    *place = new.clone();
    Ok(())
}

fn find_actor<'a>(value: &'a mut Value, actor: &str) -> Result<&'a mut Value, String> {
    let sections = value.as_object_mut().into_iter().flat_map(serde_json::Map::iter_mut);
    let mut items = sections.filter_map(|(_, section)| section.as_array_mut()).flatten();
    items
        .find(|item| item["name"] == *actor)
        .ok_or_else(|| format!("there is no actor and no event `{actor}` in the file"))
}

fn corner(point: &RampPoint) -> Value {
    serde_json::json!([point.0.to_string(), point.1])
}

fn change(change: &Change) -> Option<Value> {
    let burst = change.burst.as_ref()?;
    Some(serde_json::json!({ "burst": { "count": burst.count, "apart": burst.apart.to_string() } }))
}
