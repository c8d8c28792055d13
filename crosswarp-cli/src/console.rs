//! Standard output and standard error.

use std::fmt;
use std::io::{self, Write};

/// Writes one line to standard output.
///
/// # Errors
/// The system's, [`io::ErrorKind::BrokenPipe`] if the reader has gone.
pub fn line(text: impl fmt::Display) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{text}")?;
    out.flush()
}

/// Writes one line to standard error, `crosswarp: …`; a closed standard error is ignored.
pub fn complain(text: impl fmt::Display) {
    let _ = writeln!(io::stderr(), "crosswarp: {text}");
}

/// Whether this process is a PE of a process world other than PE 0, which speaks for all.
pub fn is_follower() -> bool {
    crosswarp::shmem::under_launcher()
        && std::env::var_os("CROSSWARP_PE").is_some_and(|pe| pe != "0")
}

/// Writes bytes to standard output.
///
/// # Errors
/// The system's.
pub fn text(bytes: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(bytes)?;
    out.flush()
}
