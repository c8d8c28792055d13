//! Zeros of the system, in huge pages where there are many.

use std::io;
use std::ops::{Deref, DerefMut};

use bytemuck::allocation::try_zeroed_vec;
use bytemuck::{Pod, cast_slice, cast_slice_mut};
use memmap2::MmapMut;

/// A huge page of x86-64, and of AArch64 with pages of 4 KiB.
const HUGE_PAGE: usize = 2 << 20;
/// What is large is rounded up to whole huge pages from so many bytes on: a huge page is cleared faster than half as much is
/// in small ones.
pub(super) const ROUNDED_FROM: usize = HUGE_PAGE / 2;

/// At least so many bytes, all zero, in huge pages.
pub(super) fn huge_pages(bytes: usize) -> io::Result<MmapMut> {
    // Linux aligns a mapping to huge pages, which it has no others of then, if it is a whole number of them.
    let mapped = bytes
        .checked_next_multiple_of(HUGE_PAGE)
        .ok_or(io::ErrorKind::OutOfMemory)?;
    let map = MmapMut::map_anon(mapped)?;
    #[cfg(target_os = "linux")]
    {
        // Only advice: a kernel without huge pages refuses it and nothing is lost but speed.
        let _ = map.advise(memmap2::Advice::HugePage);
    }
    Ok(map)
}

/// Zeros, whose pages are made when they are first written.
pub enum Zeros<T> {
    /// A few, of the allocator, which does not clear what the system has just cleared.
    Allocated(Vec<T>),
    Mapped(MmapMut),
}

impl<T: Pod> Zeros<T> {
    /// At least `len`: huge pages are whole.
    ///
    /// Errors: the system's, when there is not enough memory.
    pub fn new(len: usize) -> io::Result<Zeros<T>> {
        let bytes = len.checked_mul(size_of::<T>());
        match bytes.ok_or(io::ErrorKind::OutOfMemory)? {
            bytes if bytes < ROUNDED_FROM => {
                let few = try_zeroed_vec(len).map_err(|()| io::ErrorKind::OutOfMemory)?;
                Ok(Zeros::Allocated(few))
            }
            bytes => Ok(Zeros::Mapped(huge_pages(bytes)?)),
        }
    }
}

impl<T: Pod> Deref for Zeros<T> {
    type Target = [T];
    #[inline(always)]
    fn deref(&self) -> &[T] {
        match self {
            Zeros::Allocated(few) => few,
            Zeros::Mapped(map) => cast_slice(map),
        }
    }
}

impl<T: Pod> DerefMut for Zeros<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        match self {
            Zeros::Allocated(few) => few,
            Zeros::Mapped(map) => cast_slice_mut(map),
        }
    }
}
