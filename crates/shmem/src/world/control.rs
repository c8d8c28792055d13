//! What the PEs of a world share beside their heaps: parkers, arrivals and slots for the rendezvous of teams,
//! wait records, and who is alive.
//!
//! Access rules
//! 1. `parker` and each `arrivals` have their own rules (see [`crate::wait::parker`], [`crate::team::rendezvous`]).
//! 2. `slots[e % 2]` beside them belongs to rendezvous number `e`: written by its PE before it
//!    arrives, read by the others after they saw the arrival.
//! 3. `record` and `awake_on` are written by their PE only.
//! 4. `state` is written by the PE itself and, once that PE has ended, by the launcher; that of a PE of another host by
//!    the agent, like its arrivals, slots, `proposal` and `calls`. `segments` is written by the launcher.
//! 5. `turn` is used by the threads of its PE only, as [`crate::team::biased_lock`] says.
//! 6. `proposal` is written by its PE, and `calls[from]` of a PE by PE `from`, as [`crate::team::active_set`] says.
#![allow(unsafe_code)] // overlays the structures below on shared zeroed memory

use crate::memory::region::Region;
use crate::team::biased_lock::Turn;
use crate::team::rendezvous::{Arrivals, LINE_BYTES};
use crate::wait::parker::Parker;
use crate::wait::sync::{AtomicU32, AtomicU64, Ordering, UnsafeCell};

/// Bytes of one slot: payloads up to this size are copied into it and need one rendezvous only.
pub(crate) const SLOT_BYTES: usize = 4096;

pub(crate) const MAGIC: u64 = u64::from_le_bytes(*b"crosswrp");
/// Changes with every change of the layouts in this file.
pub(crate) const LAYOUT: u32 = 5;

/// Most teams a PE can be in at a time, the world and the shared team included.
pub(crate) const MAX_TEAMS: usize = 1024;
/// Words of a set of team indices.
pub(crate) const INDEX_WORDS: usize = MAX_TEAMS / 64;

/// How far a PE is: not there yet, running, or gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum PeState {
    Absent = 0,
    Joined = 1,
    Finished = 2,
    Failed = 3,
}

impl PeState {
    fn from_u32(word: u32) -> Self {
        match word {
            0 => Self::Absent,
            1 => Self::Joined,
            2 => Self::Finished,
            _ => Self::Failed,
        }
    }
}

/// What one PE shows to the others. Parts are aligned to two cache lines, because processors prefetch in
/// pairs. Most `teams` are never touched and take no memory.
#[repr(C, align(128))]
pub(crate) struct PeControl {
    pub(crate) parker: Parker,
    status: PeStatus,
    pub(crate) proposal: Proposed,
    pub(crate) teams: [TeamControl; MAX_TEAMS],
}

/// What a PE contributes to the choice of an index for a new team; [`crate::team::active_set`] says who may look.
#[repr(C, align(128))]
pub(crate) struct Proposed(pub(crate) UnsafeCell<[u64; 1 + INDEX_WORDS]>);

// SAFETY: read and written by rule 6 only.
unsafe impl Sync for Proposed {}

/// What a PE shows to one of its teams: its arrivals, slots for payloads that do not fit their lines, and which of its
/// threads may use them.
#[repr(C)]
pub(crate) struct TeamControl {
    pub(crate) arrivals: Arrivals,
    slots: [Slot; 2],
    /// On a line of its own: the others look at `arrivals` while it changes.
    pub(crate) turn: Turn,
}

impl TeamControl {
    #[cfg(loom)]
    pub(crate) fn new() -> Self {
        let slot = || Slot(UnsafeCell::new([0; SLOT_BYTES / 8]));
        Self {
            arrivals: Arrivals::new(),
            slots: [slot(), slot()],
            turn: Turn::default(),
        }
    }

    /// Where a payload of `bytes` bytes, at most [`SLOT_BYTES`], of rendezvous `epoch` is; read by rule 2. Aligned
    /// to 16 bytes.
    #[inline(always)]
    pub(crate) fn payload(&self, epoch: u64, bytes: usize) -> *const u8 {
        if bytes <= LINE_BYTES {
            self.arrivals.payload(epoch).cast()
        } else {
            self.slot(epoch)
        }
    }

    /// The slot of rendezvous `epoch`, [`SLOT_BYTES`] bytes, for those who have seen the arrival (rule 2).
    #[inline(always)]
    pub(crate) fn slot(&self, epoch: u64) -> *const u8 {
        self.slots[(epoch % 2) as usize]
            .0
            .with(|words| words.cast())
    }

    /// The same for its PE before it arrives.
    #[inline(always)]
    pub(crate) fn slot_to_write(&self, epoch: u64) -> *mut u8 {
        self.slots[(epoch % 2) as usize]
            .0
            .with_mut(|words| words.cast())
    }
}

