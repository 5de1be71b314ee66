//! Lists the folders of the case library, so that a new case is a new folder and no line of Rust.

use std::error::Error;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

fn main() -> Result<(), Box<dyn Error>> {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../cases");
    let mut code = String::from("[\n");
    for folder in folders(&cases)? {
        let slug = folder.file_name().and_then(|name| name.to_str()).ok_or("a case's folder has no readable name")?;
        let text = |name: &str| included(&folder.join(name));
        writeln!(
            code,
            "    LibraryCase {{ slug: {slug:?}, record: {}, scenario: {}, drill: {}, text: {} }},",
            text("case.json")?,
            text("scenario.toml")?,
            text("drill.toml")?,
            text("case.md")?
        )?;
        tell_cargo(&folder);
    }
    code.push_str("]\n");
    tell_cargo(&cases);
    let out: OsString = std::env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR for build scripts")?;
    fs::write(Path::new(&out).join("library.rs"), code)?;
    Ok(())
}

/// The folders in the library, in the order of their names.
fn folders(cases: &Path) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let entries = fs::read_dir(cases).map_err(|error| format!("cannot list {}: {error}", cases.display()))?;
    let mut folders = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>, std::io::Error>>()?;
    folders.retain(|path| path.is_dir());
    folders.sort();
    Ok(folders)
}

/// The expression for a file's text; a case that is being written may not have it yet.
fn included(file: &Path) -> Result<String, Box<dyn Error>> {
    if !file.is_file() {
        return Ok("None".to_owned());
    }
    let file = file.canonicalize()?;
    Ok(format!("Some(include_str!({:?}))", file.to_str().ok_or("a case's path has no readable name")?))
}

fn tell_cargo(path: &Path) {
    println!("cargo::rerun-if-changed={}", path.display());
}
