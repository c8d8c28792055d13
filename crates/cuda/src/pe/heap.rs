//! The symmetric heap in device memory.
//!
//! Each PE reserves one range of addresses, `n_pes` strides long, and maps every PE's physical memory
//! into it: PE `i`'s heap begins at `base + i × stride`. An object has the same offset on all PEs, so in
//! a kernel its address on any PE is one multiply and one add away. Physical memory is taken in chunks
//! when an allocation first needs it, on all PEs together, and shared by file descriptor. Behind its heap each PE has
//! room for memory that the program has made itself ([`DeviceHeap::register`]), if a world is made with it.
#![allow(unsafe_code)] // Clears memory it has just allocated; a kernel argument.

use std::collections::HashMap;
use std::ffi::c_void;
use std::fmt;
use std::marker::PhantomData;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytemuck::Pod;
use crosswarp_shmem::internal::{Block, HeapAllocator};
use crosswarp_shmem::{CollectiveError, Pe, ShareError, op};

use crate::driver::device::Device;
use crate::driver::error::CudaError;
use crate::driver::stream::Stream;
use crate::launch::args::KernelArg;
use crate::pe::vmm::{self, Chunk, Range};

/// Physical memory is taken in at least this many bytes at a time: mapping costs tens of microseconds
/// and a message per PE, whatever the size.
const CHUNK: usize = 64 << 20;

/// How long the drop of a heap waits for its GPU's work.
pub(crate) const DROP_LIMIT: Duration = Duration::from_secs(30);

/// A device heap or an allocation in it that failed, on every PE alike.
#[derive(Debug, thiserror::Error)]
pub enum HeapError {
    /// The GPU or its driver lacks what the heap is made of.
    #[error(
        "GPU {ordinal} ({name}) cannot {what}; the symmetric device heap needs a GPU of compute \
         capability 7.0 or newer on Linux with virtual memory management"
    )]
    Unsupported {
        /// The GPU's number.
        ordinal: usize,
        /// Its name.
        name: String,
        /// What it cannot do.
        what: &'static str,
    },
    /// Two GPUs of the world cannot reach each other's memory.
    #[error("GPU {from} cannot access the memory of PE {pe}'s GPU: {source}")]
    NoPeerAccess {
        /// The GPU that tried.
        from: usize,
        /// The PE whose memory it is.
        pe: usize,
        /// What the driver said.
        source: CudaError,
    },
    /// The heap has no free block of this size.
    #[error("no room for {bytes} bytes in the symmetric device heap of {heap} bytes ({free} free)")]
    OutOfHeap {
        /// Bytes asked for.
        bytes: usize,
        /// Bytes free in total, possibly in pieces.
        free: usize,
        /// Size of the heap.
        heap: usize,
    },
    /// The size in bytes does not fit the address space.
    #[error("{len} elements of {element} bytes are more than can be addressed")]
    TooLarge {
        /// Elements asked for.
        len: usize,
        /// Bytes of one element.
        element: usize,
    },
    /// The heaps of all PEs together are more than can be addressed.
    #[error(
        "{pes} heaps of {heap} bytes, with room for registered memory behind them, are more than can be addressed; ask \
         for a smaller limit"
    )]
    TooManyBytes {
        /// PEs.
        pes: usize,
        /// Bytes of each heap and of the room behind it.
        heap: usize,
    },
    /// The addresses for registered memory have no free block of this size.
    #[error(
        "no room for {bytes} more bytes of registered memory: the {room} bytes of addresses for it have {free} free"
    )]
    NoRoom {
        /// Bytes of the memory.
        bytes: usize,
        /// Bytes free in total, possibly in pieces.
        free: usize,
        /// All there are.
        room: usize,
    },
    /// Registered memory that another PE still has mapped.
    #[error(
        "{bytes} bytes at {address:#x} are no longer symmetric, but another PE's driver has not unmapped them"
    )]
    PeerKeepsMapping {
        /// Where they were.
        address: u64,
        /// Their size.
        bytes: usize,
    },
    /// The object is of another heap.
    #[error("the symmetric object is of another device world than the one asked to free it")]
    OtherHeap,
    /// Another PE could not take its share of physical memory.
    #[error(
        "another PE has not got the {bytes} bytes of device memory this allocation needs on each"
    )]
    PeerOutOfMemory {
        /// Bytes of physical memory per PE.
        bytes: usize,
    },
    /// Memory of the program's that can not become symmetric.
    #[error("{bytes} bytes at {address:#x} can not become symmetric: {reason}")]
    NotShareable {
        /// Where it is.
        address: u64,
        /// Its size.
        bytes: usize,
        /// Why not.
        reason: String,
    },
    /// There is no registered memory at this address, or not on every PE.
    #[error(
        "{bytes} bytes at {address:#x} are not what was registered there, on this PE or another"
    )]
    NotRegistered {
        /// The address.
        address: u64,
        /// The size that was said.
        bytes: usize,
    },
    /// The driver failed.
    #[error(transparent)]
    Cuda(#[from] CudaError),
    /// The PEs did not meet or disagreed.
    #[error(transparent)]
    Collective(#[from] CollectiveError),
    /// The memory could not be shared.
    #[error(transparent)]
    Share(#[from] ShareError),
}

/// An array of `T` at the same offset of every PE's device heap. Given back by
/// [`DeviceHeap::free`] (collective); dropped without it, it keeps its memory until the heap ends.
///
/// As an argument of a kernel, `&object` is the address of this PE's part, which is how the verbs in
/// kernels want it.
#[must_use = "dropping the handle does not free the memory; see DeviceHeap::free"]
pub struct DeviceSym<T> {
    /// Which heap it is in.
    heap: u64,
    offset: usize,
    /// Where this PE's part is, in this PE's mapping.
    address: u64,
    len: usize,
    /// What it was allocated as; `None` for a part of another object, by address.
    block: Option<Block>,
    element: PhantomData<T>,
}

impl<T> fmt::Debug for DeviceSym<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "DeviceSym({} elements at heap offset {})",
            self.len, self.offset
        )
    }
}

