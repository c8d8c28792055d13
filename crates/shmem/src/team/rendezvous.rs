//! The rendezvous under every collective: a flat barrier that carries a tag and a few bytes.
//!
//! Every PE of a team writes its own lines and reads those of all others. For the handful of PEs of one
//! host that is one cache-line transfer deep (a counter or a tree is at least two), and no PE writes a
//! line another PE writes. The tag says which collective the PE is in, so that a mismatch is seen by
//! every PE in the same memory access that sees the arrival; a payload of up to [`LINE_BYTES`] rides along.
//!
//! Access rules
//! 1. [`Arrivals`] are written by its PE only.
//! 2. `lines[e % 2]`, like everything else that exists twice, belongs to rendezvous number `e`. It is written
//!    before the Release store of `e` to its `epoch` and read by others after an Acquire load that saw it.
//!    A PE can be one rendezvous ahead of another but never two, so two sets suffice. So payloads are plain data.
//! 3. Epochs only grow, also from one team to the next that uses it. So whoever still waits in
//!    the last rendezvous of the old team sees it as complete. It may read tags that the next team writes
//!    meanwhile, which it ignores; so tags are atomics. It reads no payload.
#![allow(unsafe_code)] // reads and writes the payloads, which epochs guard

use crate::wait::parker::Parker;
use crate::wait::sync::{AtomicU64, Ordering, UnsafeCell};

/// Bytes of payload beside the tag: a collective that needs no more is one line's transfer.
pub(crate) const LINE_BYTES: usize = 40;

/// What one PE shows in one rendezvous. One cache line, alone in its pair because processors prefetch in
/// pairs.
#[repr(C, align(128))]
struct Line {
    epoch: AtomicU64,
    tag: AtomicU64,
    /// At a multiple of 16, so that any element type is aligned.
    payload: UnsafeCell<[u64; LINE_BYTES / 8]>,
    detail: AtomicU64,
    /// In a world of several hosts: bytes in the slot beside, for who sends them on.
    in_slot: AtomicU64,
}

// SAFETY: all but `payload` are atomics, and that is read and written by rule 2, in functions whose callers promise so.
unsafe impl Sync for Line {}

/// One PE's arrivals at the rendezvous of one team.
#[repr(C)]
pub(crate) struct Arrivals {
    lines: [Line; 2],
}

/// What a PE says about the collective it is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tag {
    /// Which collective, with its root and element size.
    pub(crate) tag: u64,
    /// Its size in bytes.
    pub(crate) detail: u64,
}

impl Arrivals {
    #[cfg(loom)]
    pub(crate) fn new() -> Self {
        let zero = || AtomicU64::new(0);
        let line = || Line {
            epoch: zero(),
            tag: zero(),
            payload: UnsafeCell::new([0; LINE_BYTES / 8]),
            detail: zero(),
            in_slot: zero(),
        };
        Self {
            lines: [line(), line()],
        }
    }

    #[inline(always)]
    fn line(&self, epoch: u64) -> &Line {
        &self.lines[(epoch % 2) as usize]
    }

    /// Number of the last rendezvous the owner came to. For the owner itself, who alone writes it.
    #[inline(always)]
    pub(crate) fn epoch(&self) -> u64 {
        let [even, odd] = &self.lines;
        let (even, odd) = (&even.epoch, &odd.epoch);
        even.load(Ordering::Relaxed)
            .max(odd.load(Ordering::Relaxed))
    }

    /// Makes `epoch` the number of the last rendezvous, before the first of a new team; no smaller than any
    /// before (rule 3). Nobody waits for `epoch` itself, so this is no arrival.
    pub(crate) fn begin(&self, epoch: u64) {
        self.line(epoch).epoch.store(epoch, Ordering::Release);
    }

    /// Shows that the owner has come to rendezvous `epoch`: the owner does so itself or, if it is of another host, the
    /// agent for it.
    ///
    /// # Safety
    /// As of `write_payload`.
    #[inline(always)]
    pub(crate) unsafe fn announce(&self, epoch: u64, tag: Tag, payload: &[u64]) {
        let line = self.line(epoch);
        // All stores to the line in one go: a peer that polls it takes it away, and a store after that would
        // have to fetch it back.
        // SAFETY: by the caller.
        unsafe { self.write_payload(epoch, payload) };
        line.tag.store(tag.tag, Ordering::Relaxed);
        line.detail.store(tag.detail, Ordering::Relaxed);
        line.epoch.store(epoch, Ordering::Release);
    }

    /// Whether the owner has come to rendezvous `epoch`.
    #[inline(always)]
    pub(crate) fn came_to(&self, epoch: u64) -> bool {
        // Acquire: pairs with the Release store in `rendezvous`; what the PE did before it arrived happens
        // before what we do after we saw it.
        self.line(epoch).epoch.load(Ordering::Acquire) >= epoch
    }

