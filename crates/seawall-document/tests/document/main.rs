//! The reader as its users meet it: types and texts in, values or mistakes out.

mod common;
mod json;
mod properties;
mod reading;
mod reference;
mod toml;
