//! The PEs' output, line by line with the PE in front.

use std::io::{BufRead, BufReader, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// How long to wait for more output once the PEs have ended: their own children may hold it open.
const DRAIN: Duration = Duration::from_secs(1);
/// How often to look whether output still moves.
const LOOK: Duration = Duration::from_millis(50);

/// The threads that copy output.
pub(super) struct Labels {
    moved: Arc<Moved>,
    copying: Sender<Never>,
    done: Receiver<Never>,
}

/// Never sent; the channel only tells when all senders are gone.
enum Never {}

/// Tells a slow reader of ours from a silent holder of a pipe. Only looked at now and then, so no
/// ordering is needed.
#[derive(Default)]
struct Moved {
    lines: AtomicU64,
    /// Threads that are writing just now.
    writing: AtomicUsize,
}

impl Labels {
    pub(super) fn new() -> Self {
        let (copying, done) = channel();
        Self {
            moved: Arc::default(),
            copying,
            done,
        }
    }

    /// Copies `from`, if there is one, to `to()` line by line on a thread of its own.
    pub(super) fn copy<W: Write>(
        &self,
        pe: usize,
        from: Option<impl Read + Send + 'static>,
        to: impl Fn() -> W + Send + 'static,
    ) -> std::io::Result<()> {
        let Some(from) = from else { return Ok(()) };
        let (moved, copying) = (Arc::clone(&self.moved), self.copying.clone());
        let name = format!("output of PE {pe}");
        std::thread::Builder::new().name(name).spawn(move || {
            copy_lines(pe, from, to, &moved);
            drop(copying);
        })?;
        Ok(())
    }

    /// Waits until all output is through, or until none has come for [`DRAIN`]. Whoever reads ours may
    /// take any time, until `give_up` says otherwise.
    pub(super) fn drain(self, give_up: impl Fn() -> bool) {
        drop(self.copying);
        let mut lines = self.moved.lines.load(Ordering::Relaxed);
        let mut since = Instant::now();
        // Every sender is dropped when its pipe ends; then `recv` fails otherwise than by time.
        while let Err(RecvTimeoutError::Timeout) = self.done.recv_timeout(LOOK) {
            let now = self.moved.lines.load(Ordering::Relaxed);
            if now != lines || self.moved.writing.load(Ordering::Relaxed) > 0 {
                (lines, since) = (now, Instant::now());
            }
            if since.elapsed() >= DRAIN || give_up() {
                return;
            }
        }
    }
}

fn copy_lines<W: Write>(pe: usize, from: impl Read, to: impl Fn() -> W, moved: &Moved) {
    let mut from = BufReader::new(from);
    let mut line = Vec::new();
    loop {
        line.clear();
        line.extend_from_slice(format!("[{pe}] ").as_bytes());
        match from.read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        if line.last() != Some(&b'\n') {
            line.push(b'\n');
        }
        // One write per line keeps the lines of different PEs apart. A closed output ends the
        // copying; the PE then gets SIGPIPE as it would without us.
        moved.writing.fetch_add(1, Ordering::Relaxed);
        let written = to().write_all(&line);
        moved.writing.fetch_sub(1, Ordering::Relaxed);
        moved.lines.fetch_add(1, Ordering::Relaxed);
        if written.is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    /// Takes longer over its first line than the launcher waits for output, then the rest at once.
    #[derive(Clone, Default)]
    struct SlowReader(Arc<Mutex<Vec<u8>>>);

    impl Write for SlowReader {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            let mut taken = self.0.lock().unwrap();
            if taken.is_empty() {
                std::thread::sleep(3 * DRAIN / 2);
            }
            taken.extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_slow_reader_loses_nothing() {
        let (labels, reader) = (Labels::new(), SlowReader::default());
        let to = reader.clone();
        let from = std::io::Cursor::new("one\ntwo\nthree");
        labels.copy(5, Some(from), move || to.clone()).unwrap();
        labels.drain(|| false);
        let taken = reader.0.lock().unwrap();
        assert_eq!(str::from_utf8(&taken), Ok("[5] one\n[5] two\n[5] three\n"));
    }

    #[test]
    fn a_pipe_held_open_in_silence_is_not_waited_for() {
        let (labels, reader) = (Labels::new(), SlowReader::default());
        let (from, held) = std::io::pipe().unwrap();
        labels.copy(0, Some(from), move || reader.clone()).unwrap();
        let start = Instant::now();
        labels.drain(|| false);
        assert!(start.elapsed() >= DRAIN);
        drop(held);
    }
}
