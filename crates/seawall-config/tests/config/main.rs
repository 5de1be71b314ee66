//! The configuration as its users meet it: files in, settings or mistakes out.

mod common;
mod documents;
mod mistakes;
mod plan;
mod properties;
mod rendering;
mod settings;
