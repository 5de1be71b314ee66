//! Lists and reads files in a fixed order.

use crate::Failure;
use std::fs;
use std::path::{Path, PathBuf};

/// Folders that are built, fetched or not ours.
const SKIPPED: [&str; 4] = ["target", ".git", "node_modules", "seawall-data"];

/// Every file below `folder` whose name ends in one of `endings`, sorted. A folder that does not exist has no files.
pub fn below(folder: &Path, endings: &[&str]) -> Result<Vec<PathBuf>, Failure> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for path in entries(&folder)? {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if path.is_dir() {
                if !SKIPPED.contains(&name.as_str()) {
                    folders.push(path);
                }
            } else if endings.iter().any(|ending| name.ends_with(ending)) {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

/// What lies directly in `folder`, sorted; nothing if it does not exist.
pub fn entries(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).map_err(Failure::file("list", folder))? {
        paths.push(entry.map_err(Failure::file("list", folder))?.path());
    }
    paths.sort();
    Ok(paths)
}

/// The text of a file.
pub fn read(path: &Path) -> Result<String, Failure> {
    fs::read_to_string(path).map_err(Failure::file("read", path))
}

/// The text of a file, or `None` if there is no such file.
pub fn read_if_present(path: &Path) -> Result<Option<String>, Failure> {
    if path.is_file() { read(path).map(Some) } else { Ok(None) }
}

/// Writes a file and the folders above it.
pub fn write(path: &Path, text: &str) -> Result<(), Failure> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(Failure::file("create", folder))?;
    }
    fs::write(path, text).map_err(Failure::file("write", path))
}
