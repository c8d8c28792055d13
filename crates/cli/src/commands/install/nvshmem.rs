//! What programs written for NVSHMEM are built with, below a prefix of their own.
//!
//! The archive is found as the library is; under its installed name it has no number behind it, so a command that was
//! installed brings the library alone.

use std::path::Path;

use crosswarp_nvshmem::installation::{LINKS, Libraries, SOURCES, files};

use super::built::Built;
use super::error::InstallError;
use super::file::{copy, link, write};

/// How the library is called, as installed and by cargo.
const LIBRARY: Built = Built {
    package: "crosswarp-nvcompat",
    sources: SOURCES,
    installed: "libnvshmem_host.so.3",
    of_cargo: "libcrosswarp_nvshmem.so",
    // Packages have a prefix of its own for it, so that nobody finds it by NVSHMEM's name who does not look there.
    folders: &["../lib", "../lib/crosswarp-nvshmem/lib"],
};

/// Lays out everything below `prefix`, with the library that came with the command in the file `own`, or that cargo
/// builds.
pub fn install(own: &Path, prefix: &Path) -> Result<(), InstallError> {
    if let Some((shared, archive)) = LIBRARY.beside(own) {
        return lay_out(&Libraries { shared, archive }, prefix);
    }
    // Sources of a registry are no place to build in.
    let target = tempfile::tempdir().map_err(InstallError::Folder)?;
    let (shared, archive) = LIBRARY.build(target.path())?;
    lay_out(&Libraries { shared, archive }, prefix)
}

fn lay_out(libraries: &Libraries, prefix: &Path) -> Result<(), InstallError> {
    for file in files() {
        let mode = if file.executable { 0o755 } else { 0o644 };
        write(&prefix.join(&file.path), &file.content, mode)?;
    }
    let lib = prefix.join("lib");
    copy(&libraries.shared, &lib.join("libnvshmem_host.so.3"))?;
    if let Some(archive) = &libraries.archive {
        copy(archive, &lib.join("libnvshmem.a"))?;
    }
    for (name, target) in LINKS {
        link(target, &prefix.join(name))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_brings_it_along() {
        let folder = tempfile::tempdir().unwrap();
        let lib = folder.path().join("lib/crosswarp-nvshmem/lib");
        let (bin, library) = (folder.path().join("bin"), lib.join("libnvshmem_host.so.3"));
        for folder in [&bin, &lib] {
            std::fs::create_dir_all(folder).unwrap();
        }
        let own = bin.join("crosswarp");
        assert_eq!(LIBRARY.beside(&own), None);
        std::fs::write(&library, "library").unwrap();
        let (shared, archive) = LIBRARY.beside(&own).unwrap();
        assert_eq!(
            shared.canonicalize().unwrap(),
            library.canonicalize().unwrap()
        );
        assert_eq!(archive, None);
    }

    #[test]
    fn a_prefix_has_what_build_files_look_for() {
        let folder = tempfile::tempdir().unwrap();
        let (shared, archive) = (folder.path().join("x.so"), folder.path().join("x.a"));
        std::fs::write(&shared, "library").unwrap();
        std::fs::write(&archive, "archive").unwrap();
        let prefix = folder.path().join("prefix");
        let libraries = Libraries {
            shared,
            archive: Some(archive),
        };
        // A second time over the first, as users do.
        for _ in 0..2 {
            lay_out(&libraries, &prefix).unwrap();
        }
        for path in [
            "include/nvshmem.h",
            "include/nvshmemx.h",
            "include/host/nvshmem_api.h",
            "include/non_abi/nvshmem_version.h",
            "lib/libnvshmem_host.so.3",
            "lib/libnvshmem_host.so",
            "lib/libnvshmem.so",
            "lib/libnvshmem.a",
            "lib/libnvshmem_device.a",
            "lib/cmake/nvshmem/NVSHMEMConfig.cmake",
            "lib/pkgconfig/nvshmem.pc",
            "bin/nvshmrun",
            "bin/nvshmem-info",
        ] {
            assert!(prefix.join(path).is_file(), "{path}");
        }
        assert_eq!(
            std::fs::read_to_string(prefix.join("lib/libnvshmem.so")).unwrap(),
            "library"
        );
    }
}
