//! What a PE's kernels do to PEs of other hosts.
//!
//! Their memory is not mapped here. A verb to one of them is an entry of a [ring] in page-locked memory, which a thread of
//! this PE takes ([proxy]): it copies what is put from the GPU, and sends a [message] to the thread of the other PE by way
//! of both PEs' symmetric heaps on their hosts ([channel]), which reach each other over the network. That thread copies
//! it to its GPU. So only host memory travels, and nothing but the verbs between hosts is needed.
//!
//! Words of a GPU's memory have one executor of atomic operations, the GPU: these go to an [inbox].
//!
//! Each message that stores or adds something is done, with its copies ended, before the next one of its sender that stores
//! something. So what is put or added before a fence is there before what is put after it, and a signal after its data.
//! What a message asks to get is read later, when there are places for it.
//!
//! `tests` has the whole of it run without a GPU, which threads of the host play.
#![allow(unsafe_code)] // Locks memory that it keeps.

mod board;
mod channel;
mod gpu;
mod inbox;
mod message;
mod outgoing;
mod proxy;
mod ring;
#[cfg(test)]
mod tests;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;

use crosswarp_shmem::{Pe, Sym};

use crate::compile::module::Function;
use crate::driver::device::Device;
use crate::driver::error::CudaError;
use crate::driver::memory::{Buffer, PinnedBuffer};
use crate::driver::stream::{Priority, Stream};
use crate::layout::{INBOX_ENTRIES, InboxEntry, RouteState};
use crate::pe::error::DeviceWorldError;
use crate::pe::route::board::Board;
use crate::pe::route::channel::Places;
use crate::pe::route::gpu::{CudaGpu, Locked};
use crate::pe::route::inbox::InboxPlace;
use crate::pe::route::proxy::{Proxy, ProxyError};

/// The memory through which kernels and the thread speak.
struct RouteMemory {
    board: Arc<Board>,
    /// Not 0 for each PE of this host.
    mapped: Buffer<u8>,
    /// `issued` and `taken_seen`.
    counters: Buffer<u64>,
    inbox: Buffer<u64>,
    /// Head, tail and lock of the inbox, in places of their own.
    inbox_words: Buffer<u64>,
    /// Executes what is in the inbox; known once the modules are loaded.
    execute: OnceLock<Function>,
    /// Where the thread makes a message. Kept here, for freeing it may wait for kernels.
    message: PinnedBuffer<u8>,
}

impl RouteMemory {
    fn new(
        device: &Device,
        stream: &Stream,
        mapped: &[u8],
        message_bytes: usize,
    ) -> Result<Self, CudaError> {
        Ok(Self {
            board: Arc::new(Board::pinned(device)?),
            mapped: Buffer::from_slice(stream, mapped)?,
            counters: Buffer::zeroed(stream, 32)?,
            inbox: Buffer::zeroed(stream, INBOX_ENTRIES * size_of::<InboxEntry>() / 8)?,
            inbox_words: Buffer::zeroed(stream, 48)?,
            execute: OnceLock::new(),
            message: PinnedBuffer::zeroed(device, message_bytes)?,
        })
    }

    fn inbox(&self) -> InboxPlace {
        InboxPlace {
            entries: self.inbox.address(),
            head: self.inbox_words.address(),
        }
    }
}

/// The way of a PE's kernels to PEs of other hosts.
pub(crate) struct Route {
    memory: Arc<RouteMemory>,
    thread: Option<JoinHandle<()>>,
    /// Not 0 for each PE of this host.
    mapped: Vec<u8>,
    device: Device,
    locked: Option<Locked>,
    // Of the thread, in the symmetric heap of the host.
    _rings: Sym<u8>,
    _words: Sym<u64>,
}

