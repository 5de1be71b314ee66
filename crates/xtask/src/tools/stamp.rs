//! Remembers what an installation was made from.

use crate::{Failure, files};
use std::fs;
use std::path::PathBuf;

/// A file that is written last, with the inputs of the installation as they were. An installation that was broken off
/// has no stamp; one whose inputs changed has another.
#[derive(Clone, Debug)]
pub struct Stamp {
    file: PathBuf,
    inputs: String,
}

impl Stamp {
    /// A stamp in `file` for an installation from `inputs`.
    pub fn new(file: PathBuf, inputs: String) -> Self {
        Self { file, inputs }
    }

    /// Whether the installation is there and was made from the same inputs.
    pub fn holds(&self) -> Result<bool, Failure> {
        Ok(files::read_if_present(&self.file)?.is_some_and(|inputs| inputs == self.inputs))
    }

    /// Call before the installation changes anything.
    pub fn remove(&self) -> Result<(), Failure> {
        if self.file.exists() {
            fs::remove_file(&self.file).map_err(Failure::file("remove", &self.file))?;
        }
        Ok(())
    }

    /// Call when the installation is complete.
    pub fn write(&self) -> Result<(), Failure> {
        files::write(&self.file, &self.inputs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_holds_for_the_same_inputs_only() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = folder.path().join("tools/stamp");
        let stamp = Stamp::new(file.clone(), "openai==1".to_owned());
        assert!(!stamp.holds().expect("a missing stamp is no error"));
        stamp.write().expect("the folder can be written");
        assert!(stamp.holds().expect("the stamp can be read"));
        assert!(!Stamp::new(file, "openai==2".to_owned()).holds().expect("the stamp can be read"));
        stamp.remove().expect("the stamp can be removed");
        assert!(!stamp.holds().expect("a missing stamp is no error"));
    }
}