impl<T: Pod> DeviceSym<T> {
    /// Number of elements on each PE.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Byte offset from the start of the heap, the same on every PE.
    pub fn offset(&self) -> usize {
        self.offset
    }
}

// SAFETY: points to the address in the object's handle.
unsafe impl<T: Pod> KernelArg for &DeviceSym<T> {
    fn pointer(&self) -> *const c_void {
        (&raw const self.address).cast()
    }
    fn size(&self) -> usize {
        size_of_val(&self.address)
    }
}

/// One PE's view of the symmetric device heap.
pub struct DeviceHeap<'w> {
    /// No other heap of this process ever has this number.
    id: u64,
    /// Whether the GPU's work is known to have ended (or not), so that the drop need not wait for it.
    pub(crate) drained: Option<bool>,
    pe: &'w Pe,
    device: Device,
    range: Range,
    stride: usize,
    /// Bytes of a heap; the rest of `stride` is for registered memory.
    limit: usize,
    granularity: usize,
    /// How much of each heap has physical memory; the same on every PE. Changed under the lock of `state`.
    mapped: AtomicUsize,
    /// Registered memory by its offset: its place in the room, and its bytes. The same on every PE. No PE waits for another
    /// while it holds this lock, unlike that of `state`.
    registered: Mutex<HashMap<usize, (Block, usize)>>,
    state: Mutex<State>,
}

struct State {
    allocator: HeapAllocator,
    /// Of the room behind the heap, if there is any.
    room: Option<HeapAllocator>,
    /// What was mapped: offset in the range, bytes.
    mappings: Vec<(usize, usize)>,
}

impl State {
    fn free_room(&mut self, block: Block) {
        if let Some(room) = &mut self.room {
            room.free(block);
        }
    }
}

impl<'w> DeviceHeap<'w> {
    /// Makes the heap: at most `limit` bytes per PE (default: the memory of the smallest GPU of the
    /// world). Addresses are reserved, memory is not. Collective.
    pub fn new(pe: &'w Pe, device: Device, limit: Option<usize>) -> Result<Self, HeapError> {
        Self::with_room(pe, device, limit, 0)
    }

