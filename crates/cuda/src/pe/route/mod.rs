//! What a PE's kernels do to PEs of other hosts.
//!
//! Their memory is not mapped here. A verb to one of them is an entry of a [ring] in page-locked memory, which a thread of
//! this PE takes ([proxy]): it copies what is put from the GPU, and sends a [message] to the thread of the other PE by way
//! of both PEs' symmetric heaps on their hosts ([channel]), which reach each other over the network. That thread copies
//! it to its GPU. So only host memory travels, and nothing but the verbs between hosts is needed.
//!
//! Words of a GPU's memory have one executor of atomic operations, the GPU: these go to an [inbox].
//!
//! Each message is done, with its copies ended, before the next one of its sender. So what is put before a fence is there
//! before what is put after it, and a signal after its data.
#![allow(unsafe_code)] // Words that kernels and the host change.

mod channel;
mod copy;
mod inbox;
mod message;
mod proxy;
mod ring;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

use crosswarp_shmem::{Pe, Sym};

use crate::compile::module::Function;
use crate::driver::device::Device;
use crate::driver::error::CudaError;
use crate::driver::memory::{Buffer, PinnedBuffer};
use crate::driver::stream::{Priority, Stream};
use crate::layout::{ROUTE_ENTRIES, ROUTE_WORDS, RouteState};
use crate::pe::error::DeviceWorldError;
use crate::pe::route::channel::{Places, ring_bytes};
use crate::pe::route::copy::Copies;
use crate::pe::route::inbox::{Inbox, InboxMemory};
use crate::pe::route::proxy::Proxy;

/// Words of `words`, below, that are not places of fetched values.
const TAKEN: usize = 0;
const COMPLETED: usize = 16;
const FETCHED: usize = 32;

/// The memory through which kernels and the thread speak.
struct RouteMemory {
    /// Not 0 for each PE of this host.
    mapped: Buffer<u8>,
    ring: PinnedBuffer<u64>,
    words: PinnedBuffer<u64>,
    /// `issued` and `taken_seen`.
    counters: Buffer<u64>,
    inbox: InboxMemory,
    stop: AtomicBool,
}

impl RouteMemory {
    fn ring(&self) -> &[AtomicU64] {
        // SAFETY: so many words, aligned, alive as long as `self`; kernels write them, and the host only reads.
        unsafe {
            std::slice::from_raw_parts(self.ring.address() as *const AtomicU64, self.ring.len())
        }
    }

    fn word(&self, index: usize) -> &AtomicU64 {
        assert!(index < self.words.len());
        // SAFETY: a word of the buffer, aligned, alive as long as `self`; kernels access it whole.
        unsafe { AtomicU64::from_ptr((self.words.address() as *mut u64).add(index)) }
    }

    fn taken(&self) -> &AtomicU64 {
        self.word(TAKEN)
    }

    fn completed(&self) -> &AtomicU64 {
        self.word(COMPLETED)
    }

    /// Gives the kernel that waits for entry `number` its value; `false`: the place still has another one.
    fn give_fetched(&self, number: u64, value: u64) -> bool {
        let place = FETCHED + 2 * (number % ROUTE_ENTRIES as u64) as usize;
        // Acquire: the last value has been read.
        if self.word(place).load(Ordering::Acquire) != 0 {
            return false;
        }
        self.word(place + 1).store(value, Ordering::Relaxed);
        // Release: who sees the number sees the value.
        self.word(place).store(number + 1, Ordering::Release);
        true
    }

    fn stops(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }
}

/// The way of a PE's kernels to PEs of other hosts.
pub(crate) struct Route {
    memory: Arc<RouteMemory>,
    thread: Option<JoinHandle<()>>,
    /// Not 0 for each PE of this host.
    mapped: Vec<u8>,
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
        let rings = pe.alloc::<u8>(ring_bytes(n))?;
        // `arrived` and `done`.
        let words = pe.alloc_zeroed::<u64>(2 * n)?;
        let places = Places {
            rings: rings.offset(),
            arrived: words.offset(),
            done: words.offset() + 8 * n,
            left: left.offset(),
        };
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
            let memory = RouteMemory {
                mapped: Buffer::from_slice(&stream, &mapped)?,
                ring: PinnedBuffer::zeroed(device, ROUTE_ENTRIES * ROUTE_WORDS)?,
                words: PinnedBuffer::zeroed(device, FETCHED + 2 * ROUTE_ENTRIES)?,
                counters: Buffer::zeroed(&stream, 32)?,
                inbox: InboxMemory::new(device, &stream)?,
                stop: AtomicBool::new(false),
            };
            stream.synchronize()?;
            let inbox = Inbox::new(Stream::with_priority(device, Priority::High)?);
            let memory = Arc::new(memory);
            let proxy = Proxy::new(
                courier,
                Arc::clone(&memory),
                Copies::new(stream),
                inbox,
                heap,
                places,
            );
            let (me, device) = (pe.my_pe(), *device);
            let work = move || {
                let ended = device.bind().map_err(Into::into).and_then(|()| proxy.run());
                if let Err(error) = ended {
                    // Whoever waits for it gets to know that it ended, and here is why.
                    tracing::error!(
                        "PE {me}'s GPU can't reach PEs of other hosts any more: {error}"
                    );
                    on_failure();
                }
            };
            let thread = std::thread::Builder::new().name("crosswarp-route".into());
            let thread = thread.spawn(work).map_err(|error| CudaError {
                call: "starting the thread that reaches PEs of other hosts",
                code: error.raw_os_error().unwrap_or(0),
                name: error.kind().to_string(),
                message: error.to_string(),
            })?;
            Ok((memory, thread))
        };
        let (memory, thread) = made()?;
        Ok(Some(Self {
            memory,
            thread: Some(thread),
            mapped,
            _rings: rings,
            _words: words,
        }))
    }

    /// What kernels need to know.
    pub(crate) fn state(&self) -> RouteState {
        let memory = &self.memory;
        let word = |index: usize| memory.words.address() + 8 * index as u64;
        RouteState {
            mapped: memory.mapped.address(),
            ring: memory.ring.address(),
            issued: memory.counters.address(),
            taken: word(TAKEN),
            taken_seen: memory.counters.address() + 128,
            completed: word(COMPLETED),
            fetched: word(FETCHED),
            inbox: memory.inbox.entries.address(),
            inbox_head: memory.inbox.head(),
            inbox_tail: memory.inbox.tail(),
            inbox_lock: memory.inbox.lock(),
            inbox_done: memory.inbox.done.address(),
            inbox_results: memory.inbox.done.address() + 8,
        }
    }

    /// Whether the memory of `pe` is mapped here. Panics if it does not exist.
    pub(crate) fn is_mapped(&self, pe: usize) -> bool {
        self.mapped[pe] != 0
    }

    /// The kernel that executes the inbox, if no other does.
    pub(crate) fn set_execute(&self, function: Function) {
        let _ = self.memory.inbox.execute.set(function);
    }

    /// Leaves the memory to kernels that may still use it.
    pub(crate) fn leak(&self) {
        std::mem::forget(Arc::clone(&self.memory));
    }
}

impl Drop for Route {
    fn drop(&mut self) {
        self.memory.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
