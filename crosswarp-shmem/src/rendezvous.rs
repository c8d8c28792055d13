//! The meeting of all PEs under every collective: a flat barrier that carries a tag.
//!
//! Every PE stores the number of its rendezvous in its own line and reads the lines of all others.
//! For the handful of PEs of one host that is one cache-line transfer deep (a counter or a tree is at
//! least two), and no PE writes a line another PE writes. The tag says which collective the PE is in,
//! so that a mismatch is seen by every PE in the same memory access that sees the arrival.
//!
//! Access rules
//! 1. `arrived`, `tags` and `details` of a PE are written by that PE only.
//! 2. `tags[e % 2]` and `details[e % 2]` belong to rendezvous number `e`. They are written before the
//!    Release store of `e` to `arrived` and read by others after an Acquire load that saw it. A PE
//!    can be one rendezvous ahead of another but never two, so two sets suffice.

use crate::parker::Parker;
use crate::sync::{AtomicU64, Ordering};

/// One PE's line. At most 64 bytes: all that a rendezvous without sleepers touches.
#[repr(C)]
pub(crate) struct Arrival {
    arrived: AtomicU64,
    tags: [AtomicU64; 2],
    details: [AtomicU64; 2],
    pub(crate) parker: Parker,
}

/// What a PE says about the collective it is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tag {
    /// Which collective, with its root and element size.
    pub(crate) tag: u64,
    /// Its size in bytes.
    pub(crate) detail: u64,
}

impl Arrival {
    #[cfg(loom)]
    pub(crate) fn new() -> Self {
        Self {
            arrived: AtomicU64::new(0),
            tags: [AtomicU64::new(0), AtomicU64::new(0)],
            details: [AtomicU64::new(0), AtomicU64::new(0)],
            parker: Parker::new(),
        }
    }

    /// Number of the last rendezvous this PE came to.
    #[inline(always)]
    pub(crate) fn arrived(&self) -> u64 {
        // Acquire: pairs with the Release store in `rendezvous`; what the PE did before it arrived
        // happens before what we do after we saw it.
        self.arrived.load(Ordering::Acquire)
    }

    #[inline(always)]
    fn tag(&self, epoch: u64) -> Tag {
        let set = (epoch % 2) as usize;
        Tag {
            tag: self.tags[set].load(Ordering::Relaxed),
            detail: self.details[set].load(Ordering::Relaxed),
        }
    }
}

/// Meets the `n` PEs whose lines `line` gives. `wait` waits until PE `j` has come to `epoch`.
///
/// Returns the first PE whose tag differs from mine, with its tag.
///
/// Memory ordering: everything any PE did before its call happens before everything any PE does
/// after its return (Release on arrival, Acquire on every other PE's arrival).
#[inline]
pub(crate) fn rendezvous<'a, E>(
    line: impl Fn(usize) -> &'a Arrival,
    n: usize,
    me: usize,
    shared: bool,
    tag: Tag,
    mut wait: impl FnMut(usize, u64) -> Result<(), E>,
) -> Result<Option<(usize, Tag)>, E> {
    let mine = line(me);
    // Only this PE writes `arrived`, so a relaxed read sees the last value.
    let epoch = mine.arrived.load(Ordering::Relaxed) + 1;
    let set = (epoch % 2) as usize;
    // These cells were last used for rendezvous `epoch - 2`. Every PE has come to `epoch - 1`, so
    // every PE has left `epoch - 2` and nobody reads them any more.
    mine.tags[set].store(tag.tag, Ordering::Relaxed);
    mine.details[set].store(tag.detail, Ordering::Relaxed);
    mine.arrived.store(epoch, Ordering::Release);

    // Starting behind myself spreads the reads over different lines.
    for j in (me + 1..n).chain(0..me) {
        wait(j, epoch)?;
    }
    // Nobody is woken by a mere arrival, for most arrivals complete nothing. Whoever sees all
    // arrivals wakes those who slept meanwhile: the last to arrive always does, since it misses
    // nobody (two who arrive at once may briefly miss each other, but a sleeper's heavy fence makes
    // the other's arrival visible before it sleeps).
    let mut differing = None;
    for j in 0..n {
        line(j).parker.notify_arrival(shared);
        let theirs = line(j).tag(epoch);
        if theirs != tag && differing.is_none() {
            differing = Some((j, theirs));
        }
    }
    Ok(differing)
}