impl Route {
    /// Starts it; `None` if every PE is of this host. Collective.
    ///
    /// `heap`: address and bytes of this PE's device heap. `left`: not 0 for each PE that has left. `on_failure` ends the
    /// waits of this PE's kernels.
    ///
    /// Errors: the driver's on this PE alone.
    pub(crate) fn start(
        pe: &Pe,
        device: &Device,
        heap: (u64, u64),
        left: &Sym<u64>,
        on_failure: impl FnOnce() + Send + 'static,
    ) -> Result<Option<Self>, DeviceWorldError> {
        let Some(courier) = pe.courier() else {
            return Ok(None);
        };
        let n = pe.n_pes();
        let (places, rings, words) = Places::make(pe, left)?;
        let host = pe.shared_team();
        let members: Vec<usize> = (0..host.n_pes())
            .map(|member| host.world_pe(member))
            .collect();
        let mapped: Vec<u8> = (0..n)
            .map(|other| members.contains(&other).into())
            .collect();
        // Only a team has its memory mapped, and only PEs of other hosts are reached over the network.
        if let Some(other) =
            (0..n).find(|other| !members.contains(other) && !courier.is_remote(*other))
        {
            let what = "GPUs of a host whose PEs are not evenly numbered";
            return Err(DeviceWorldError::OtherHosts {
                pe: pe.my_pe(),
                other,
                what,
            });
        }
        let made = || -> Result<_, CudaError> {
            let stream = Stream::with_priority(device, Priority::High)?;
            let memory = Arc::new(RouteMemory::new(
                device,
                &stream,
                &mapped,
                places.message(),
            )?);
            stream.synchronize()?;
            let gpu = CudaGpu::new(stream, Arc::clone(&memory))?;
            // What comes is copied to the GPU from where it has come.
            // SAFETY: the rings are freed after they have been unlocked, in `drop`, where a context is current.
            let locked =
                unsafe { Locked::new(courier.at(rings.offset(), rings.len()), rings.len()) };
            let (board, inbox) = (Arc::clone(&memory.board), memory.inbox());
            let proxy = Proxy::new(courier, board, gpu, inbox, heap, places);
            let (me, device) = (pe.my_pe(), *device);
            let work = move || {
                let serve = || device.bind().map_err(Into::into).and_then(|()| proxy.run());
                carry(me, serve, on_failure);
            };
            let thread = std::thread::Builder::new().name("crosswarp-route".into());
            let thread = thread.spawn(work).map_err(|error| CudaError {
                call: "starting the thread that reaches PEs of other hosts",
                code: error.raw_os_error().unwrap_or(0),
                name: error.kind().to_string(),
                message: error.to_string(),
            })?;
            Ok((memory, thread, locked))
        };
        let (memory, thread, locked) = made()?;
        Ok(Some(Self {
            memory,
            thread: Some(thread),
            mapped,
            device: *device,
            locked,
            _rings: rings,
            _words: words,
        }))
    }

    /// What kernels need to know.
    pub(crate) fn state(&self) -> RouteState {
        let memory = &self.memory;
        let [ring, taken, completed, fetched, inbox_done, inbox_results] = memory.board.addresses();
        RouteState {
            mapped: memory.mapped.address(),
            ring,
            issued: memory.counters.address(),
            taken,
            taken_seen: memory.counters.address() + 128,
            completed,
            fetched,
            inbox: memory.inbox.address(),
            inbox_head: memory.inbox_words.address(),
            inbox_tail: memory.inbox_words.address() + 128,
            inbox_lock: memory.inbox_words.address() + 256,
            inbox_done,
            inbox_results,
        }
    }

    /// Whether the memory of `pe` is mapped here. Panics if it does not exist.
    pub(crate) fn is_mapped(&self, pe: usize) -> bool {
        self.mapped[pe] != 0
    }

    /// The kernel that executes the inbox, if no other does.
    pub(crate) fn set_execute(&self, function: Function) {
        let _ = self.memory.execute.set(function);
    }

    /// Leaves the memory to kernels that may still use it, and frees nothing that would wait for them.
    pub(crate) fn leak(&mut self) {
        std::mem::forget(Arc::clone(&self.memory));
        std::mem::forget(self.locked.take());
    }
}

/// The thread of PE `me`: serves, and calls `on_failure` if that fails or panics.
fn carry(me: usize, serve: impl FnOnce() -> Result<(), ProxyError>, on_failure: impl FnOnce()) {
    // Nothing that a panic leaves half done is used again.
    let reason = match catch_unwind(AssertUnwindSafe(serve)) {
        Ok(Ok(())) => return,
        Ok(Err(error)) => error.to_string(),
        Err(_) => "the thread that does so panicked, see above".into(),
    };
    // Whoever waits for it gets to know that it ended, and here is why.
    tracing::error!("PE {me}'s GPU can't reach PEs of other hosts any more: {reason}");
    on_failure();
}

impl Drop for Route {
    fn drop(&mut self) {
        self.memory.board.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        if self.locked.is_some() && self.device.bind().is_err() {
            // Without a context there is nothing to unlock.
            std::mem::forget(self.locked.take());
        }
        drop(self.locked.take());
    }
}
