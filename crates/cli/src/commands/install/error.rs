//! Why an installation failed.

use std::path::PathBuf;

use crate::output::staged::OutputError;

/// Why nothing, or not everything, was installed.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// Neither the library nor its sources.
    #[error(
        "libcrosswarp_shmem.so is neither beside this command nor in ../lib, and its sources are not in {}; take both \
         from one package, or run `cargo run --release -- install` in a checkout", .0.display()
    )]
    NoLibrary(PathBuf),
    /// Cargo is not there.
    #[error(
        "libcrosswarp_shmem.so is neither beside this command nor in ../lib, and cannot run cargo to build it: {0}"
    )]
    NoCargo(std::io::Error),
    /// Cargo has said why.
    #[error("cargo did not build the C library")]
    Build,
    /// Cargo's messages do not name the file.
    #[error("cargo built the C library but does not say where")]
    Unnamed,
    /// A folder for what cargo builds.
    #[error("no folder to build in: {0}")]
    Folder(std::io::Error),
    /// A man page.
    #[error("cannot write a man page: {0}")]
    Page(std::io::Error),
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
