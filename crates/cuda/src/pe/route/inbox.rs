//! The inbox of atomic operations from other hosts (`device/pe/inbox.cuh`): waiting threads of this PE's kernels execute
//! them, or a kernel that is started where none does so in time.
//!
//! No wait depends on that kernel being started: what fills the GPU and waits executes the inbox itself, and what fills it
//! and does not wait ends.
#![allow(unsafe_code)] // Words that kernels and the host change; launches a kernel of this crate.

use std::collections::VecDeque;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytemuck::{bytes_of, cast_slice};

use crate::compile::module::Function;
use crate::driver::device::Device;
use crate::driver::error::CudaError;
use crate::driver::memory::{Buffer, PinnedBuffer};
use crate::driver::stream::Stream;
use crate::launch::Launch;
use crate::layout::{INBOX_ENTRIES, InboxEntry};
use crate::pe::route::copy::Copies;

/// How long waiting threads have before a kernel is started.
const PATIENCE: Duration = Duration::from_micros(100);

/// The memory of an inbox.
pub(super) struct InboxMemory {
    pub(super) entries: Buffer<u64>,
    /// Head, tail and lock, in places of their own.
    pub(super) words: Buffer<u64>,
    /// How many are done, and from the next word on what was there before each.
    pub(super) done: PinnedBuffer<u64>,
    /// Executes what is there; known once the modules are loaded.
    pub(super) execute: OnceLock<Function>,
}

impl InboxMemory {
    pub(super) fn new(device: &Device, stream: &Stream) -> Result<Self, CudaError> {
        Ok(Self {
            entries: Buffer::zeroed(stream, INBOX_ENTRIES * size_of::<InboxEntry>() / 8)?,
            words: Buffer::zeroed(stream, 48)?,
            done: PinnedBuffer::zeroed(device, 1 + INBOX_ENTRIES)?,
            execute: OnceLock::new(),
        })
    }

    pub(super) fn head(&self) -> u64 {
        self.words.address()
    }

    pub(super) fn tail(&self) -> u64 {
        self.words.address() + 128
    }

    pub(super) fn lock(&self) -> u64 {
        self.words.address() + 256
    }

    fn word(&self, index: usize) -> &AtomicU64 {
        assert!(index < self.done.len());
        // SAFETY: a word of the buffer, aligned, alive as long as `self`; kernels write it.
        unsafe { AtomicU64::from_ptr((self.done.address() as *mut u64).add(index)) }
    }
}

/// The host's side.
pub(super) struct Inbox {
    /// Those that wait for room.
    waiting: VecDeque<InboxEntry>,
    /// Given to the GPU.
    head: u64,
    /// Of these, known to be done.
    tail: u64,
    since: Instant,
    stream: Stream,
    started: bool,
}

impl Inbox {
    pub(super) fn new(stream: Stream) -> Self {
        Self {
            waiting: VecDeque::new(),
            head: 0,
            tail: 0,
            since: Instant::now(),
            stream,
            started: false,
        }
    }

    /// Takes an operation; its number.
    pub(super) fn push(&mut self, entry: InboxEntry) -> u64 {
        self.waiting.push_back(entry);
        self.head + self.waiting.len() as u64 - 1
    }

    /// Sees what the GPU has done; whether it has done anything. The results stay until [`give`](Self::give).
    pub(super) fn look(&mut self, memory: &InboxMemory) -> bool {
        // Acquire: the results are there.
        let done = memory.word(0).load(Ordering::Acquire);
        if done == self.tail {
            return false;
        }
        (self.tail, self.since) = (done, Instant::now());
        true
    }

    /// Gives the GPU what there is room for; whether it was anything.
    pub(super) fn give(
        &mut self,
        memory: &InboxMemory,
        copies: &Copies,
    ) -> Result<bool, CudaError> {
        let before = self.head;
        while self.head - self.tail < INBOX_ENTRIES as u64
            && let Some(entry) = self.waiting.pop_front()
        {
            let place = self.head % INBOX_ENTRIES as u64 * size_of::<InboxEntry>() as u64;
            // SAFETY: an entry's place, which the GPU has done with.
            unsafe { copies.write(memory.entries.address() + place, bytes_of(&entry)) }?;
            self.head += 1;
        }
        if self.head != before {
            // The entries are there: their copies have ended.
            // SAFETY: a word.
            unsafe { copies.write(memory.head(), cast_slice(&[self.head])) }?;
            if self.tail == before {
                self.since = Instant::now();
            }
        }
        if self.tail != self.head && self.since.elapsed() > PATIENCE {
            self.start(memory)?;
        }
        Ok(self.head != before)
    }

    fn start(&mut self, memory: &InboxMemory) -> Result<(), CudaError> {
        if self.started && !self.stream.is_done()? {
            return Ok(());
        }
        let Some(execute) = memory.execute.get() else {
            return Ok(());
        };
        // SAFETY: a kernel of this crate without parameters, prepared when it was loaded.
        let launched = unsafe {
            Launch::new(execute)
                .prepared_before()
                .launch(&self.stream, ())
        };
        self.started = true;
        self.since = Instant::now();
        launched.map_err(|error| CudaError {
            call: "starting the kernel that executes atomic operations of other hosts",
            code: 0,
            name: "launch".into(),
            message: error.to_string(),
        })
    }

    /// Whether operation `number` is done.
    pub(super) fn is_done(&self, number: u64) -> bool {
        number < self.tail
    }

    /// What was there before operation `number`, which is done, and not long ago.
    pub(super) fn result(&self, memory: &InboxMemory, number: u64) -> u64 {
        let index = 1 + (number % INBOX_ENTRIES as u64) as usize;
        memory.word(index).load(Ordering::Relaxed)
    }
}