    /// The payload of rendezvous `epoch`, to be read as rule 2 says. Aligned to 16 bytes.
    #[inline(always)]
    pub(crate) fn payload(&self, epoch: u64) -> *const u64 {
        self.line(epoch).payload.with(|words| words.cast())
    }

    /// The first words of the payload of rendezvous `epoch`.
    ///
    /// # Safety
    /// The calling thread has seen the owner come to `epoch`, and its own PE has not come to `epoch + 1` (rule 2).
    #[inline(always)]
    pub(crate) unsafe fn payload_words<const N: usize>(&self, epoch: u64) -> [u64; N] {
        const { assert!(N <= LINE_BYTES / 8) };
        let words = self.payload(epoch);
        // SAFETY: in bounds; nobody writes meanwhile, by the caller. Volatile: what is checked after is what was
        // read, whatever another process does.
        std::array::from_fn(|i| unsafe { words.add(i).read_volatile() })
    }

    /// Notes how much the owner puts into its slot for rendezvous `epoch`, before it arrives.
    pub(crate) fn set_in_slot(&self, epoch: u64, bytes: usize) {
        // Relaxed: the arrival orders it.
        let in_slot = &self.line(epoch).in_slot;
        in_slot.store(bytes as u64, Ordering::Relaxed);
    }

    /// How the owner came to rendezvous `epoch`: what it called, its payload, and how much is in its slot.
    ///
    /// # Safety
    /// As of [`payload_words`](Self::payload_words).
    pub(crate) unsafe fn shown(&self, epoch: u64) -> (Tag, [u64; LINE_BYTES / 8], usize) {
        // SAFETY: by the caller.
        let words = unsafe { self.payload_words(epoch) };
        let in_slot = self.line(epoch).in_slot.load(Ordering::Relaxed);
        (self.tag(epoch), words, in_slot as usize)
    }

    /// # Safety
    /// The calling thread is its PE's one in the rendezvous, all others have come to `epoch - 1` and the owner not to
    /// `epoch` (rule 2).
    #[inline(always)]
    unsafe fn write_payload(&self, epoch: u64, values: &[u64]) {
        if values.is_empty() {
            return;
        }
        self.line(epoch).payload.with_mut(|words| {
            let words = words.cast::<u64>();
            for (i, &value) in values.iter().enumerate().take(LINE_BYTES / 8) {
                // SAFETY: in bounds; nobody reads or writes meanwhile, by the caller. Volatile: one store each
                // instead of a call of memcpy.
                unsafe { words.add(i).write_volatile(value) };
            }
        });
    }

    #[inline(always)]
    fn tag(&self, epoch: u64) -> Tag {
        let line = self.line(epoch);
        Tag {
            tag: line.tag.load(Ordering::Relaxed),
            detail: line.detail.load(Ordering::Relaxed),
        }
    }
}

/// A rendezvous of the `n` PEs of a team, whose arrivals `arrivals` gives and who sleep on what `parker` gives.
/// `announced` is called when this PE has come. `wait` waits until PE `j` has come to the given epoch. `payload` goes
/// into the line; what goes elsewhere must be in place for rendezvous number `arrivals(me).epoch() + 1`.
///
/// Returns the first PE whose tag differs from mine, with its tag.
///
/// Memory ordering: everything any PE did before its call happens before everything any PE does
/// after its return (Release on arrival, Acquire on every other PE's arrival).
///
/// # Safety
/// `arrivals(me)` is the calling PE's, and the calling thread is the only one of it in a rendezvous there. `wait`
/// returns `Ok` only after it has seen `came_to`.
#[inline(always)]
#[allow(clippy::too_many_arguments)] // what the model and the world have each in their way
pub(crate) unsafe fn rendezvous<'a, E>(
    arrivals: impl Fn(usize) -> &'a Arrivals,
    parker: impl Fn(usize) -> &'a Parker,
    n: usize,
    me: usize,
    shared: bool,
    tag: Tag,
    payload: &[u64],
    announced: impl FnOnce(u64) -> Result<(), E>,
    mut wait: impl FnMut(usize, u64) -> Result<(), E>,
) -> Result<Option<(usize, Tag)>, E> {
    let mine = arrivals(me);
    let epoch = mine.epoch() + 1;
    // This line was last used for rendezvous `epoch - 2`. Every PE has come to `epoch - 1`, so every PE has
    // left `epoch - 2` and nobody reads it any more.
    // SAFETY: by the caller, and as just said.
    unsafe { mine.announce(epoch, tag, payload) };
    announced(epoch)?;

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
        parker(j).notify_arrival(shared);
        let theirs = arrivals(j).tag(epoch);
        if theirs != tag && differing.is_none() {
            differing = Some((j, theirs));
        }
    }
    Ok(differing)
}

#[cfg(not(loom))]
const _: () = {
    assert!(size_of::<Line>() == 128);
    assert!(std::mem::offset_of!(Line, payload) % 16 == 0);
    assert!(std::mem::offset_of!(Line, detail) + 8 <= 64);
};