    /// The same with addresses for `room` bytes of memory to be [registered](Self::register) on each PE, also if that is
    /// one piece.
    pub(crate) fn with_room(
        pe: &'w Pe,
        device: Device,
        limit: Option<usize>,
        room: usize,
    ) -> Result<Self, HeapError> {
        let properties = device.properties();
        let supported = match (properties.virtual_memory, properties.posix_handles) {
            (true, true) => Ok(()),
            (false, _) => Err("map device memory itself (no virtual memory management)"),
            (true, false) => Err("export device memory as a file descriptor"),
        };
        let granularity = match supported {
            Ok(()) => vmm::granularity(&device).map_err(HeapError::from),
            Err(what) => Err(HeapError::Unsupported {
                ordinal: device.ordinal(),
                name: properties.name.clone(),
                what,
            }),
        };
        // Everyone learns everyone's wishes, also of a PE that cannot take part (0 bytes): the others
        // then fail with it instead of waiting.
        let mine = granularity.as_ref().map_or(0, |&unit| {
            let limit = limit.unwrap_or(properties.memory);
            limit.checked_next_multiple_of(unit).unwrap_or(limit) as u64
        });
        let unit = granularity.as_ref().map_or(1, |&unit| unit as u64);
        let limit = smallest(pe, mine)?;
        // Pieces that come to that size must fit, and each is rounded up to units.
        let room = match room {
            0 => 0,
            _ => room
                .saturating_add(room / 8)
                .saturating_add(2 * unit as usize),
        };
        let room = smallest(pe, room as u64)? as usize;
        let granularity_of_all = largest(pe, unit)? as usize;
        granularity?;
        if limit == 0 {
            return Err(HeapError::PeerOutOfMemory { bytes: 0 });
        }
        // The same numbers on every PE, so the same error.
        let whole = |bytes: usize| bytes.checked_next_multiple_of(granularity_of_all);
        let limit = whole(limit as usize);
        let too_many = |heap| HeapError::TooManyBytes {
            pes: pe.n_pes(),
            heap,
        };
        let limit = limit.ok_or(too_many(usize::MAX))?;
        let stride = whole(room).and_then(|room| room.checked_add(limit));
        let stride = stride.ok_or(too_many(usize::MAX))?;
        let bytes = stride
            .checked_mul(pe.n_pes())
            .filter(|&bytes| bytes <= isize::MAX as usize)
            .ok_or(too_many(stride))?;
        let range = Range::reserve(&device, bytes);
        all_well(pe, range.is_ok(), stride)?;
        static HEAPS: AtomicU64 = AtomicU64::new(0);
        Ok(Self {
            id: HEAPS.fetch_add(1, Ordering::Relaxed),
            drained: None,
            pe,
            device,
            range: range?,
            stride,
            limit,
            granularity: granularity_of_all,
            mapped: AtomicUsize::new(0),
            registered: Mutex::default(),
            state: Mutex::new(State {
                allocator: HeapAllocator::new(limit),
                room: (stride > limit).then(|| HeapAllocator::new(stride - limit)),
                mappings: Vec::new(),
            }),
        })
    }

