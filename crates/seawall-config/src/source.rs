//! Where secrets come from: the environment and files, behind a trait so that checks are pure in tests.

use secrecy::SecretString;
use std::ffi::OsString;
use std::io;
use std::path::Path;

/// Why a secret could not be had. Never holds the secret.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// The environment variable is not set, or the file does not exist.
    #[error("it does not exist")]
    Missing,
    /// It is there and holds nothing but white space.
    #[error("it is empty")]
    Empty,
    /// It is not UTF-8 text.
    #[error("it is not UTF-8 text")]
    NotText,
    /// It is longer than [`LIMIT_BYTES`].
    #[error("it is longer than {LIMIT_BYTES} bytes")]
    TooLong,
    /// The system refused; in its words.
    #[error("{0}")]
    Unreadable(io::Error),
}

/// The longest secret or certificate file that is read: a bundle of all public CAs is a quarter of this.
pub const LIMIT_BYTES: u64 = 1024 * 1024;

/// Gives the secrets that a config file only names.
pub trait CredentialSource {
    /// The value of the environment variable `name`, without white space around it.
    fn environment(&self, name: &str) -> Result<SecretString, SourceError>;

    /// The content of the file at `path`, without white space around it. A relative path starts at the working
    /// directory.
    fn file(&self, path: &Path) -> Result<SecretString, SourceError>;
}

/// The process's own environment and file system.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemSource;

impl CredentialSource for SystemSource {
    fn environment(&self, name: &str) -> Result<SecretString, SourceError> {
        let value: OsString = std::env::var_os(name).ok_or(SourceError::Missing)?;
        trimmed(value.to_str().ok_or(SourceError::NotText)?)
    }

    fn file(&self, path: &Path) -> Result<SecretString, SourceError> {
        trimmed(&read_text(path)?)
    }
}

/// The text of a file of at most [`LIMIT_BYTES`].
pub(crate) fn read_text(path: &Path) -> Result<String, SourceError> {
    use std::io::Read as _;
    let file = std::fs::File::open(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => SourceError::Missing,
        _ => SourceError::Unreadable(error),
    })?;
    let mut bytes = Vec::new();
    file.take(LIMIT_BYTES + 1).read_to_end(&mut bytes).map_err(SourceError::Unreadable)?;
    if bytes.len() as u64 > LIMIT_BYTES {
        return Err(SourceError::TooLong);
    }
    String::from_utf8(bytes).map_err(|_| SourceError::NotText)
}

fn trimmed(text: &str) -> Result<SecretString, SourceError> {
    let text = text.trim();
    if text.is_empty() { Err(SourceError::Empty) } else { Ok(SecretString::from(text)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use secrecy::ExposeSecret as _;

    #[test]
    fn a_file_is_read_without_the_line_end() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("key");
        std::fs::write(&path, "abc\n").expect("a writable folder");
        assert_eq!(SystemSource.file(&path).expect("a readable file").expose_secret(), "abc");
    }

    #[test]
    fn each_failure_is_told_apart() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("key");
        assert!(matches!(SystemSource.file(&path), Err(SourceError::Missing)));
        assert!(matches!(SystemSource.environment("SEAWALL_TEST_NEVER_SET"), Err(SourceError::Missing)));
        assert!(matches!(SystemSource.file(folder.path()), Err(SourceError::Unreadable(_))));
        for (content, expected) in [
            (b" \n".to_vec(), SourceError::Empty),
            (vec![0xff, 0xfe], SourceError::NotText),
            (vec![b'a'; 1024 * 1024 + 1], SourceError::TooLong),
        ] {
            std::fs::write(&path, content).expect("a writable folder");
            let error = SystemSource.file(&path).expect_err("a bad file");
            assert_eq!(error.to_string(), expected.to_string());
        }
    }
}
