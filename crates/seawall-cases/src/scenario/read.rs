//! From text to a scenario.

use super::Scenario;

impl Scenario {
    /// The scenario of a JSON value: what a TOML file says, or a changed copy of it.
    pub fn from_value(value: serde_json::Value) -> Result<Self, serde_json::Error> {
        serde_json::from_value(value)
    }

    /// A scenario file as a JSON value, for runs that change a setting before it is read.
    pub fn value(text: &str) -> Result<serde_json::Value, toml::de::Error> {
        toml::from_str(text)
    }
}
