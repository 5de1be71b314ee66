//! Which cells the command line asks for.

use super::Storms;
use seawall_core::capacity;
use seawall_core::protection::Protection;
use seawall_sim::storms::{CLIENTS, Cell, LAWS, LOADS, Law, Length, Router, SHAPES, Shape, Storm};
use std::fmt::Display;

/// The cells, in the order of the set; an error names what there is.
pub(super) fn cells(storms: &Storms) -> Result<Vec<Cell>, String> {
    let shapes = shapes(&storms.shape)?;
    let laws = storms.law.as_deref().map(|text| picked("--law", text, &LAWS)).transpose()?;
    let loads = picked("--load", &storms.load, &LOADS)?;
    let clients = picked("--clients", &storms.clients, &CLIENTS)?;
    let kinds = picked("--storm", &storms.storm, &[Storm::A, Storm::B])?;
    let length = if storms.ten_minutes { Length::TenMinutes } else { Length::Short };
    let has_law = |shape: &Shape, law: Law| laws.as_ref().map_or(shape.laws[0] == law, |laws| laws.contains(&law));
    let is_wanted = |cell: &Cell| {
        shapes.contains(&cell.shape.name)
            && has_law(cell.shape, cell.law)
            && loads.contains(&cell.load)
            && clients.contains(&cell.clients)
            && kinds.contains(&cell.storm)
    };
    let cells: Vec<Cell> = Cell::all(length).filter(is_wanted).collect();
    if cells.is_empty() {
        let laws: Vec<String> = SHAPES
            .iter()
            .filter(|shape| shapes.contains(&shape.name))
            .map(|shape| format!("{} has {}", shape.name, words(shape.laws)))
            .collect();
        return Err(format!("--law: no shape that was asked for has such a law; {}", laws.join("; ")));
    }
    Ok(cells)
}

/// Seawall without each protection that is asked for.
fn without(storms: &Storms) -> Result<Vec<Router>, String> {
    let Some(text) = &storms.without else { return Ok(Vec::new()) };
    let known = Protection::ALL.map(Protection::name);
    let names = picked("--without", text, &known)?;
    Ok(names.into_iter().filter_map(Protection::from_name).map(Router::Without).collect())
}

/// Seawall with each method that is asked for, and without each protection.
pub(super) fn routers(storms: &Storms) -> Result<Vec<Router>, String> {
    let known: Vec<&'static str> = capacity::REGISTRY.iter().map(|entry| entry.name).collect();
    let mut routers = match &storms.method {
        None => vec![Router::default()],
        Some(text) => picked("--method", text, &known)?.into_iter().map(Router::Seawall).collect(),
    };
    routers.extend(without(storms)?);
    Ok(routers)
}

fn shapes(text: &str) -> Result<Vec<&'static str>, String> {
    let mut names = Vec::new();
    for word in text.split(',').map(str::trim) {
        let of_set = SHAPES.iter().filter(|shape| word == "all" || (word == "set" && shape.is_of_the_set));
        let before = names.len();
        names.extend(of_set.chain(Shape::by_name(word)).map(|shape| shape.name));
        if names.len() == before {
            let known: Vec<&str> = SHAPES.iter().map(|shape| shape.name).collect();
            return Err(format!("--shape: there is no `{word}`; there are {}, set and all", known.join(", ")));
        }
    }
    Ok(names)
}

/// The values whose names a list names; `all` names every one.
fn picked<T: Copy + Display>(option: &str, text: &str, all: &[T]) -> Result<Vec<T>, String> {
    let mut values = Vec::new();
    for word in text.split(',').map(str::trim) {
        let before = values.len();
        values.extend(all.iter().filter(|value| word == "all" || value.to_string() == word));
        if values.len() == before {
            return Err(format!("{option}: there is no `{word}`; there are {} and all", words(all)));
        }
    }
    Ok(values)
}

fn words<T: Display>(values: &[T]) -> String {
    values.iter().map(T::to_string).collect::<Vec<_>>().join(", ")
}