#[repr(C, align(128))]
struct PeStatus {
    state: AtomicU32,
    pid: AtomicU32,
    record: [AtomicU64; 4],
    /// 1 + the processor on which this PE waits awake; 0 else.
    awake_on: AtomicU32,
    /// How many segments of this PE the agent has mapped; `u32::MAX` after one that it could not.
    segments: AtomicU32,
}

/// Payload of one collective. A PE writes it through a shared reference; that nobody reads meanwhile is rule 2.
#[repr(C, align(128))]
struct Slot(UnsafeCell<[u64; SLOT_BYTES / 8]>);

// SAFETY: only its address is handed out; accesses through that are ordered by rule 2.
unsafe impl Sync for Slot {}

impl PeControl {
    pub(crate) fn state(&self) -> PeState {
        // Acquire: whoever sees the end also sees everything the PE did before it.
        PeState::from_u32(self.status.state.load(Ordering::Acquire))
    }

    /// Makes the calling process this PE, unless one has been it before: two would both write what
    /// only this PE may, and one after the other would look to its peers as if it had left.
    pub(crate) fn claim(&self) -> bool {
        // Claimed by its number: the state changes when all is set up.
        let (mine, order) = (std::process::id(), Ordering::AcqRel);
        let claimed = self
            .status
            .pid
            .compare_exchange(0, mine, order, Ordering::Acquire);
        claimed.is_ok()
    }

    pub(crate) fn set_state(&self, state: PeState) {
        self.status.state.store(state as u32, Ordering::Release);
    }

    pub(crate) fn pid(&self) -> u32 {
        self.status.pid.load(Ordering::Relaxed)
    }

    pub(crate) fn set_pid(&self, pid: u32) {
        self.status.pid.store(pid, Ordering::Relaxed);
    }

    /// Notes what this PE waits for; zeros once it has come. Read by the launcher after the PE's death, hence no
    /// ordering.
    pub(crate) fn record_wait(&self, words: [u64; 4]) {
        for (slot, word) in self.status.record.iter().zip(words) {
            slot.store(word, Ordering::Relaxed);
        }
    }

    /// Notes on which processor this PE waits awake, `None` once it does not: a hint, hence no ordering.
    pub(crate) fn record_awake(&self, processor: Option<usize>) {
        self.status
            .awake_on
            .store(word_of(processor), Ordering::Relaxed);
    }

    pub(crate) fn is_awake_on(&self, processor: Option<usize>) -> bool {
        processor.is_some() && self.status.awake_on.load(Ordering::Relaxed) == word_of(processor)
    }

    /// For the agent: whether it could map the PE's next segment.
    pub(crate) fn set_segment_mapped(&self, mapped: bool) {
        let segments = &self.status.segments;
        // Release: who sees the count finds the segment in the agent's list.
        match mapped {
            true => segments.fetch_add(1, Ordering::Release),
            false => segments.swap(u32::MAX, Ordering::Release),
        };
    }

    /// How many segments of this PE the agent has mapped; `None` after one that it could not.
    pub(crate) fn segments_mapped(&self) -> Option<u32> {
        let mapped = self.status.segments.load(Ordering::Acquire);
        (mapped != u32::MAX).then_some(mapped)
    }

    pub(crate) fn last_wait(&self) -> [u64; 4] {
        std::array::from_fn(|i| self.status.record[i].load(Ordering::Relaxed))
    }
}

/// A processor, or none, in `PeStatus::awake_on`.
fn word_of(processor: Option<usize>) -> u32 {
    processor.map_or(0, |processor| processor as u32 + 1)
}

/// 1 + the PE whose failure ended the world; 0 while it lives.
#[repr(transparent)]
pub(crate) struct EndMark(AtomicU32);

impl EndMark {
    /// The PE whose failure ended the world, if one did.
    #[inline(always)]
    pub(crate) fn ended_by(&self) -> Option<usize> {
        match self.0.load(Ordering::Acquire) {
            0 => None,
            pe => Some(pe as usize - 1),
        }
    }
}

#[repr(C, align(128))]
pub(crate) struct Header {
    pub(crate) magic: AtomicU64,
    pub(crate) layout: AtomicU32,
    pub(crate) n_pes: AtomicU32,
    pub(crate) heap_bytes: AtomicU64,
    pub(crate) launcher_pid: AtomicU32,
    ended_by: EndMark,
    /// 2^32 + the exit code a PE has asked for; 0 while none has.
    exit: AtomicU64,
}

/// The control memory of one world.
#[derive(Debug)]
pub(crate) struct Control {
    region: Region,
    n_pes: usize,
}