    /// The PE this is.
    pub fn pe(&self) -> &'w Pe {
        self.pe
    }

    /// Its GPU.
    pub fn device(&self) -> Device {
        self.device
    }

    /// Bytes between the heaps of consecutive PEs in this PE's addresses: the heap's limit, and what room there is for
    /// registered memory.
    pub fn stride(&self) -> usize {
        self.stride
    }

    /// Most bytes of heap per PE.
    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    /// Which heap of this process this is.
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// Device address, in this PE's mapping, of `offset` in the heap of `pe`.
    ///
    /// Panics if `pe` does not exist, or the heap has no such offset.
    pub fn address(&self, offset: usize, pe: usize) -> u64 {
        assert!(
            offset <= self.stride,
            "offset {offset} in a device heap of {} bytes",
            self.stride
        );
        assert!(
            pe < self.pe.n_pes(),
            "PE {pe} does not exist in a world of {}",
            self.pe.n_pes()
        );
        self.range.base() + (pe * self.stride + offset) as u64
    }

    /// Device address, in this PE's mapping, of `object` on `pe`: an argument for a kernel of this PE.
    ///
    /// Panics if `pe` does not exist, or the object is of another heap.
    pub fn address_of<T: Pod>(&self, object: &DeviceSym<T>, pe: usize) -> u64 {
        self.address_in(object, 0, pe)
    }

    /// The same of what lies `bytes` into `object`, which has them.
    pub(crate) fn address_in<T: Pod>(&self, object: &DeviceSym<T>, bytes: usize, pe: usize) -> u64 {
        // An object of a larger heap would reach into the next PE's.
        assert!(
            object.heap == self.id,
            "{object:?} is of another device world"
        );
        self.address(object.offset + bytes, pe)
    }

    /// An array of `len` elements on every PE, at a multiple of 256 bytes, content unspecified.
    /// Collective; errors come to every PE alike.
    pub fn alloc<T: Pod>(&self, len: usize) -> Result<DeviceSym<T>, HeapError> {
        self.alloc_aligned(len, 1)
    }

    /// The same at a multiple of `align`, a power of two, too.
    pub fn alloc_aligned<T: Pod>(
        &self,
        len: usize,
        align: usize,
    ) -> Result<DeviceSym<T>, HeapError> {
        let bytes = len
            .checked_mul(size_of::<T>())
            .filter(|&bytes| bytes <= isize::MAX as usize);
        self.pe.agree(
            align_of::<T>().max(align) as u64,
            bytes.map_or(u64::MAX, |bytes| bytes as u64),
        )?;
        let bytes = bytes.ok_or(HeapError::TooLarge {
            len,
            element: size_of::<T>(),
        })?;
        let mut state = self.state();
        let Some((offset, block)) = state
            .allocator
            .allocate(bytes, align_of::<T>().max(align).max(256))
        else {
            let free = state.allocator.free_bytes();
            return Err(HeapError::OutOfHeap {
                bytes,
                free,
                heap: self.limit,
            });
        };
        if let Err(error) = self.back(&mut state, offset + bytes) {
            state.allocator.free(block);
            return Err(error);
        }
        Ok(DeviceSym {
            heap: self.id,
            offset,
            address: self.address(offset, self.pe.my_pe()),
            len,
            block: Some(block),
            element: PhantomData,
        })
    }

    /// What lies at `offset`, as an object that can't be freed: for the crates whose programs know addresses only.
    ///
    /// Panics if the heap has not that much.
    #[doc(hidden)]
    pub fn at<T: Pod>(&self, offset: usize, len: usize) -> DeviceSym<T> {
        let end = len
            .checked_mul(size_of::<T>())
            .and_then(|bytes| bytes.checked_add(offset));
        assert!(
            end.is_some_and(|end| end <= self.stride),
            "{len} elements at offset {offset} in a device heap of {} bytes",
            self.stride
        );
        DeviceSym {
            heap: self.id,
            offset,
            address: self.address(offset, self.pe.my_pe()),
            len,
            block: None,
            element: PhantomData,
        }
    }

    /// The same, filled with zero bytes on every PE when it returns on any.
    pub fn alloc_zeroed<T: Pod>(&self, len: usize) -> Result<DeviceSym<T>, HeapError> {
        let object = self.alloc::<T>(len)?;
        let clear = Stream::new(&self.device).and_then(|stream| {
            // SAFETY: this PE's part, which nobody uses before the rendezvous below.
            unsafe { stream.zero_at(object.address, len * size_of::<T>()) }
        });
        // Also the rendezvous after which the others may write to this PE's part.
        let all = all_well(self.pe, clear.is_ok(), len * size_of::<T>());
        if clear.is_err() || all.is_err() {
            // As on all PEs.
            if let Some(block) = object.block {
                self.state().allocator.free(block);
            }
            clear?;
            all?;
        }
        Ok(object)
    }

    /// Gives the memory of `object` back on every PE, once every PE has come here. Kernels that use it
    /// must have ended. Collective. (Physical memory stays with the heap.)
    pub fn free<T: Pod>(&self, object: DeviceSym<T>) -> Result<(), HeapError> {
        let block = object.block.filter(|_| object.heap == self.id);
        let mine = block.is_some();
        // One PE's mistake is an error on all.
        let agreed = self
            .pe
            .agree(0, if mine { object.offset as u64 } else { u64::MAX });
        let block = block.ok_or(HeapError::OtherHeap)?;
        agreed?;
        self.state().allocator.free(block);
        Ok(())
    }

    /// Puts physical memory behind offsets up to `end` on every PE, if it is not there yet.
    fn back(&self, state: &mut State, end: usize) -> Result<(), HeapError> {
        let before = self.mapped.load(Ordering::Relaxed);
        if end <= before {
            return Ok(());
        }
        let missing = end - before;
        let bytes = missing
            .max(CHUNK)
            .next_multiple_of(self.granularity)
            .min(self.limit - before);
        let chunk =
            Chunk::create(&self.device, bytes).and_then(|chunk| Ok((chunk.export()?, chunk)));
        all_well(self.pe, chunk.is_ok(), bytes)?;
        let (fd, chunk) = chunk?;
        let mut mappings = self.map_of_all(before, bytes, fd, &chunk)?;
        state.mappings.append(&mut mappings);
        // Relaxed: who asks whether memory is there has its address from an allocation, which comes later.
        self.mapped.store(before + bytes, Ordering::Relaxed);
        Ok(())
    }

    /// Maps the memory of every PE of this host at `offset` of its part: this PE's is `chunk`, which `fd` stands for.
    /// Collective; what was mapped.
    fn map_of_all(
        &self,
        offset: usize,
        bytes: usize,
        fd: OwnedFd,
        chunk: &Chunk,
    ) -> Result<Vec<(usize, usize)>, HeapError> {
        // PEs of other hosts keep theirs to themselves; see `route`.
        let host = self.pe.shared_team();
        let fds = self.pe.share_fd_on_host(fd.as_fd());
        // A PE that failed on one host alone is one on all.
        all_well(self.pe, fds.is_ok(), bytes)?;
        let mut mapped = Ok(());
        let mut mappings = Vec::new();
        for (member, fd) in fds?.iter().enumerate() {
            let pe = host.world_pe(member);
            let at = pe * self.stride + offset;
            let outcome = if pe == self.pe.my_pe() {
                self.range.map(at, chunk, &self.device)
            } else {
                Chunk::import(&self.device, fd.as_fd(), bytes)
                    .and_then(|theirs| self.range.map(at, &theirs, &self.device))
            };
            match outcome {
                Ok(()) => mappings.push((at, bytes)),
                Err(source) => {
                    mapped = Err(HeapError::NoPeerAccess {
                        from: self.device.ordinal(),
                        pe,
                        source,
                    });
                    break;
                }
            }
        }
        let all = all_well(self.pe, mapped.is_ok(), bytes);
        if mapped.is_err() || all.is_err() {
            let mut unmapped = Ok(());
            for &(at, bytes) in &mappings {
                unmapped = unmapped.and(self.range.unmap(at, bytes));
            }
            mapped?;
            all?;
            unmapped?;
        }
        Ok(mappings)
    }

    /// Makes the `bytes` at `address`, device memory that the program has made by the driver's virtual memory management,
    /// part of every PE's symmetric memory: where they are, from then on, in this PE's part. The memory stays the
    /// program's; its own address stays, too. Collective: all PEs bring as many bytes.
    ///
    /// Errors: on every PE alike, with the reason on that which has one.
    #[doc(hidden)]
    pub fn register(&self, address: u64, bytes: usize) -> Result<u64, HeapError> {
        self.pe.agree(0, bytes as u64)?;
        let not = |reason: String| HeapError::NotShareable {
            address,
            bytes,
            reason,
        };
        // The same number on every PE, so the same error.
        if bytes == 0 || !bytes.is_multiple_of(self.granularity) {
            let unit = self.granularity;
            return Err(not(format!("the size is no multiple of {unit} bytes")));
        }
        let chunk = Chunk::of_mapping(&self.device, address, bytes)
            .and_then(|chunk| Ok((chunk.export()?, chunk)));
        let all = all_well(self.pe, chunk.is_ok(), bytes);
        let (fd, chunk) = chunk.map_err(|error| not(error.to_string()))?;
        all.map_err(|error| match error {
            HeapError::PeerOutOfMemory { .. } => not("that of another PE can not".into()),
            error => error,
        })?;
        let mut state = self.state();
        let none = HeapError::NoRoom {
            bytes,
            free: state.room.as_ref().map_or(0, HeapAllocator::free_bytes),
            room: self.stride - self.limit,
        };
        let room = state.room.as_mut();
        let (place, block) = room
            .and_then(|room| room.allocate(bytes, self.granularity))
            .ok_or(none)?;
        let offset = self.limit + place;
        match self.map_of_all(offset, bytes, fd, &chunk) {
            Ok(mut mappings) => state.mappings.append(&mut mappings),
            Err(error) => {
                state.free_room(block);
                return Err(error);
            }
        }
        self.registered().insert(offset, (block, bytes));
        Ok(self.address(offset, self.pe.my_pe()))
    }

    /// Takes registered memory out of the symmetric memory of every PE. No work of any GPU may use it. Collective.
    ///
    /// Errors: [`HeapError::NotRegistered`] on every PE if one says another address or size; it then stays. If one PE's
    /// driver fails, every PE has an error, and its addresses are never used again.
    #[doc(hidden)]
    pub fn unregister(&self, address: u64, bytes: usize) -> Result<(), HeapError> {
        let mut state = self.state();
        let offset = address.wrapping_sub(self.address(0, self.pe.my_pe())) as usize;
        let known = self.registered().get(&offset).copied();
        let known = known.filter(|&(_, size)| size == bytes);
        // One PE's mistake is an error on all.
        let mine = known.map_or(u64::MAX, |_| offset as u64);
        let one = largest(self.pe, mine)? == smallest(self.pe, mine)?;
        let Some((block, _)) = known.filter(|_| one) else {
            return Err(HeapError::NotRegistered { address, bytes });
        };
        let (of_this, others): (Vec<_>, Vec<_>) = std::mem::take(&mut state.mappings)
            .into_iter()
            .partition(|&(at, _)| at % self.stride == offset);
        state.mappings = others;
        self.registered().remove(&offset);
        let mut unmapped = Ok(());
        for (at, bytes) in of_this {
            unmapped = unmapped.and(self.range.unmap(at, bytes));
        }
        // Where that failed the addresses are not used again, by any PE: all take the same ones for what comes next.
        let all = all_well(self.pe, unmapped.is_ok(), bytes);
        unmapped?;
        all.map_err(|error| match error {
            HeapError::PeerOutOfMemory { .. } => HeapError::PeerKeepsMapping { address, bytes },
            error => error,
        })?;
        state.free_room(block);
        Ok(())
    }

    /// What is memory: how many bytes from the beginning on; from where on registered memory may be, a multiple of which
    /// bytes each piece of that is, and its pieces, by offset and bytes.
    #[doc(hidden)]
    pub fn memory(&self) -> (usize, usize, usize, Vec<(usize, usize)>) {
        let registered = self.registered();
        let pieces = registered.iter().map(|(&at, &(_, bytes))| (at, bytes));
        let mapped = self.mapped.load(Ordering::Relaxed);
        (mapped, self.limit, self.granularity, pieces.collect())
    }

    /// Whether the `bytes` from `offset` on are memory: of the heap's part that is mapped, or registered.
    #[doc(hidden)]
    pub fn has(&self, offset: usize, bytes: usize) -> bool {
        let within = |at: usize, size: usize| {
            let into = offset.checked_sub(at);
            into.is_some_and(|into| into <= size && bytes <= size - into)
        };
        within(0, self.mapped.load(Ordering::Relaxed))
            || (offset >= self.limit && {
                let registered = self.registered();
                registered.iter().any(|(&at, &(_, size))| within(at, size))
            })
    }

    fn registered(&self) -> MutexGuard<'_, HashMap<usize, (Block, usize)>> {
        self.registered
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Waits until all work of `device` has ended, but not longer than `limit`; says whether it has.
pub(crate) fn drain(device: Device, limit: Duration) -> bool {
    let (ended, end) = std::sync::mpsc::channel();
    let wait = move || {
        // An error says that the GPU does nothing any more, either.
        let _ = device.synchronize();
        let _ = ended.send(());
    };
    // The driver has no such wait with a limit, so one without is made by a thread that can be left to it.
    match std::thread::Builder::new().spawn(wait) {
        Ok(_) => end.recv_timeout(limit).is_ok(),
        // Not known to have ended.
        Err(_) => false,
    }
}

