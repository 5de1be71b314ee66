//! The cases that are built into the program: the folders under `cases/` as they were at build time.

/// The texts of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LibraryCase {
    /// Its folder's name.
    pub slug: &'static str,
    /// The record of what was published: `case.json`.
    pub record: Option<&'static str>,
    /// What the simulator runs: `scenario.toml`.
    pub scenario: Option<&'static str>,
    /// What can happen of it to any configuration: `drill.toml`.
    pub drill: Option<&'static str>,
    /// What happened and what the scenario makes of it, for people: `case.md`.
    pub text: Option<&'static str>,
}

const LIBRARY: &[LibraryCase] = &include!(concat!(env!("OUT_DIR"), "/library.rs"));

/// Every case, in the order of the names. A case that is being written may lack some of its texts.
pub const fn library() -> &'static [LibraryCase] {
    LIBRARY
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_is_in_order_and_every_case_has_something_to_tell() {
        let slugs: Vec<&str> = library().iter().map(|case| case.slug).collect();
        assert!(slugs.is_sorted() && !slugs.is_empty(), "{slugs:?}");
        for case in library() {
            assert!(
                case.record.or(case.scenario).or(case.drill).or(case.text).is_some(),
                "{} is an empty folder",
                case.slug
            );
        }
    }
}
