//! Small puts to one host, and questions that nobody waits for one by one, which travel together.
//!
//! A message of its own costs a PE ten times what the put does. So small puts wait here for more of their kind, and
//! leave at the front of the next message to their host, whatever it is, or when there are enough of them. So do
//! non-blocking gets of few bytes and fetching atomics, whose [answers](crate::transport::remote::answers) come
//! together, too. The agent does them in the order in which they were issued, and before the message that brought them:
//! so a fence between two of them needs nothing more.
//!
//! A PE may compute for a long time after a put, without another call. A thread of its own, the *watch*, then sends
//! what has waited for a [`TICK`] or two. It begins with the first put that waits and sleeps while there are none.

use crate::transport::message::{Head, Kind, PART, Part};
use crate::transport::remote::Wire;
use std::mem;
use std::sync::{Arc, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Puts of more bytes are messages of their own.
pub(crate) const SMALL: usize = 2 << 10;
/// Most bytes that wait for one host.
pub(crate) const ROOM: usize = 8 << 10;
/// The watch looks so often.
const TICK: Duration = Duration::from_micros(500);
/// After so many looks that found nothing it sleeps until the next put, which has to wake it.
const IDLE: u32 = 20;

// A head names the bytes of the puts in 16 bits, and each small put has room.
const _: () = assert!(ROOM <= u16::MAX as usize && PART + SMALL <= ROOM);

/// What waits for one host.
#[derive(Default)]
pub(crate) struct Combined {
    /// One [`Part`] after the other, each followed by its bytes.
    parts: Vec<u8>,
    /// A fence has come since the first of them.
    fenced: bool,
    /// There is a question among them.
    asks: bool,
    /// The tick in which the first of them was issued.
    since: u64,
}

impl Combined {
    pub(crate) fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Whether so many bytes can still be added.
    pub(crate) fn has_room(&self, bytes: usize) -> bool {
        self.parts.len() + PART + bytes <= ROOM
    }

    /// Adds a put or a question, issued in this tick of the watch.
    pub(crate) fn push(&mut self, part: Part, bytes: &[u8], tick: u64) {
        self.asks |= part.is_question();
        if self.parts.is_empty() {
            // Allocates the first time, and after a thread has kept the buffer because another had begun the next.
            self.parts.reserve(ROOM + SMALL);
            self.since = tick;
        }
        self.parts.extend_from_slice(bytemuck::bytes_of(&part));
        self.parts.extend_from_slice(bytes);
    }

    /// What is issued from now on is to be done after what waits.
    pub(crate) fn fence(&mut self) {
        self.fenced = !self.is_empty();
    }

    /// What waits, whether a fence has come since its beginning, and whether there are questions in it.
    pub(crate) fn take(&mut self) -> (Vec<u8>, bool, bool) {
        (
            mem::take(&mut self.parts),
            mem::take(&mut self.fenced),
            mem::take(&mut self.asks),
        )
    }

    /// Takes the buffer back, for the next puts.
    pub(crate) fn reuse(&mut self, mut parts: Vec<u8>) {
        if self.parts.capacity() == 0 {
            parts.clear();
            self.parts = parts;
        }
    }
}

/// The watch of a PE, as its [`State`](crate::transport::remote::State) knows it.
#[derive(Default)]
pub(crate) struct Watch {
    thread: Option<JoinHandle<()>>,
    /// It looks every tick; else it sleeps.
    looking: bool,
    ended: bool,
    /// Looks so far.
    pub(crate) tick: u64,
}

impl Wire {
    /// Sees to it that somebody looks after puts that wait. False: there is no thread to be had.
    pub(crate) fn begin_watch(self: &Arc<Self>, watch: &mut Watch) -> bool {
        if watch.thread.is_none() {
            let wire = Arc::clone(self);
            let thread = std::thread::Builder::new().name("crosswarp puts".into());
            watch.thread = thread.spawn(move || wire.watch()).ok();
        }
        if watch.thread.is_some() && !watch.looking {
            watch.looking = true;
            self.wake.notify_one();
        }
        watch.looking
    }

    /// What the watch does.
    fn watch(&self) {
        let mut idle = 0;
        let mut state = self.state();
        while !state.watch.ended {
            // A lock is poisoned by no panic of ours, and what it guards is whole.
            if !state.watch.looking {
                let woken = self.wake.wait(state);
                state = woken.unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            let ticked = self.wake.wait_timeout(state, TICK);
            (state, _) = ticked.unwrap_or_else(PoisonError::into_inner);
            state.watch.tick += 1;
            let now = state.watch.tick;
            idle = if self.waiting() { 0 } else { idle + 1 };
            if idle > IDLE {
                (state.watch.looking, idle) = (false, 0);
            }
            let late = |host: &usize| {
                let combined = &state.channels[*host].combined;
                !combined.is_empty() && combined.since + 2 <= now
            };
            let late: Vec<usize> = (0..state.channels.len()).filter(late).collect();
            if !late.is_empty() {
                drop(state);
                for host in late {
                    self.send(host, Head::new(Kind::Puts), &[], false);
                }
                state = self.state();
            }
        }
    }

    /// Ends the watch.
    pub(crate) fn end_watch(&self) {
        let thread = {
            let watch = &mut self.state().watch;
            watch.ended = true;
            watch.thread.take()
        };
        self.wake.notify_one();
        if let Some(thread) = thread {
            // It does not panic; if it had, what it left would have been sent by the quiet that came before.
            let _ = thread.join();
        }
    }
}
