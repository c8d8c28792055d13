//! The C library with its headers and wrappers.
//!
//! Everything but the library is part of this command. The library comes with the command: an installation, a package
//! and cargo's folder all have it in a place that follows from where the command is. A command that `cargo install`
//! put alone elsewhere has cargo build it, from the sources the command was built from.

use std::path::{Path, PathBuf};
use std::process::Command;

use crosswarp_shmem_c::installation;

use super::built::Built;
use super::error::InstallError;
use super::file::{copy, write};
use crate::console;

/// What programs are linked with.
#[derive(Debug, PartialEq, Eq)]
pub struct Libraries {
    shared: PathBuf,
    /// Packages come without.
    archive: Option<PathBuf>,
}

/// How the library is called, as installed and by cargo.
const LIBRARY: Built = Built {
    package: "crosswarp-capi",
    sources: installation::SOURCES,
    installed: "libcrosswarp_shmem.so",
    of_cargo: "libcrosswarp_shmem_c.so",
    folders: &["../lib"],
};

/// The libraries that came with the command in the file `own`.
pub fn beside(own: &Path) -> Option<Libraries> {
    LIBRARY.beside(own).map(Libraries::of)
}

/// Has cargo build the libraries in `target`.
pub fn build(target: &Path) -> Result<Libraries, InstallError> {
    LIBRARY.build(target).map(Libraries::of)
}

impl Libraries {
    fn of((shared, archive): (PathBuf, Option<PathBuf>)) -> Self {
        Self { shared, archive }
    }
}

/// Lays out `include`, `lib`, `lib/pkgconfig` and the wrappers in `bin` below `prefix`.
pub fn lay_out(libraries: &Libraries, prefix: &Path) -> Result<(), InstallError> {
    for file in installation::files() {
        let mode = if file.executable { 0o755 } else { 0o644 };
        write(&prefix.join(file.path), file.text.as_bytes(), mode)?;
    }
    let lib = prefix.join("lib");
    copy(&libraries.shared, &lib.join("libcrosswarp_shmem.so"))?;
    if let Some(archive) = &libraries.archive {
        let installed = lib.join("libcrosswarp_shmem.a");
        copy(archive, &installed)?;
        weaken(&installed);
    }
    Ok(())
}

/// Lets a program define `shmem_…` functions of its own beside the archive's, as profiling tools do.
/// Without `objcopy` the archive serves all other programs.
fn weaken(archive: &Path) {
    let mut objcopy = Command::new("objcopy");
    objcopy
        .args(["--wildcard", "--weaken-symbol=shmem_*"])
        .arg(archive);
    if !objcopy.status().is_ok_and(|status| status.success()) {
        console::complain(
            "objcopy did not run: tools that intercept functions need the shared library",
        );
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn libraries_are_found_where_each_kind_of_installation_has_them() {
        for (own, shared, archive) in [
            ("usr/bin/crosswarp", "usr/lib/libcrosswarp_shmem.so", false),
            (
                "prefix/bin/crosswarp",
                "prefix/lib/libcrosswarp_shmem.so",
                true,
            ),
            ("flat/crosswarp", "flat/libcrosswarp_shmem.so", false),
            (
                "release/crosswarp",
                "release/deps/libcrosswarp_shmem_c.so",
                true,
            ),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let own = folder.path().join(own);
            let shared = folder.path().join(shared);
            fs::create_dir_all(own.parent().unwrap()).unwrap();
            assert_eq!(beside(&own), None);
            fs::create_dir_all(shared.parent().unwrap()).unwrap();
            fs::write(&shared, "library").unwrap();
            if archive {
                fs::write(shared.with_extension("a"), "archive").unwrap();
            }
            let found = beside(&own).unwrap();
            assert_eq!(
                found.shared.canonicalize().unwrap(),
                shared.canonicalize().unwrap()
            );
            assert_eq!(found.archive.is_some(), archive, "{}", own.display());
        }
    }
}
