//! The names of output files.

use std::path::{Path, PathBuf};

/// Two outputs with one name.
#[derive(Debug, thiserror::Error)]
#[error("{}: two outputs cannot be the same file", .0.display())]
pub struct SameOutput(pub PathBuf);

/// Refuses the first path that is named twice.
///
/// # Errors
/// [`SameOutput`]
pub fn check_distinct<'a>(paths: impl IntoIterator<Item = &'a Path>) -> Result<(), SameOutput> {
    let mut seen: Vec<&Path> = Vec::new();
    for path in paths {
        if seen.contains(&path) {
            return Err(SameOutput(path.to_owned()));
        }
        seen.push(path);
    }
    Ok(())
}
