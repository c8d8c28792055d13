//! Copies into and out of symmetric memory that touch no byte twice.
//!
//! A receiver may see a word and reset it at once. A copy that stores some byte of the word again after that
//! brings the old value back. `memcpy` of a length known only at run time does store bytes twice: it copies
//! the first and the last 8 (16, 32) bytes of a short range, which overlap. So short copies are cut into
//! *pieces* of 1, 2, 4, 8 and 16 bytes, each at a multiple of its size in the symmetric memory and each
//! moved by one access. A naturally aligned word of these sizes is therefore one store of a put and one load
//! of a get. (16 bytes are one access in the eyes of others where the processor has AVX, by its
//! manufacturer's word, and 8 and 8 elsewhere.)
//!
//! Longer copies, up to `LONG`, are pieces at both ends and whole vectors between. Above that `memcpy` is
//! faster, and it does store a few bytes near the ends twice.
#![allow(unsafe_code)] // moves bytes between places that the callers name by address

use bytemuck::Pod;
use std::mem::MaybeUninit;
use std::ops::RangeInclusive;
use std::ptr;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

/// Copies of up to this many bytes are made of pieces alone.
const SHORT: usize = 64;
/// Copies of these many bytes touch no byte twice, either, where the processor has AVX: `memcpy` is no faster
/// there. Of 72 bytes it takes half the time, of 24 KiB four fifths.
#[cfg(target_arch = "x86_64")]
const VECTORS: RangeInclusive<usize> = 1024..=16384;

/// Copies `bytes` bytes to symmetric memory.
///
/// # Safety
/// Valid for writing and reading so many bytes; other PEs may access `to` at the same time.
#[inline(always)]
pub(crate) unsafe fn put_bytes(to: *mut u8, from: *const u8, bytes: usize) {
    // SAFETY: by the caller.
    unsafe { copy::<Into>(to, from, bytes) };
}

/// Copies `bytes` bytes from symmetric memory.
///
/// # Safety
/// Valid for writing and reading so many bytes; other PEs may access `from` at the same time.
#[inline(always)]
pub(crate) unsafe fn get_bytes(to: *mut u8, from: *const u8, bytes: usize) {
    // SAFETY: by the caller.
    unsafe { copy::<OutOf>(to, from, bytes) };
}

/// Stores `value`, in one piece if it has 1, 2, 4, 8 or 16 bytes and is aligned to them.
///
/// # Safety
/// `to` is valid for writing a T; other PEs may access it at the same time.
#[inline(always)]
pub(crate) unsafe fn store<T: Pod>(to: *mut T, value: T) {
    let (aligned, from) = (
        to.addr().is_multiple_of(size_of::<T>().max(1)),
        (&raw const value).cast(),
    );
    let to = to.cast();
    // SAFETY: by the caller.
    unsafe {
        match size_of::<T>() {
            1 => Into::piece::<1>(to, from),
            2 if aligned => Into::piece::<2>(to, from),
            4 if aligned => Into::piece::<4>(to, from),
            8 if aligned => Into::piece::<8>(to, from),
            16 if aligned => Into::piece::<16>(to, from),
            bytes => put_bytes(to, from, bytes),
        }
    }
}

/// Loads a value, in one piece if it has 1, 2, 4, 8 or 16 bytes and is aligned to them.
///
/// # Safety
/// `from` is valid for reading a T; other PEs may access it at the same time.
#[inline(always)]
pub(crate) unsafe fn load<T: Pod>(from: *const T) -> T {
    let mut value = MaybeUninit::<T>::uninit();
    let (aligned, to) = (
        from.addr().is_multiple_of(size_of::<T>().max(1)),
        value.as_mut_ptr().cast(),
    );
    let from = from.cast();
    // SAFETY: by the caller; all bytes of the value are written, and any are valid.
    unsafe {
        match size_of::<T>() {
            1 => OutOf::piece::<1>(to, from),
            2 if aligned => OutOf::piece::<2>(to, from),
            4 if aligned => OutOf::piece::<4>(to, from),
            8 if aligned => OutOf::piece::<8>(to, from),
            16 if aligned => OutOf::piece::<16>(to, from),
            bytes => get_bytes(to, from, bytes),
        }
        value.assume_init()
    }
}

