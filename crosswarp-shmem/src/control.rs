//! What the PEs of a world share beside their heaps: arrival flags, collective tags and slots,
//! wait records, and who is alive.
//!
//! Access rules
//! 1. `arrival` has its own rules (see [`crate::rendezvous`]).
//! 2. `slots[e % 2]` of a PE belongs to rendezvous number `e`: written by that PE before it arrives,
//!    read by the others after they saw the arrival.
//! 3. `record` is written by its PE only.
//! 4. `state` is written by the PE itself and, once that PE has ended, by the launcher.
#![allow(unsafe_code)] // overlays the structures below on shared zeroed memory

use crate::region::Region;
use crate::rendezvous::Arrival;
use crate::sync::{AtomicU32, AtomicU64, Ordering};

/// Bytes of one collective slot: payloads up to this size travel inside the rendezvous.
pub(crate) const SLOT_BYTES: usize = 4096;

pub(crate) const MAGIC: u64 = u64::from_le_bytes(*b"crosswrp");
/// Changes with every change of the layouts in this file.
pub(crate) const LAYOUT: u32 = 1;

/// What can be said of a PE's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Life {
    Absent = 0,
    Joined = 1,
    Finished = 2,
    Failed = 3,
}

impl Life {
    fn from_u32(word: u32) -> Self {
        match word {
            0 => Self::Absent,
            1 => Self::Joined,
            2 => Self::Finished,
            _ => Self::Failed,
        }
    }
}

/// What one PE shows to the others. Aligned to two cache lines, because processors prefetch in
/// pairs; the first line holds all that a rendezvous without sleepers touches.
#[repr(C, align(128))]
pub(crate) struct PeControl {
    pub(crate) arrival: Arrival,
    life: PeLife,
    pub(crate) slots: [Slot; 2],
}

#[repr(C, align(128))]
struct PeLife {
    state: AtomicU32,
    pid: AtomicU32,
    record: [AtomicU64; 4],
}

/// Payload of one collective. Atomics, so that a PE may write through a shared reference; that nobody
/// reads meanwhile is rule 2.
#[repr(C, align(128))]
pub(crate) struct Slot(pub(crate) [AtomicU64; SLOT_BYTES / 8]);

impl PeControl {
    pub(crate) fn life(&self) -> Life {
        // Acquire: whoever sees the end also sees everything the PE did before it.
        Life::from_u32(self.life.state.load(Ordering::Acquire))
    }

    /// Makes the calling process this PE, unless one has been it before: two would both write what
    /// only this PE may, and one after the other would look to its peers as if it had left.
    pub(crate) fn claim(&self) -> bool {
        // Claimed by its number: the life changes when all is set up.
        let (mine, order) = (std::process::id(), Ordering::AcqRel);
        let claimed = self
            .life
            .pid
            .compare_exchange(0, mine, order, Ordering::Acquire);
        claimed.is_ok()
    }

    pub(crate) fn set_life(&self, life: Life) {
        self.life.state.store(life as u32, Ordering::Release);
    }

    pub(crate) fn pid(&self) -> u32 {
        self.life.pid.load(Ordering::Relaxed)
    }

    pub(crate) fn set_pid(&self, pid: u32) {
        self.life.pid.store(pid, Ordering::Relaxed);
    }

    /// Notes what this PE waits for. Read by the launcher after the PE's death, hence no ordering.
    pub(crate) fn record_wait(&self, words: [u64; 4]) {
        for (slot, word) in self.life.record.iter().zip(words) {
            slot.store(word, Ordering::Relaxed);
        }
    }

    pub(crate) fn last_wait(&self) -> [u64; 4] {
        std::array::from_fn(|i| self.life.record[i].load(Ordering::Relaxed))
    }
}

#[repr(C, align(128))]
pub(crate) struct Header {
    pub(crate) magic: AtomicU64,
    pub(crate) layout: AtomicU32,
    pub(crate) n_pes: AtomicU32,
    pub(crate) heap_bytes: AtomicU64,
    pub(crate) launcher_pid: AtomicU32,
    /// 1 + the PE whose failure ended the world; 0 while it lives.
    ended_by: AtomicU32,
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
        size_of::<Header>() + n_pes * size_of::<PeControl>()
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
            "PE {pe} does not exist in a world of {}",
            self.n_pes
        );
        // SAFETY: as in `header`; `pe` was checked, sizes are multiples of the alignment, and the
        // array of PeControl follows the Header directly.
        unsafe {
            self.region
                .base()
                .byte_add(size_of::<Header>())
                .cast::<PeControl>()
                .add(pe)
                .as_ref()
        }
    }

    pub(crate) fn pes(&self) -> impl Iterator<Item = &PeControl> {
        (0..self.n_pes).map(|pe| self.pe(pe))
    }

    /// The PE whose failure ended the world, if one did.
    pub(crate) fn ended_by(&self) -> Option<usize> {
        match self.header().ended_by.load(Ordering::Acquire) {
            0 => None,
            pe => Some(pe as usize - 1),
        }
    }

    /// Ends the world in the name of `pe` (the first such call names the culprit) and wakes all.
    pub(crate) fn end(&self, pe: usize, shared: bool) {
        let _ = self.header().ended_by.compare_exchange(
            0,
            pe as u32 + 1,
            Ordering::AcqRel,
            Ordering::Acquire,
        );
        self.wake_all(shared);
    }

    /// Wakes every sleeper, so that it looks at the lives of its peers.
    pub(crate) fn wake_all(&self, shared: bool) {
        for pe in self.pes() {
            pe.arrival.parker.wake_all(shared);
        }
    }
}

#[cfg(not(loom))]
const _: () = {
    assert!(std::mem::offset_of!(PeControl, life) == 128);
    assert!(size_of::<Arrival>() <= 64);
    assert!(size_of::<Header>() == 128);
};
