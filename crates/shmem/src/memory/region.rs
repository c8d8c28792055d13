//! Memory that PEs share: a memfd mapped by every process, or anonymous memory of one process.
#![allow(unsafe_code)] // maps memory; everything above works with checked offsets into it

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{MemfdFlags, SealFlags};
use rustix::io;
use rustix::mm::{Advice, MapFlags, ProtFlags};
use std::ffi::c_void;
use std::ptr::{self, NonNull};

/// Every mapping begins at a multiple of this at least, a huge page.
const ALIGN: usize = 2 << 20;
/// No mapping is asked to begin at a multiple of more, so that one of any size finds its place.
const MOST_ALIGN: usize = 1 << 40;

/// A mapping of `len` bytes begins at a multiple of this: so objects of a heap can be aligned up to it, on
/// every PE. It is the first power of two that is not less than the mapping.
pub(crate) fn alignment(len: usize) -> usize {
    len.checked_next_power_of_two()
        .unwrap_or(MOST_ALIGN)
        .clamp(ALIGN, MOST_ALIGN)
}

/// A mapping of `len` bytes, zero until written, unmapped on drop. Pages are reserved, not touched.
#[derive(Debug)]
pub(crate) struct Region {
    base: NonNull<u8>,
    len: usize,
}

// SAFETY: a Region is an address range; it owns no thread-bound state. Whoever reads or writes
// through `base` argues for the access itself.
unsafe impl Send for Region {}
// SAFETY: as above; shared references give out only the address.
unsafe impl Sync for Region {}

impl Region {
    /// Reserves addresses for `len` bytes from a multiple of their [`alignment`] on; what is mapped there next
    /// replaces the reservation.
    fn reserve(len: usize) -> io::Result<*mut c_void> {
        let page = rustix::param::page_size();
        let whole = len.checked_next_multiple_of(page);
        let align = alignment(len);
        let all = whole.and_then(|len| len.checked_add(align));
        let all = all.ok_or(io::Errno::NOMEM)?;
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: a fresh mapping at an address of the kernel's choice touches no existing memory.
        let start =
            unsafe { rustix::mm::mmap_anonymous(ptr::null_mut(), all, ProtFlags::empty(), flags)? };
        let before = start.addr().next_multiple_of(align) - start.addr();
        let after = align - before;
        // SAFETY: both ranges are whole pages of the reservation, outside the `len` bytes that stay.
        unsafe {
            if before > 0 {
                rustix::mm::munmap(start, before)?;
            }
            if after > 0 {
                rustix::mm::munmap(start.wrapping_byte_add(all - after), after)?;
            }
        }
        Ok(start.wrapping_byte_add(before))
    }

    /// Private to this process: the memory of PEs that are threads. `huge` asks for huge pages, which
    /// cost 2 MiB at the first touch of each, but for the first.
    pub(crate) fn anonymous(len: usize, huge: bool) -> io::Result<Self> {
        let at = Self::reserve(len)?;
        // SAFETY: replaces the reservation just made, which nobody else knows of.
        let base = unsafe {
            rustix::mm::mmap_anonymous(
                at,
                len,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE | MapFlags::NORESERVE | MapFlags::FIXED,
            )?
        };
        // The first objects of a heap are small, and of most worlds the only ones: they need no huge page.
        let first = ALIGN.min(len);
        if huge {
            let rest = base.wrapping_byte_add(first);
            // SAFETY: the range was mapped just above. A refusal costs speed only.
            let _ = unsafe { rustix::mm::madvise(rest, len - first, Advice::LinuxHugepage) };
        }
        Ok(Self::from_raw(base.cast(), len))
    }

    /// Maps the first `len` bytes of a sealed memfd that has as many; refuses other files.
    pub(crate) fn shared(fd: BorrowedFd<'_>, len: usize) -> io::Result<Self> {
        // The file must not become shorter, or accesses inside the range would fault.
        if !rustix::fs::fcntl_get_seals(fd)?.contains(SealFlags::SHRINK) {
            return Err(io::Errno::INVAL);
        }
        let at = Self::reserve(len)?;
        // SAFETY: replaces the reservation just made, which nobody else knows of, by a file that has at
        // least `len` bytes (by the caller) and keeps them (by the seal).
        let base = unsafe {
            rustix::mm::mmap(
                at,
                len,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED | MapFlags::NORESERVE | MapFlags::FIXED,
                fd,
                0,
            )?
        };
        Ok(Self::from_raw(base.cast(), len))
    }

    fn from_raw(base: *mut u8, len: usize) -> Self {
        let base = NonNull::new(base).expect("mmap does not return null");
        Self { base, len }
    }

    pub(crate) fn base(&self) -> NonNull<u8> {
        self.base
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: `base..base+len` was mapped by the constructor and is unmapped only here; all
        // users hold a borrow of the world that owns this Region.
        let _ = unsafe { rustix::mm::munmap(self.base.as_ptr().cast(), self.len) };
    }
}

/// An unnamed file of `len` bytes in memory, sealed against resizing, close-on-exec.
pub(crate) fn memfd(name: &str, len: usize) -> io::Result<OwnedFd> {
    let flags = MemfdFlags::ALLOW_SEALING | MemfdFlags::CLOEXEC;
    let fd = rustix::fs::memfd_create(name, flags)?;
    rustix::fs::ftruncate(&fd, len as u64)?;
    rustix::fs::fcntl_add_seals(
        fd.as_fd(),
        SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL,
    )?;
    Ok(fd)
}
