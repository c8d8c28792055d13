//! Running a program of others: what it says is passed on, and its last lines are kept for the error.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

/// Bytes of each output that are kept.
const KEPT: usize = 2048;
/// Lines of a message that are shown.
const LINES: usize = 12;
/// How long is read on after the program's end, for a process it left behind may hold its outputs open.
const AFTER_END: Duration = Duration::from_secs(1);

/// How a program ended.
pub struct Ended {
    /// Its code or signal.
    pub status: ExitStatus,
    /// The last it wrote to standard error and then standard output, in one line; empty if it wrote nothing.
    pub words: String,
}

/// Runs `command` to its end. Its outputs go to this command's, as they come.
///
/// # Errors
/// The system's, if it does not start.
pub fn run(command: &mut Command) -> io::Result<Ended> {
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let (ended, end) = mpsc::channel::<()>();
    let errors = pass_on(child.stderr.take(), io::stderr(), ended.clone());
    let output = pass_on(child.stdout.take(), io::stdout(), ended);
    let status = child.wait()?;
    // Nothing is ever sent: the channel closes when both have been read to their ends.
    let _ = end.recv_timeout(AFTER_END);
    let last = |kept: &Mutex<VecDeque<u8>>| {
        let kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.iter().copied().collect::<Vec<u8>>()
    };
    let words = [last(&errors), last(&output)].map(|bytes| last_words(&bytes));
    Ok(Ended {
        status,
        words: words
            .into_iter()
            .filter(|words| !words.is_empty())
            .collect::<Vec<_>>()
            .join(" | "),
    })
}

/// Copies `from` to `to` on a thread of its own; the last bytes are in what it returns.
fn pass_on(
    from: Option<impl Read + Send + 'static>,
    mut to: impl Write + Send + 'static,
    ended: mpsc::Sender<()>,
) -> Arc<Mutex<VecDeque<u8>>> {
    let kept = Arc::new(Mutex::new(VecDeque::new()));
    let keep = Arc::clone(&kept);
    thread::spawn(move || {
        let mut buffer = [0; 4096];
        if let Some(mut from) = from {
            while let Ok(count @ 1..) = from.read(&mut buffer) {
                // If nobody reads this command's output the program is read all the same: it must not block.
                let _ = to.write_all(&buffer[..count]).and_then(|()| to.flush());
                let mut kept = keep.lock().unwrap_or_else(PoisonError::into_inner);
                kept.extend(&buffer[..count]);
                let excess = kept.len().saturating_sub(KEPT);
                kept.drain(..excess);
            }
        }
        drop(ended);
    });
    kept
}

/// The last lines of what a tool wrote, in one line, without control characters.
pub fn last_words(bytes: &[u8]) -> String {
    let bytes = &bytes[bytes.len().saturating_sub(KEPT)..];
    let text = String::from_utf8_lossy(bytes);
    let lines: Vec<&str> = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    let lines = &lines[lines.len().saturating_sub(LINES)..];
    let mut words = String::new();
    for c in lines.join(" | ").chars() {
        if c.is_control() {
            words.extend(c.escape_default());
        } else {
            words.push(c);
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_words_are_bounded_and_harmless() {
        assert_eq!(
            last_words(b"one\n\n two \x1b[31mred\n"),
            "one | two \\u{1b}[31mred"
        );
        let long = "a line\n".repeat(100_000);
        assert_eq!(last_words(long.as_bytes()).matches("a line").count(), LINES);
        assert!(last_words(&vec![b'x'; 1 << 20]).len() <= KEPT);
        assert!(last_words(&[0; 5000]).len() <= 6 * KEPT);
    }

    #[test]
    fn both_outputs_and_the_code_are_kept() {
        let script = "echo to output; echo to error >&2; exit 7";
        let ended = run(Command::new("sh").args(["-c", script])).unwrap();
        assert_eq!(ended.status.code(), Some(7));
        assert_eq!(ended.words, "to error | to output");
    }

    /// A process that stays behind with the outputs open does not hold up the end.
    #[test]
    fn what_is_left_behind_is_not_waited_for() {
        let (done, end) = mpsc::channel();
        thread::spawn(move || {
            let script = "sleep 300 & echo $! >&2; exit 1";
            let ended = run(Command::new("sh").args(["-c", script])).unwrap();
            let _ = Command::new("kill").arg(&ended.words).status();
            done.send(ended.status.code()).unwrap();
        });
        assert_eq!(end.recv_timeout(Duration::from_secs(60)), Ok(Some(1)));
    }
}
