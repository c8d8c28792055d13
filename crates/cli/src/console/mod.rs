//! Standard output and standard error.
//!
//! Names of files and texts from them may hold control characters, which a terminal would obey: they are
//! written as escapes (`\\u{1b}`).

pub mod interrupt;
pub mod progress;

use std::ffi::OsString;
use std::fmt;
use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// Standard output, as the path of an output file.
pub const OUTPUT: &str = "/dev/fd/1";

/// The name of an output file for people.
pub fn name(path: &Path) -> impl fmt::Display + '_ {
    match path == Path::new(OUTPUT) {
        true => Path::new("standard output").display(),
        false => path.display(),
    }
}

/// Whether standard output belongs to an output file.
static GIVEN_AWAY: AtomicBool = AtomicBool::new(false);

/// What else is said goes to standard error from now on: an output file is written to standard output.
pub fn give_output_away() {
    GIVEN_AWAY.store(true, Ordering::Relaxed);
}

/// Writes one line to standard output, or to standard error if an output file has that.
///
/// # Errors
/// The system's, [`io::ErrorKind::BrokenPipe`] if the reader has gone.
pub fn line(text: impl fmt::Display) -> io::Result<()> {
    let text = escaped(&text.to_string(), &['\n', '\t']);
    if GIVEN_AWAY.load(Ordering::Relaxed) {
        return writeln!(io::stderr(), "{text}");
    }
    let mut out = io::stdout().lock();
    writeln!(out, "{text}")?;
    out.flush()
}

/// Writes one line to standard error, `crosswarp: …`; a closed standard error is ignored.
pub fn complain(text: impl fmt::Display) {
    let text = escaped(&text.to_string(), &[]);
    let _ = writeln!(io::stderr(), "crosswarp: {text}");
}

/// The same of a text that may have several lines.
pub fn complain_in_lines(text: impl fmt::Display) {
    let text = escaped(&text.to_string(), &['\n', '\t']);
    let _ = writeln!(io::stderr(), "crosswarp: {text}");
}

/// `text` with its control characters, but those to `keep`, as escapes.
pub fn escaped(text: &str, keep: &[char]) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() && !keep.contains(&c) {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    out
}

/// The program's arguments, those with control characters as texts with escapes; `None` if there are none such.
pub fn escaped_arguments() -> Option<Vec<OsString>> {
    let mut found = false;
    let arguments = std::env::args_os().map(|argument| {
        let text = argument.to_string_lossy();
        if text.chars().any(char::is_control) {
            found = true;
            return escaped(&text, &[]).into();
        }
        argument
    });
    let arguments = arguments.collect();
    found.then_some(arguments)
}

/// Whether this process is a PE of a process world other than PE 0, which speaks for all.
pub fn is_follower() -> bool {
    crosswarp::shmem::launched_pe().is_some_and(|pe| pe != 0)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(
            escaped("a\u{1b}[31m\n\té\u{9b}", &[]),
            "a\\u{1b}[31m\\n\\té\\u{9b}"
        );
        assert_eq!(escaped("a\n\tb\r\u{7f}", &['\n', '\t']), "a\n\tb\\r\\u{7f}");
    }
}