/// Which side of a copy is symmetric: pieces are aligned there.
trait Direction {
    fn symmetric(to: *mut u8, from: *const u8) -> usize;
    /// Moves one piece of `BYTES` bytes.
    ///
    /// # Safety
    /// Both places are valid for it, and the symmetric one is a multiple of it.
    unsafe fn piece<const BYTES: usize>(to: *mut u8, from: *const u8);
}

/// A put.
struct Into;
/// A get.
struct OutOf;

impl Direction for Into {
    #[inline(always)]
    fn symmetric(to: *mut u8, _: *const u8) -> usize {
        to.addr()
    }

    #[inline(always)]
    unsafe fn piece<const BYTES: usize>(to: *mut u8, from: *const u8) {
        const { assert!(BYTES.is_power_of_two() && BYTES <= 16) };
        let order = Ordering::Relaxed;
        // SAFETY: by the caller. Any bits are valid integers.
        unsafe {
            match BYTES {
                1 => AtomicU8::from_ptr(to).store(*from, order),
                2 => {
                    AtomicU16::from_ptr(to.cast()).store(from.cast::<u16>().read_unaligned(), order)
                }
                4 => {
                    AtomicU32::from_ptr(to.cast()).store(from.cast::<u32>().read_unaligned(), order)
                }
                8 => {
                    AtomicU64::from_ptr(to.cast()).store(from.cast::<u64>().read_unaligned(), order)
                }
                #[cfg(target_arch = "x86_64")]
                _ => {
                    use std::arch::x86_64::{_mm_loadu_si128, _mm_store_si128};
                    _mm_store_si128(to.cast(), _mm_loadu_si128(from.cast()));
                }
                #[cfg(not(target_arch = "x86_64"))]
                _ => {
                    Self::piece::<8>(to, from);
                    Self::piece::<8>(to.add(8), from.add(8));
                }
            }
        }
    }
}

impl Direction for OutOf {
    #[inline(always)]
    fn symmetric(_: *mut u8, from: *const u8) -> usize {
        from.addr()
    }

    #[inline(always)]
    unsafe fn piece<const BYTES: usize>(to: *mut u8, from: *const u8) {
        const { assert!(BYTES.is_power_of_two() && BYTES <= 16) };
        let order = Ordering::Relaxed;
        let there = from.cast_mut();
        // SAFETY: by the caller. Any bits are valid integers. A load does not write.
        unsafe {
            match BYTES {
                1 => *to = AtomicU8::from_ptr(there).load(order),
                2 => (to.cast::<u16>())
                    .write_unaligned(AtomicU16::from_ptr(there.cast()).load(order)),
                4 => (to.cast::<u32>())
                    .write_unaligned(AtomicU32::from_ptr(there.cast()).load(order)),
                8 => (to.cast::<u64>())
                    .write_unaligned(AtomicU64::from_ptr(there.cast()).load(order)),
                #[cfg(target_arch = "x86_64")]
                _ => {
                    use std::arch::x86_64::{_mm_load_si128, _mm_storeu_si128};
                    _mm_storeu_si128(to.cast(), _mm_load_si128(from.cast()));
                }
                #[cfg(not(target_arch = "x86_64"))]
                _ => {
                    Self::piece::<8>(to, from);
                    Self::piece::<8>(to.add(8), from.add(8));
                }
            }
        }
    }
}

/// Takes the pieces of a range one by one.
trait Take {
    /// The next `BYTES` bytes, which begin `at` bytes after the start of the range.
    fn piece<const BYTES: usize>(&mut self, at: usize);
}