impl Control {
    /// Bytes needed for `n_pes` PEs.
    pub(crate) fn bytes(n_pes: usize) -> usize {
        let calls = n_pes * n_pes * size_of::<AtomicU64>();
        size_of::<Header>() + n_pes * size_of::<PeControl>() + calls
    }

    /// `region`: zeroed on creation, at least [`Control::bytes`] long.
    pub(crate) fn new(region: Region, n_pes: usize) -> Self {
        Self { region, n_pes }
    }

    /// Fills the header in; done once, before any PE can see the memory.
    pub(crate) fn create(region: Region, n_pes: usize, heap_bytes: usize, launcher: u32) -> Self {
        let control = Self::new(region, n_pes);
        let header = control.header();
        header.n_pes.store(n_pes as u32, Ordering::Relaxed);
        header
            .heap_bytes
            .store(heap_bytes as u64, Ordering::Relaxed);
        header.launcher_pid.store(launcher, Ordering::Relaxed);
        header.layout.store(LAYOUT, Ordering::Relaxed);
        header.magic.store(MAGIC, Ordering::Release);
        control
    }

    pub(crate) fn n_pes(&self) -> usize {
        self.n_pes
    }

    pub(crate) fn header(&self) -> &Header {
        // SAFETY: the region is mapped, zero-initialised or written only through these types, at
        // least `Control::bytes` long and page-aligned; Header holds atomics only, for which every
        // bit pattern is valid and which may be shared.
        unsafe { self.region.base().cast::<Header>().as_ref() }
    }

    /// Panics if `pe` is not below the number of PEs.
    #[inline(always)]
    pub(crate) fn pe(&self, pe: usize) -> &PeControl {
        assert!(
            pe < self.n_pes,
            "PE {} does not exist in a world of {}",
            pe as isize,
            self.n_pes
        );
        // SAFETY: as in `header`; `pe` was checked, sizes are multiples of the alignment, and the
        // array of PeControl follows the Header directly. Beside atomics it holds cells of words, guarded by rule 2.
        unsafe {
            self.region
                .base()
                .byte_add(size_of::<Header>())
                .cast::<PeControl>()
                .add(pe)
                .as_ref()
        }
    }

    /// How often PE `from` has called PE `to` to a handshake.
    pub(crate) fn calls(&self, from: usize, to: usize) -> &AtomicU64 {
        let n = self.n_pes;
        assert!(from < n && to < n);
        // SAFETY: as in `header`; an array of `n * n` words follows that of PeControl.
        unsafe {
            self.region
                .base()
                .byte_add(size_of::<Header>() + n * size_of::<PeControl>())
                .cast::<AtomicU64>()
                .add(to * n + from)
                .as_ref()
        }
    }

    pub(crate) fn pes(&self) -> impl Iterator<Item = &PeControl> {
        (0..self.n_pes).map(|pe| self.pe(pe))
    }

    /// The PE whose failure ended the world, if one did.
    pub(crate) fn ended_by(&self) -> Option<usize> {
        self.end_mark().ended_by()
    }

    /// Where [`ended_by`](Self::ended_by) looks.
    pub(crate) fn end_mark(&self) -> &EndMark {
        &self.header().ended_by
    }

    /// Notes that a PE asks for the end of all; the first to do so gives the exit code.
    pub(crate) fn announce_exit(&self, status: i32) {
        let (asked, order) = (1 << 32 | u64::from(status as u32), Ordering::AcqRel);
        let exit = &self.header().exit;
        let _ = exit.compare_exchange(0, asked, order, Ordering::Acquire);
    }

    /// The exit code that a PE has asked for, if one has.
    pub(crate) fn announced_exit(&self) -> Option<i32> {
        match self.header().exit.load(Ordering::Acquire) {
            0 => None,
            asked => Some(asked as u32 as i32),
        }
    }

    /// Ends the world in the name of `pe` (the first such call names the culprit) and wakes all.
    pub(crate) fn end(&self, pe: usize, shared: bool) {
        let _ = self.header().ended_by.0.compare_exchange(
            0,
            pe as u32 + 1,
            Ordering::AcqRel,
            Ordering::Acquire,
        );
        self.wake_all(shared);
    }

    /// Wakes every sleeper, so that it looks at the membership.
    pub(crate) fn wake_all(&self, shared: bool) {
        for pe in self.pes() {
            pe.parker.wake_all(shared);
        }
    }
}

#[cfg(not(loom))]
const _: () = {
    assert!(size_of::<Header>() == 128);
    assert!(std::mem::offset_of!(PeControl, status) == 128);
    assert!(size_of::<TeamControl>() == 3 * 128 + 2 * SLOT_BYTES);
};
