//! Vectors as rows of 16-byte lanes: what a transposition in registers is made of.
#![allow(unsafe_code)] // Reason: intrinsics, and loads and stores through pointers.

/// Most lanes of a vector.
pub(crate) const MOST_LANES: usize = 4;

/// A register of [`LANES`](Self::LANES) lanes of 16 bytes.
///
/// # Safety
/// The functions need the instruction set that the vector belongs to; pointers are valid for a
/// vector, aligned for nothing unless said.
pub(crate) trait Lanes: Copy {
    /// 1, 2 or 4.
    const LANES: usize;

    unsafe fn load(from: *const u8) -> Self;
    unsafe fn store(self, to: *mut u8);
    /// Stores past the caches; `to` is aligned to the vector's size.
    unsafe fn stream(self, to: *mut u8);
    /// In each lane: the first (second) halves of `a` and `b`, interleaved in units of `E` bytes,
    /// 1 to 8.
    unsafe fn interleave<const E: usize>(a: Self, b: Self) -> (Self, Self);
    /// Exchanges lanes between the first `LANES` registers: lane j of register i goes to lane i of
    /// register j.
    unsafe fn exchange(rows: [Self; MOST_LANES]) -> [Self; MOST_LANES];
}

/// One lane, without any special instruction; the compiler maps it to SSE2 or NEON.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Plain([u8; 16]);

/// The interleaved halves of two arrays of `N` elements.
#[inline(always)]
fn interleave<T: bytemuck::Pod, const N: usize>(a: Plain, b: Plain) -> (Plain, Plain) {
    let (a, b): ([T; N], [T; N]) = (bytemuck::cast(a.0), bytemuck::cast(b.0));
    let of = |first: usize| -> [T; N] {
        core::array::from_fn(|k| {
            let side = if k % 2 == 0 { &a } else { &b };
            side[first + k / 2]
        })
    };
    (
        Plain(bytemuck::cast(of(0))),
        Plain(bytemuck::cast(of(N / 2))),
    )
}

impl Lanes for Plain {
    const LANES: usize = 1;

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: valid for 16 bytes by the contract; bytes need no alignment.
        Self(unsafe { *from.cast::<[u8; 16]>() })
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: as in `load`.
        unsafe { *to.cast::<[u8; 16]>() = self.0 };
    }
    #[inline(always)]
    unsafe fn stream(self, to: *mut u8) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: SSE2 is part of the baseline; `to` is valid for 16 bytes and aligned to them.
        unsafe {
            use core::arch::x86_64::{__m128i, _mm_stream_si128};
            _mm_stream_si128(to.cast(), core::mem::transmute::<[u8; 16], __m128i>(self.0));
        }
        #[cfg(not(target_arch = "x86_64"))]
        // SAFETY: passed on.
        unsafe {
            self.store(to);
        }
    }
    #[inline(always)]
    unsafe fn interleave<const E: usize>(a: Self, b: Self) -> (Self, Self) {
        match E {
            1 => interleave::<u8, 16>(a, b),
            2 => interleave::<u16, 8>(a, b),
            4 => interleave::<u32, 4>(a, b),
            _ => interleave::<u64, 2>(a, b),
        }
    }
    #[inline(always)]
    unsafe fn exchange(rows: [Self; MOST_LANES]) -> [Self; MOST_LANES] {
        rows
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use core::arch::x86_64::*;

    use super::{Lanes, MOST_LANES};

    /// An intrinsic of the vector's instruction set.
    macro_rules! intrinsic {
        ($call:expr) => {{
            // SAFETY: the machine has the instruction set and pointers are valid for the vector, by
            // the contract of `Lanes`.
            unsafe { $call }
        }};
    }

    impl Lanes for __m256i {
        const LANES: usize = 2;

        #[inline(always)]
        unsafe fn load(from: *const u8) -> Self {
            intrinsic!(_mm256_loadu_si256(from.cast()))
        }
        #[inline(always)]
        unsafe fn store(self, to: *mut u8) {
            intrinsic!(_mm256_storeu_si256(to.cast(), self));
        }
        #[inline(always)]
        unsafe fn stream(self, to: *mut u8) {
            intrinsic!(_mm256_stream_si256(to.cast(), self));
        }
        #[inline(always)]
        unsafe fn interleave<const E: usize>(a: Self, b: Self) -> (Self, Self) {
            intrinsic!(match E {
                1 => (_mm256_unpacklo_epi8(a, b), _mm256_unpackhi_epi8(a, b)),
                2 => (_mm256_unpacklo_epi16(a, b), _mm256_unpackhi_epi16(a, b)),
                4 => (_mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b)),
                _ => (_mm256_unpacklo_epi64(a, b), _mm256_unpackhi_epi64(a, b)),
            })
        }
        #[inline(always)]
        unsafe fn exchange([a, b, c, d]: [Self; MOST_LANES]) -> [Self; MOST_LANES] {
            intrinsic!([
                _mm256_permute2x128_si256::<0x20>(a, b),
                _mm256_permute2x128_si256::<0x31>(a, b),
                c,
                d,
            ])
        }
    }

    impl Lanes for __m512i {
        const LANES: usize = 4;

        #[inline(always)]
        unsafe fn load(from: *const u8) -> Self {
            intrinsic!(_mm512_loadu_si512(from.cast()))
        }
        #[inline(always)]
        unsafe fn store(self, to: *mut u8) {
            intrinsic!(_mm512_storeu_si512(to.cast(), self));
        }
        #[inline(always)]
        unsafe fn stream(self, to: *mut u8) {
            intrinsic!(_mm512_stream_si512(to.cast(), self));
        }
        #[inline(always)]
        unsafe fn interleave<const E: usize>(a: Self, b: Self) -> (Self, Self) {
            intrinsic!(match E {
                1 => (_mm512_unpacklo_epi8(a, b), _mm512_unpackhi_epi8(a, b)),
                2 => (_mm512_unpacklo_epi16(a, b), _mm512_unpackhi_epi16(a, b)),
                4 => (_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b)),
                _ => (_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b)),
            })
        }
        #[inline(always)]
        unsafe fn exchange([a, b, c, d]: [Self; MOST_LANES]) -> [Self; MOST_LANES] {
            let (p, q) = intrinsic!((
                _mm512_shuffle_i64x2::<0b01_00_01_00>(a, b),
                _mm512_shuffle_i64x2::<0b11_10_11_10>(a, b)
            ));
            let (r, s) = intrinsic!((
                _mm512_shuffle_i64x2::<0b01_00_01_00>(c, d),
                _mm512_shuffle_i64x2::<0b11_10_11_10>(c, d)
            ));
            intrinsic!([
                _mm512_shuffle_i64x2::<0b10_00_10_00>(p, r),
                _mm512_shuffle_i64x2::<0b11_01_11_01>(p, r),
                _mm512_shuffle_i64x2::<0b10_00_10_00>(q, s),
                _mm512_shuffle_i64x2::<0b11_01_11_01>(q, s),
            ])
        }
    }
}