/// The pieces of `bytes` bytes, at most [`SHORT`], from the address `start` on: each at a multiple of its size,
/// from the first byte to the last, each byte in one of them.
#[inline(always)]
fn pieces(start: usize, bytes: usize, take: &mut impl Take) {
    let (mut at, mut left) = (0, bytes);
    macro_rules! piece {
        ($bytes:literal if $condition:expr) => {
            if $condition {
                take.piece::<$bytes>(at);
                at += $bytes;
                left -= $bytes;
            }
        };
    }
    // Up to a multiple of 16. Once a step does not fit, no later one does.
    if !start.is_multiple_of(16) {
        piece!(1 if start & 1 != 0 && left >= 1);
        piece!(2 if (start + at) & 2 != 0 && left >= 2);
        piece!(4 if (start + at) & 4 != 0 && left >= 4);
        piece!(8 if (start + at) & 8 != 0 && left >= 8);
    }
    // By the digits of what is left, which is faster than a loop.
    let sixteens = left / 16;
    if sixteens & 4 != 0 {
        piece!(16 if true);
        piece!(16 if true);
        piece!(16 if true);
        piece!(16 if true);
    }
    if sixteens & 2 != 0 {
        piece!(16 if true);
        piece!(16 if true);
    }
    piece!(16 if sixteens & 1 != 0);
    // What is left is shorter than what the address is a multiple of.
    if left != 0 {
        piece!(8 if left >= 8);
        piece!(4 if left >= 4);
        piece!(2 if left >= 2);
        if left >= 1 {
            take.piece::<1>(at);
        }
    }
}

/// Moves pieces.
struct Move<D> {
    to: *mut u8,
    from: *const u8,
    direction: std::marker::PhantomData<D>,
}

impl<D: Direction> Take for Move<D> {
    #[inline(always)]
    fn piece<const BYTES: usize>(&mut self, at: usize) {
        // SAFETY: made by `copy_pieces` only, whose caller promises the whole range; `pieces` gives parts
        // of it, aligned as asked.
        unsafe { D::piece::<BYTES>(self.to.add(at), self.from.add(at)) };
    }
}

/// # Safety
/// As of [`put_bytes`].
#[inline(always)]
unsafe fn copy_pieces<D: Direction>(to: *mut u8, from: *const u8, bytes: usize) {
    let direction = std::marker::PhantomData::<D>;
    let mut mover = Move {
        to,
        from,
        direction,
    };
    pieces(D::symmetric(to, from), bytes, &mut mover);
}

/// # Safety
/// As of [`put_bytes`].
#[inline(always)]
unsafe fn copy<D: Direction>(to: *mut u8, from: *const u8, bytes: usize) {
    let place = D::symmetric(to, from);
    // SAFETY: by the caller; the feature is there.
    unsafe {
        // A word and a cache line go without a call.
        if bytes == 8 && place.is_multiple_of(8) {
            return D::piece::<8>(to, from);
        }
        if bytes == 64 && place.is_multiple_of(16) && !begins_inside(to, from, bytes) {
            return copy_pieces::<D>(to, from, 64);
        }
        if bytes <= SHORT {
            return copy_short::<D>(to, from, bytes);
        }
        #[cfg(target_arch = "x86_64")]
        if VECTORS.contains(&bytes) && std::arch::is_x86_feature_detected!("avx") {
            return copy_vectors::<D>(to, from, bytes);
        }
        ptr::copy(from, to, bytes);
    }
}

/// Whether a copy from the first byte to the last would read what it has written. OpenSHMEM leaves that
/// undefined; here it stays what it was, a move. (A PE may put an object onto itself.)
#[inline(always)]
fn begins_inside(to: *mut u8, from: *const u8, bytes: usize) -> bool {
    to.addr().wrapping_sub(from.addr()).wrapping_sub(1) < bytes.wrapping_sub(1)
}

/// # Safety
/// As of [`put_bytes`].
#[inline(never)]
unsafe fn copy_short<D: Direction>(to: *mut u8, from: *const u8, bytes: usize) {
    // SAFETY: by the caller.
    unsafe {
        if begins_inside(to, from, bytes) {
            ptr::copy(from, to, bytes);
        } else {
            copy_pieces::<D>(to, from, bytes);
        }
    }
}

