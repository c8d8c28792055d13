//! The C library, built and laid out with its headers and wrappers.
//!
//! It is built by cargo, from the sources this command was built from: a C library takes
//! its own crate types, and what cargo made, and where, its messages say.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::console;
use crate::output::staged::{OutputError, StagedFile};

/// Why nothing, or not everything, was installed.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// The sources are not where they were.
    #[error(
        "the sources of the C library are not in {}; run `cargo run --release -- install` in a checkout", .0.display()
    )]
    NoSources(PathBuf),
    /// Cargo is not there.
    #[error("cannot run cargo: {0}")]
    NoCargo(std::io::Error),
    /// Cargo has said why.
    #[error("cargo did not build the C library")]
    Build,
    /// Cargo's messages do not name a file.
    #[error("cargo built the C library but not its {0}")]
    Missing(&'static str),
    /// A file.
    #[error("{}: {source}", path.display())]
    File {
        /// Its name.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// A file that is installed.
    #[error(transparent)]
    Output(#[from] OutputError),
}

/// What cargo made.
#[derive(Default)]
struct Built {
    shared: Option<PathBuf>,
    archive: Option<PathBuf>,
    /// Where the headers were generated.
    out: Option<PathBuf>,
}

/// Builds, then lays out `bin`, with `own`, the file of this command, too, `include`, `lib` and `lib/pkgconfig` below
/// `prefix`; the folder of the programs.
pub fn install(prefix: &Path, own: &Path) -> Result<PathBuf, InstallError> {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../capi");
    let sources = sources
        .canonicalize()
        .map_err(|_| InstallError::NoSources(sources))?;
    let built = build(&sources)?;
    let shared = built
        .shared
        .ok_or(InstallError::Missing("shared library"))?;
    let archive = built.archive.ok_or(InstallError::Missing("archive"))?;
    let out = built.out.ok_or(InstallError::Missing("headers"))?;

    let name = "libcrosswarp_shmem";
    let (include, lib, bin) = (
        prefix.join("include"),
        prefix.join("lib"),
        prefix.join("bin"),
    );
    copy(&out.join("shmem.h"), &include.join("shmem.h"))?;
    copy(&out.join("pshmem.h"), &include.join("pshmem.h"))?;
    copy(&sources.join("include/shmemx.h"), &include.join("shmemx.h"))?;
    for name in ["shmem.h", "shmemx.h"] {
        let from = sources.join("include").join(format!("mpp-{name}"));
        copy(&from, &include.join("mpp").join(name))?;
    }
    copy(&shared, &lib.join(format!("{name}.so")))?;
    let installed = lib.join(format!("{name}.a"));
    copy(&archive, &installed)?;
    weaken(&installed);

    let wrapper = |from: &str, to: PathBuf, replace: &[(&str, &str)]| {
        let from = sources.join("wrappers").join(from);
        let mut text = fs::read_to_string(&from).map_err(file(&from))?;
        for (name, value) in replace {
            text = text.replace(name, value);
        }
        write(&to, text.as_bytes())
    };
    // The names that other implementations have for the second are different.
    let cxx = ["oshc++", "oshcxx", "oshCC"].map(|name| (name, "c++", "OSHCXX_CXX"));
    for (name, compiler, variable) in [("oshcc", "cc", "OSHCC_CC")].into_iter().chain(cxx) {
        let replace = [
            ("@NAME@", name),
            ("@COMPILER@", compiler),
            ("@VARIABLE@", variable),
        ];
        wrapper("oshcc", bin.join(name), &replace)?;
        executable(&bin.join(name))?;
    }
    let version = [("@VERSION@", env!("CARGO_PKG_VERSION"))];
    wrapper("oshrun", bin.join("oshrun"), &[])?;
    executable(&bin.join("oshrun"))?;
    wrapper(
        "crosswarp-shmem.pc",
        lib.join("pkgconfig/crosswarp-shmem.pc"),
        &version,
    )?;
    copy(own, &bin.join("crosswarp"))?;
    Ok(bin)
}

/// Has cargo build the library and reads from its messages where everything is.
fn build(sources: &Path) -> Result<Built, InstallError> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args([
            "build",
            "--release",
            "--message-format=json-render-diagnostics",
            "--manifest-path",
        ])
        .arg(sources.join("Cargo.toml"))
        .stderr(Stdio::inherit())
        .output()
        .map_err(InstallError::NoCargo)?;
    if !output.status.success() {
        return Err(InstallError::Build);
    }
    let mut built = Built::default();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let Ok(message) = serde_json::from_str::<Value>(line) else {
            continue;
        };
        if !message["package_id"]
            .as_str()
            .is_some_and(|id| id.contains("crosswarp-capi"))
        {
            continue;
        }
        match message["reason"].as_str() {
            Some("build-script-executed") => {
                built.out = message["out_dir"].as_str().map(PathBuf::from)
            }
            Some("compiler-artifact") => {
                let files = message["filenames"].as_array().into_iter().flatten();
                for path in files.filter_map(Value::as_str).map(PathBuf::from) {
                    match path.extension().and_then(OsStr::to_str) {
                        Some("so") => built.shared = Some(path),
                        Some("a") => built.archive = Some(path),
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    Ok(built)
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

fn file(path: &Path) -> impl FnOnce(std::io::Error) -> InstallError {
    let path = path.to_owned();
    |source| InstallError::File { path, source }
}

/// Copies a file, with its permissions, into a folder that is made if need be.
fn copy(from: &Path, to: &Path) -> Result<(), InstallError> {
    let mut source = fs::File::open(from).map_err(file(from))?;
    let mode = source.metadata().map_err(file(from))?.permissions().mode();
    let mut staged = stage(to)?.with_mode(mode & 0o777);
    std::io::copy(&mut source, &mut staged).map_err(file(to))?;
    Ok(staged.commit()?)
}

fn write(to: &Path, bytes: &[u8]) -> Result<(), InstallError> {
    let mut staged = stage(to)?;
    staged.put(bytes)?;
    Ok(staged.commit()?)
}

/// The file is new: a program may be running from the old one.
fn stage(to: &Path) -> Result<StagedFile, InstallError> {
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder).map_err(file(folder))?;
    }
    Ok(StagedFile::create(to)?)
}

fn executable(path: &Path) -> Result<(), InstallError> {
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).map_err(file(path))
}
