//! The words through which a PE's kernels and the thread beside them speak, in memory of the host that both reach.
#![allow(unsafe_code)] // Words that kernels and the host change.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::driver::device::Device;
use crate::driver::error::CudaError;
use crate::driver::memory::PinnedBuffer;
use crate::layout::{INBOX_ENTRIES, ROUTE_ENTRIES, ROUTE_WORDS};

/// Words of [`Board::words`] that are not places of fetched values.
const TAKEN: usize = 0;
const COMPLETED: usize = 16;
const FETCHED: usize = 32;

/// Words that kernels and the host change.
pub(super) struct Words {
    first: NonNull<AtomicU64>,
    len: usize,
    _owner: Owner,
}

enum Owner {
    Pinned {
        _buffer: PinnedBuffer<u64>,
    },
    #[cfg(test)]
    Host {
        _words: Box<[AtomicU64]>,
    },
}

// SAFETY: owns its words, which are atomics.
unsafe impl Send for Words {}
// SAFETY: as above.
unsafe impl Sync for Words {}

impl Words {
    fn pinned(device: &Device, len: usize) -> Result<Self, CudaError> {
        let mut buffer = PinnedBuffer::<u64>::zeroed(device, len)?;
        Ok(Self {
            first: NonNull::from(&mut *buffer).cast(),
            len,
            _owner: Owner::Pinned { _buffer: buffer },
        })
    }

    /// Where no GPU is.
    #[cfg(test)]
    pub(super) fn on_host(len: usize) -> Self {
        let words: Box<[AtomicU64]> = (0..len).map(|_| AtomicU64::new(0)).collect();
        Self {
            first: NonNull::from(&*words).cast(),
            len,
            _owner: Owner::Host { _words: words },
        }
    }

    pub(super) fn all(&self) -> &[AtomicU64] {
        // SAFETY: so many words, aligned, alive as long as `self`; kernels access each whole.
        unsafe { std::slice::from_raw_parts(self.first.as_ptr(), self.len) }
    }

    /// The address of word `index`, on the host and on the GPU.
    pub(super) fn address(&self, index: usize) -> u64 {
        (&raw const self.all()[index]) as u64
    }
}

/// See the [module](self).
pub(super) struct Board {
    /// The ring of entries.
    ring: Words,
    /// What has been taken and completed, and what was fetched.
    words: Words,
    /// How many operations of the inbox are done, and from the next word on what was there before each.
    inbox: Words,
    /// The thread is to end.
    pub(super) stop: AtomicBool,
}

impl Board {
    pub(super) fn new(
        words: impl Fn(usize) -> Result<Words, CudaError>,
    ) -> Result<Self, CudaError> {
        Ok(Self {
            ring: words(ROUTE_ENTRIES * ROUTE_WORDS)?,
            words: words(FETCHED + 2 * ROUTE_ENTRIES)?,
            inbox: words(1 + INBOX_ENTRIES)?,
            stop: AtomicBool::new(false),
        })
    }

    pub(super) fn pinned(device: &Device) -> Result<Self, CudaError> {
        Self::new(|len| Words::pinned(device, len))
    }

    /// For kernels: ring, `taken`, `completed`, `fetched`, how many the inbox has done, results.
    pub(super) fn addresses(&self) -> [u64; 6] {
        [
            self.ring.address(0),
            self.words.address(TAKEN),
            self.words.address(COMPLETED),
            self.words.address(FETCHED),
            self.inbox.address(0),
            self.inbox.address(1),
        ]
    }

    pub(super) fn ring(&self) -> &[AtomicU64] {
        self.ring.all()
    }

    /// So many entries have been taken.
    pub(super) fn taken(&self) -> &AtomicU64 {
        &self.words.all()[TAKEN]
    }

    /// So many entries are complete.
    pub(super) fn completed(&self) -> &AtomicU64 {
        &self.words.all()[COMPLETED]
    }

    /// Where the value that entry `number` fetches is: a place, and the value beside it.
    pub(super) fn fetched(&self, number: u64) -> [&AtomicU64; 2] {
        let place = FETCHED + 2 * (number % ROUTE_ENTRIES as u64) as usize;
        let words = self.words.all();
        [&words[place], &words[place + 1]]
    }

    /// So many operations of the inbox are done.
    pub(super) fn inbox_done(&self) -> &AtomicU64 {
        &self.inbox.all()[0]
    }

    /// What was there before operation `number` of the inbox.
    pub(super) fn inbox_result(&self, number: u64) -> &AtomicU64 {
        &self.inbox.all()[1 + (number % INBOX_ENTRIES as u64) as usize]
    }

    pub(super) fn stops(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }
}
