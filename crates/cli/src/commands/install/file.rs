//! Files of an installation: each is new, since a program may be running from the old one.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use super::error::InstallError;
use crate::output::staged::StagedFile;

/// Copies a file, with its permissions, into a folder that is made if need be.
pub fn copy(from: &Path, to: &Path) -> Result<(), InstallError> {
    let mut source = fs::File::open(from).map_err(reason(from))?;
    let mode = source
        .metadata()
        .map_err(reason(from))?
        .permissions()
        .mode();
    let mut staged = stage(to, mode & 0o777)?;
    std::io::copy(&mut source, &mut staged).map_err(reason(to))?;
    Ok(staged.commit()?)
}

/// Writes a file into a folder that is made if need be.
pub fn write(to: &Path, bytes: &[u8], mode: u32) -> Result<(), InstallError> {
    let mut staged = stage(to, mode)?;
    staged.put(bytes)?;
    Ok(staged.commit()?)
}

/// Makes `at` a link to `target`, in place of a link that is there.
pub fn link(target: &str, at: &Path) -> Result<(), InstallError> {
    if at.is_symlink() {
        fs::remove_file(at).map_err(reason(at))?;
    }
    symlink(target, at).map_err(reason(at))
}

fn stage(to: &Path, mode: u32) -> Result<StagedFile, InstallError> {
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder).map_err(reason(folder))?;
    }
    Ok(StagedFile::create(to)?.with_mode(mode))
}

fn reason(path: &Path) -> impl FnOnce(std::io::Error) -> InstallError {
    let path = path.to_owned();
    |source| InstallError::File { path, source }
}
