//! The inbox of atomic operations from other hosts (`device/pe/inbox.cuh`): waiting threads of this PE's kernels execute
//! them, or a kernel that is started where none does so in time.
//!
//! No wait depends on that kernel being started: what fills the GPU and waits executes the inbox itself, and what fills it
//! and does not wait ends.
#![allow(unsafe_code)] // Words that kernels and the host change.

use std::collections::VecDeque;
use std::ptr::NonNull;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use bytemuck::bytes_of;

use crate::driver::error::CudaError;
use crate::layout::{INBOX_ENTRIES, InboxEntry};
use crate::pe::route::board::Board;
use crate::pe::route::gpu::{Gpu, Spread};

/// How long waiting threads have before a kernel is started.
const PATIENCE: Duration = Duration::from_micros(100);

/// Where it is in memory of the GPU.
#[derive(Clone, Copy)]
pub(super) struct InboxPlace {
    pub(super) entries: u64,
    /// The word that counts those that have come.
    pub(super) head: u64,
}

/// The host's side.
pub(super) struct Inbox {
    at: InboxPlace,
    /// Those that wait for room.
    waiting: VecDeque<InboxEntry>,
    /// Given to the GPU.
    head: u64,
    /// Of these, known to be done.
    tail: u64,
    since: Instant,
}

impl Inbox {
    pub(super) fn new(at: InboxPlace) -> Self {
        Self {
            at,
            waiting: VecDeque::new(),
            head: 0,
            tail: 0,
            since: Instant::now(),
        }
    }

    /// Takes an operation; its number.
    pub(super) fn push(&mut self, entry: InboxEntry) -> u64 {
        self.waiting.push_back(entry);
        self.head + self.waiting.len() as u64 - 1
    }

    /// Sees what the GPU has done; whether it has done anything. The results stay until [`give`](Self::give).
    pub(super) fn look(&mut self, board: &Board) -> bool {
        // Acquire: the results are there.
        let done = board.inbox_done().load(Ordering::Acquire);
        if done == self.tail {
            return false;
        }
        (self.tail, self.since) = (done, Instant::now());
        true
    }

    /// Gives the GPU what there is room for; whether it was anything.
    pub(super) fn give(&mut self, gpu: &mut impl Gpu) -> Result<bool, CudaError> {
        let before = self.head;
        let mut write = |to, bytes: &[u8]| {
            // SAFETY: an entry's place, which the GPU has done with, or the word.
            unsafe { gpu.write(Spread::bytes(to), NonNull::from(bytes).cast(), bytes.len()) }
        };
        while self.head - self.tail < INBOX_ENTRIES as u64
            && let Some(entry) = self.waiting.pop_front()
        {
            let place = self.head % INBOX_ENTRIES as u64 * size_of::<InboxEntry>() as u64;
            write(self.at.entries + place, bytes_of(&entry))?;
            self.head += 1;
        }
        if self.head != before {
            // The entries are there: their copies have ended.
            write(self.at.head, &self.head.to_ne_bytes())?;
            if self.tail == before {
                self.since = Instant::now();
            }
        }
        if self.tail != self.head && self.since.elapsed() > PATIENCE {
            gpu.execute_inbox()?;
            self.since = Instant::now();
        }
        Ok(self.head != before)
    }

    /// Whether operation `number` is done.
    pub(super) fn is_done(&self, number: u64) -> bool {
        number < self.tail
    }

    /// What was there before operation `number`, which is done, and not long ago.
    pub(super) fn result(&self, board: &Board, number: u64) -> u64 {
        board.inbox_result(number).load(Ordering::Relaxed)
    }
}
