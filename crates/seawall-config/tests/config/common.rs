//! What the tests of this crate share.

use seawall_config::{Config, CredentialSource, Errors, Overrides, SourceError};
use secrecy::SecretString;
use std::path::Path;

/// Secrets from a list: variables by name, files by path.
pub(crate) struct Secrets(pub(crate) &'static [(&'static str, &'static str)]);

/// What the tests' files name.
pub(crate) const SECRETS: Secrets = Secrets(&[
    ("UP", "upstream-secret-1"),
    ("KEY", "client-secret-1"),
    ("KEY_2", "client-secret-2"),
    ("KEY_AGAIN", "client-secret-1"),
    ("SPACED", "two words"),
    ("DEMO", "demo-key"),
    ("keys/file", "client-secret-3"),
    ("ca.pem", "-----BEGIN CERTIFICATE-----\nMII\n-----END CERTIFICATE-----"),
    ("no-ca.pem", "nothing"),
]);

impl Secrets {
    fn get(&self, name: &str) -> Result<SecretString, SourceError> {
        let found = self.0.iter().find(|(key, _)| *key == name);
        found.map(|(_, value)| SecretString::from(*value)).ok_or(SourceError::Missing)
    }
}

impl CredentialSource for Secrets {
    fn environment(&self, name: &str) -> Result<SecretString, SourceError> {
        self.get(name)
    }

    fn file(&self, path: &Path) -> Result<SecretString, SourceError> {
        self.get(path.to_str().expect("the tests' paths are UTF-8"))
    }
}

/// Checks a text with [`SECRETS`] and without a command line.
pub(crate) fn parse(text: &str) -> Result<Config, Errors> {
    seawall_config::parse(text, "seawall.toml", &SECRETS, &Overrides::default())
}
