//! Why an installation failed.

use std::path::PathBuf;

use crate::output::staged::OutputError;

/// Why nothing, or not everything, was installed.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// Neither the library nor its sources.
    #[error(
        "{library} is neither beside this command nor in ../lib, and its sources are not in {}; take both from one \
         package, or run `cargo run --release -- install` in a checkout",
        sources.display()
    )]
    NoLibrary {
        /// The library.
        library: &'static str,
        /// Where its sources were.
        sources: PathBuf,
    },
    /// Cargo is not there.
    #[error(
        "{library} is neither beside this command nor in ../lib, and cannot run cargo to build it: {source}"
    )]
    NoCargo {
        /// The library.
        library: &'static str,
        /// The system's reason.
        source: std::io::Error,
    },
    /// Cargo has said why.
    #[error("cargo did not build the library")]
    Build,
    /// Cargo's messages do not name the file.
    #[error("cargo built the library but does not say where")]
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