/// Pieces up to a multiple of 32, vectors of 32 bytes, pieces.
///
/// # Safety
/// As of [`put_bytes`].
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx")]
unsafe fn copy_vectors<D: Direction>(to: *mut u8, from: *const u8, bytes: usize) {
    use std::arch::x86_64::{__m256i, _mm256_loadu_si256, _mm256_storeu_si256};
    let before = D::symmetric(to, from).wrapping_neg() % 32;
    // SAFETY: by the caller; all parts lie in the range, which is longer than `SHORT`.
    unsafe {
        if begins_inside(to, from, bytes) {
            return ptr::copy(from, to, bytes);
        }
        copy_pieces::<D>(to, from, before);
        let mut at = before;
        let vector = |at: usize| _mm256_loadu_si256(from.add(at).cast::<__m256i>());
        let store = |at: usize, value| _mm256_storeu_si256(to.add(at).cast::<__m256i>(), value);
        while bytes - at >= 128 {
            let all = [
                vector(at),
                vector(at + 32),
                vector(at + 64),
                vector(at + 96),
            ];
            for (i, value) in all.into_iter().enumerate() {
                store(at + 32 * i, value);
            }
            at += 128;
        }
        while bytes - at >= 32 {
            store(at, vector(at));
            at += 32;
        }
        copy_pieces::<D>(to.add(at), from.add(at), bytes - at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Notes the pieces.
    #[derive(Default)]
    struct Note(Vec<(usize, usize)>);

    impl Take for Note {
        fn piece<const BYTES: usize>(&mut self, at: usize) {
            self.0.push((at, BYTES));
        }
    }

    #[test]
    fn pieces_cover_each_byte_once_and_lie_at_multiples_of_their_size() {
        for start in 4096..4096 + 64 {
            for bytes in 0..=SHORT {
                let mut note = Note::default();
                pieces(start, bytes, &mut note);
                let mut next = 0;
                for &(at, width) in &note.0 {
                    assert_eq!(at, next, "{bytes} bytes from {start}: {:?}", note.0);
                    assert_eq!((start + at) % width, 0, "{bytes} bytes from {start}");
                    next = at + width;
                }
                assert_eq!(next, bytes, "{bytes} bytes from {start}: {:?}", note.0);
                // A naturally aligned word is one piece.
                if [1, 2, 4, 8, 16].contains(&bytes) && start.is_multiple_of(bytes) {
                    assert_eq!(note.0, [(0, bytes)]);
                }
                // So is every aligned word inside of a longer range.
                for word in
                    (0..bytes).filter(|at| (start + at).is_multiple_of(8) && at + 8 <= bytes)
                {
                    let whole =
                        |&(at, width): &(usize, usize)| at <= word && word + 8 <= at + width;
                    assert!(
                        note.0.iter().any(whole),
                        "{bytes} bytes from {start}: {word}"
                    );
                }
            }
        }
    }

    #[test]
    fn copies_of_all_lengths_and_alignments_are_copies() {
        const ROOM: usize = 9000;
        let source: Vec<u8> = (0..ROOM).map(|i| (i * 7 + i / 251) as u8).collect();
        let mut lengths: Vec<usize> = (0..=200).collect();
        lengths.extend([255, 256, 257, 383, 384, 385, 1000, 4095, 4096, 4097, 8191]);
        for bytes in lengths {
            for (to, from) in (0..34).flat_map(|to| [0, 1, 8, 13, 16].map(|from| (to, from))) {
                for get in [false, true] {
                    let mut dest = vec![0xee; ROOM];
                    let (at, of) = (dest[to..].as_mut_ptr(), source[from..].as_ptr());
                    // SAFETY: both have room for `bytes` bytes there.
                    unsafe {
                        match get {
                            false => put_bytes(at, of, bytes),
                            true => get_bytes(at, of, bytes),
                        }
                    }
                    assert!(dest[..to].iter().all(|&byte| byte == 0xee));
                    assert_eq!(dest[to..to + bytes], source[from..from + bytes], "{bytes}");
                    assert!(
                        dest[to + bytes..].iter().all(|&byte| byte == 0xee),
                        "{bytes}"
                    );
                }
            }
        }
    }

    #[test]
    fn ranges_that_overlap_are_moved() {
        for bytes in [0, 1, 2, 8, 9, 16, 40, 64, 100, 2000, 5000] {
            for shift in [-70isize, -16, -8, -3, -1, 0, 1, 2, 8, 15, 16, 33, 64] {
                let mut memory: Vec<u8> = (0..6000usize).map(|i| (i * 5 + i / 250) as u8).collect();
                let mut expected = memory.clone();
                let (from, to) = (100, 100usize.wrapping_add_signed(shift));
                expected.copy_within(from..from + bytes, to);
                let start = memory.as_mut_ptr();
                // SAFETY: all inside of the array.
                unsafe { put_bytes(start.add(to), start.add(from), bytes) };
                assert_eq!(memory, expected, "{bytes} bytes moved by {shift}");
            }
        }
    }
}
