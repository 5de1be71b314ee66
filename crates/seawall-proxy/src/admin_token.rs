//! The token of calls that change something: made once, kept in a file that only its owner can read.

use secrecy::{ExposeSecret, SecretString};
use std::fs::OpenOptions;
use std::io::{self, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

const LONGEST_BYTES: u64 = 4_096;

/// The token and where it stands.
#[derive(Debug, Clone)]
pub struct AdminToken {
    digest: blake3::Hash,
    secret: SecretString,
    file: PathBuf,
}

/// Why there is no token.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The file cannot be read or written.
    #[error("the admin token's file {file} cannot be used: {error}. Choose another with `--admin-token-file`.")]
    Io {
        /// Which file.
        file: String,
        /// What the system said.
        error: io::Error,
    },
    /// The file is empty or holds no token.
    #[error("the admin token's file {file} holds no token: delete it, and a new one is made.")]
    Empty {
        /// Which file.
        file: String,
    },
    /// Others can read the file.
    #[error("the admin token's file {file} can be read by others: run `chmod 600 {file}`.")]
    Open {
        /// Which file.
        file: String,
    },
}

impl AdminToken {
    /// Reads the token of `file`, or makes one there with mode 0600, and its folder if need be.
    pub fn load_or_create(file: &Path) -> Result<Self, TokenError> {
        let name = || file.display().to_string();
        let failed = |error| TokenError::Io { file: name(), error };
        match OpenOptions::new().read(true).open(file) {
            Ok(opened) => {
                if opened.metadata().map_err(failed)?.permissions().mode() & 0o077 != 0 {
                    return Err(TokenError::Open { file: name() });
                }
                let mut text = String::new();
                opened.take(LONGEST_BYTES).read_to_string(&mut text).map_err(failed)?;
                match text.trim() {
                    "" => Err(TokenError::Empty { file: name() }),
                    token => Ok(Self::new(token, file)),
                }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if let Some(folder) = file.parent() {
                    std::fs::create_dir_all(folder).map_err(failed)?;
                }
                // Two random UUIDs: 244 bits of the system's randomness.
                let token = format!("{}{}", uuid::Uuid::new_v4().simple(), uuid::Uuid::new_v4().simple());
                let mut created =
                    OpenOptions::new().write(true).create_new(true).mode(0o600).open(file).map_err(failed)?;
                writeln!(created, "{token}").map_err(failed)?;
                Ok(Self::new(&token, file))
            }
            Err(error) => Err(failed(error)),
        }
    }

    fn new(token: &str, file: &Path) -> Self {
        Self { digest: blake3::hash(token.as_bytes()), secret: SecretString::from(token), file: file.to_owned() }
    }

    /// Whether `presented` is the token. Digests are compared, in constant time.
    pub fn matches(&self, presented: &str) -> bool {
        blake3::hash(presented.as_bytes()) == self.digest
    }

    /// The token itself, to hand to the demo's fleet.
    pub fn secret(&self) -> &SecretString {
        &self.secret
    }

    /// Where people find it.
    pub fn hint(&self) -> String {
        self.file.display().to_string()
    }
}

impl PartialEq for AdminToken {
    fn eq(&self, other: &Self) -> bool {
        self.matches(other.secret.expose_secret())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_made_once_and_only_its_owner_can_read_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("new/admin-token");
        let made = AdminToken::load_or_create(&file).unwrap();
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        let read = AdminToken::load_or_create(&file).unwrap();
        assert!(made == read);
        assert!(!made.matches("guess"));
        assert!(!format!("{made:?}").contains(made.secret().expose_secret()));
    }

    #[test]
    fn a_file_that_others_can_read_or_that_is_empty_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("admin-token");
        std::fs::write(&file, "token").unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert!(matches!(AdminToken::load_or_create(&file), Err(TokenError::Open { .. })));
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
        std::fs::write(&file, "\n").unwrap();
        assert!(matches!(AdminToken::load_or_create(&file), Err(TokenError::Empty { .. })));
    }
}
