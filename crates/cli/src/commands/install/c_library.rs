//! The C library with its headers and wrappers.
//!
//! Everything but the library is part of this command. The library comes with the command: an installation, a package
//! and cargo's folder all have it in a place that follows from where the command is. A command that `cargo install`
//! put alone elsewhere has cargo build it, from the sources the command was built from.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crosswarp_shmem_c::installation;
use serde_json::Value;

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

/// The libraries that came with the command in the file `own`.
pub fn beside(own: &Path) -> Option<Libraries> {
    let folder = own.parent()?;
    // As installed, then as cargo names and places it.
    let places = [
        folder.join("../lib/libcrosswarp_shmem.so"),
        folder.join("libcrosswarp_shmem.so"),
        folder.join("deps/libcrosswarp_shmem_c.so"),
    ];
    let shared = places.into_iter().find(|path| path.is_file())?;
    let archive = shared.with_extension("a");
    Some(Libraries {
        archive: archive.is_file().then_some(archive),
        shared,
    })
}

/// Has cargo build the libraries in `target`.
pub fn build(target: &Path) -> Result<Libraries, InstallError> {
    let sources = Path::new(installation::SOURCES);
    if !sources.join("Cargo.toml").is_file() {
        return Err(InstallError::NoLibrary(sources.to_owned()));
    }
    console::complain(
        "the C library is not beside this command: cargo builds it, which takes a minute or more",
    );
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args([
            "build",
            "--release",
            "--message-format=json-render-diagnostics",
            "--manifest-path",
        ])
        .arg(sources.join("Cargo.toml"))
        .arg("--target-dir")
        .arg(target)
        .stderr(Stdio::inherit())
        .output()
        .map_err(InstallError::NoCargo)?;
    if !output.status.success() {
        return Err(InstallError::Build);
    }
    libraries(&String::from_utf8_lossy(&output.stdout)).ok_or(InstallError::Unnamed)
}

/// The libraries that cargo's messages name.
fn libraries(messages: &str) -> Option<Libraries> {
    let (mut shared, mut archive) = (None, None);
    for line in messages.lines() {
        let Ok(message) = serde_json::from_str::<Value>(line) else {
            continue;
        };
        let ours = message["package_id"]
            .as_str()
            .is_some_and(|id| id.contains("crosswarp-capi"));
        if !ours {
            continue;
        }
        let files = message["filenames"].as_array().into_iter().flatten();
        for path in files.filter_map(Value::as_str).map(PathBuf::from) {
            match path.extension().and_then(OsStr::to_str) {
                Some("so") => shared = Some(path),
                Some("a") => archive = Some(path),
                _ => {}
            }
        }
    }
    Some(Libraries {
        shared: shared?,
        archive,
    })
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

    #[test]
    fn cargos_messages_name_the_libraries() {
        let messages = r#"{"reason":"compiler-artifact","package_id":"path+file:///a/libc#0.2.0","filenames":["/t/liblibc.so"]}
not a message
{"reason":"compiler-artifact","package_id":"path+file:///a/capi#crosswarp-capi@0.1.0","filenames":["/t/libx.rlib","/t/libx.so","/t/libx.a"]}
{"reason":"build-finished","success":true}"#;
        let expected = Libraries {
            shared: "/t/libx.so".into(),
            archive: Some("/t/libx.a".into()),
        };
        assert_eq!(libraries(messages), Some(expected));
        assert_eq!(libraries("{}"), None);
    }
}