impl Drop for DeviceHeap<'_> {
    fn drop(&mut self) {
        // 1. Nothing of this GPU may still use the addresses. If it does not end, they are left to it: unmapped, it
        //    would fault, and with it the GPU's other work.
        let device = self.device;
        if !*self
            .drained
            .get_or_insert_with(|| drain(device, DROP_LIMIT))
        {
            self.range.leak();
            return;
        }
        // 2. Unmap; a peer that still has this PE's memory mapped keeps it alive for itself.
        for &(at, bytes) in &self.state().mappings {
            let _ = self.range.unmap(at, bytes);
        }
        // 3. The range is freed by its own drop, after its mappings are gone.
    }
}

/// Whether every PE fared well; otherwise the error for those who did.
fn all_well(pe: &Pe, well: bool, bytes: usize) -> Result<(), HeapError> {
    match smallest(pe, u64::from(well))? {
        0 if well => Err(HeapError::PeerOutOfMemory { bytes }),
        _ => Ok(()),
    }
}

fn smallest(pe: &Pe, value: u64) -> Result<u64, HeapError> {
    Ok(!largest(pe, !value)?)
}

fn largest(pe: &Pe, value: u64) -> Result<u64, HeapError> {
    let word = pe.alloc::<u64>(1).map_err(ShareError::from)?;
    pe.write(&word, &[value]);
    pe.world().reduce(&word, &word, op::Max)?;
    let value = pe.g(&word, pe.my_pe());
    pe.free(word).map_err(ShareError::from)?;
    Ok(value)
}
