//! Vectors of lanes, and the choice of the vector unit at run time.
//!
//! A kernel is written once over [`Simd`] and compiled for each [`Isa`]. Every operation is one IEEE operation per
//! lane and none is ever fused or reassociated, so all units give the same bits.
#![allow(unsafe_code)] // Vector intrinsics and unaligned loads through raw pointers.

use crate::element::Real;

/// A vector of `LANES` elements.
///
/// # Safety of every method
/// The caller must run on a processor that has the vector unit the implementing type is named after, and pointers
/// must be valid for `LANES` elements; they need not be aligned.
pub trait Simd: Copy {
    /// The element of a lane.
    type Elem: Real;
    /// Lanes per vector; divides 16.
    const LANES: usize;

    /// Whether [`Simd::shift_in_left`] and [`Simd::shift_in_right`] are faster than two more unaligned loads.
    const SHIFTS: bool;

    /// All lanes `value`.
    unsafe fn splat(value: Self::Elem) -> Self;
    /// The `LANES` elements from `from` on.
    unsafe fn load(from: *const Self::Elem) -> Self;
    /// Writes the lanes to `to` on.
    unsafe fn store(self, to: *mut Self::Elem);
    /// As [`Simd::store`], past the caches where the unit can; `to` must be aligned to the vector.
    unsafe fn stream(self, to: *mut Self::Elem);
    /// Asks for the cache line of `at`, which may be any address.
    fn prefetch(at: *const Self::Elem);
    /// Lane by lane `self + other`.
    unsafe fn add(self, other: Self) -> Self;
    /// Lane by lane `self − other`.
    unsafe fn sub(self, other: Self) -> Self;
    /// Lane by lane `self · other`.
    unsafe fn mul(self, other: Self) -> Self;
    /// `old` in the lanes whose byte from `fixed` on is not zero, `new` in the others.
    unsafe fn hold(fixed: *const u8, old: Self, new: Self) -> Self;
    /// The last lane of `before`, then all lanes of `self` but its last.
    unsafe fn shift_in_left(before: Self, here: Self) -> Self;
    /// All lanes of `here` but its first, then the first of `after`.
    unsafe fn shift_in_right(here: Self, after: Self) -> Self;
}

/// Bytes of a line of the cache.
pub const LINE: usize = 64;

/// Asks for the cache lines of `row`.
#[inline(always)]
pub fn prefetch<T>(row: &[T]) {
    for line in row.chunks((LINE / size_of::<T>()).max(1)) {
        prefetch_line(line.as_ptr().addr());
    }
}

/// Asks for the cache line of an address, which may be any.
#[inline(always)]
pub fn prefetch_line(at: usize) {
    #[cfg(target_arch = "x86_64")]
    x86::prefetch(std::ptr::without_provenance::<u8>(at));
    let _ = at;
}

/// As [`prefetch_line`], into the second level of caches: for what would be gone from the first before it is needed.
#[inline(always)]
pub fn prefetch_to_second_level(at: usize) {
    #[cfg(target_arch = "x86_64")]
    x86::prefetch_to_second_level(std::ptr::without_provenance::<u8>(at));
    let _ = at;
}

/// The kinds of vector unit that kernels are compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// 512-bit AVX-512F.
    #[cfg(target_arch = "x86_64")]
    Avx512,
    /// 256-bit AVX2.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// The target's baseline (SSE2 on x86-64, NEON on AArch64).
    Plain,
}

/// A vector unit that the running processor has: only this module makes values of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Isa(Unit);

impl Isa {
    /// The units of this processor, widest first; the last is always the baseline.
    pub fn available() -> Vec<Isa> {
        let mut units = Vec::new();
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx512f") {
                units.push(Isa(Unit::Avx512));
            }
            if is_x86_feature_detected!("avx2") {
                units.push(Isa(Unit::Avx2));
            }
        }
        units.push(Isa(Unit::Plain));
        units
    }

    /// The widest unit of this processor.
    pub fn widest() -> Isa {
        Isa::available()[0]
    }

    /// Which one it is.
    pub fn unit(self) -> Unit {
        self.0
    }
}

/// A loop that the compiler makes vectors of, to be compiled for each [`Unit`].
pub trait Work {
    /// Does it. Implementations, and what they call, are `#[inline(always)]`: that is what compiles them for the unit.
    fn run(self);
}

/// Runs `work` compiled for `isa`'s vector unit.
pub fn on_unit(isa: Isa, work: impl Work) {
    match isa.unit() {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: an `Isa` is only made of a unit that this processor has.
        Unit::Avx512 => unsafe { run_avx512(work) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        Unit::Avx2 => unsafe { run_avx2(work) },
        Unit::Plain => work.run(),
    }
}

/// # Safety
/// The processor must have AVX-512F.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
unsafe fn run_avx512(work: impl Work) {
    work.run();
}

/// # Safety
/// The processor must have AVX2.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn run_avx2(work: impl Work) {
    work.run();
}

/// Completes the [streamed](Simd::stream) stores of this thread before any later store, so that whoever learns of the
/// data by ordinary means (a signal, the end of the thread) finds it.
pub fn drain() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a fence touches no memory; every x86-64 processor has it.
    unsafe {
        std::arch::x86_64::_mm_sfence();
    }
}

/// A plain array of lanes.
#[derive(Clone, Copy)]
pub struct Array<F, const N: usize>([F; N]);

impl<F: Real, const N: usize> Array<F, N> {
    #[inline(always)]
    fn zip(self, other: Self, f: impl Fn(F, F) -> F) -> Self {
        let mut lanes = self.0;
        for (lane, &with) in lanes.iter_mut().zip(&other.0) {
            *lane = f(*lane, with);
        }
        Array(lanes)
    }
}

impl<F: Real, const N: usize> Simd for Array<F, N> {
    type Elem = F;
    const LANES: usize = N;
    const SHIFTS: bool = false;

    #[inline(always)]
    unsafe fn splat(value: F) -> Self {
        Array([value; N])
    }
    #[inline(always)]
    unsafe fn load(from: *const F) -> Self {
        // SAFETY: the caller vouches for N elements; an unaligned read needs no alignment.
        Array(unsafe { from.cast::<[F; N]>().read_unaligned() })
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut F) {
        // SAFETY: as in `load`.
        unsafe { to.cast::<[F; N]>().write_unaligned(self.0) }
    }
    #[inline(always)]
    unsafe fn stream(self, to: *mut F) {
        // SAFETY: passed on.
        unsafe { self.store(to) }
    }
    #[inline(always)]
    fn prefetch(at: *const F) {
        #[cfg(target_arch = "x86_64")]
        x86::prefetch(at);
        let _ = at;
    }
    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        self.zip(other, |a, b| a + b)
    }
    #[inline(always)]
    unsafe fn sub(self, other: Self) -> Self {
        self.zip(other, |a, b| a - b)
    }
    #[inline(always)]
    unsafe fn mul(self, other: Self) -> Self {
        self.zip(other, |a, b| a * b)
    }
    #[inline(always)]
    unsafe fn hold(fixed: *const u8, old: Self, new: Self) -> Self {
        // SAFETY: the caller vouches for N bytes.
        let fixed = unsafe { fixed.cast::<[u8; N]>().read_unaligned() };
        let mut lanes = new.0;
        for i in 0..N {
            if fixed[i] != 0 {
                lanes[i] = old.0[i];
            }
        }
        Array(lanes)
    }
    #[inline(always)]
    unsafe fn shift_in_left(before: Self, here: Self) -> Self {
        let mut lanes = [before.0[N - 1]; N];
        lanes[1..].copy_from_slice(&here.0[..N - 1]);
        Array(lanes)
    }
    #[inline(always)]
    unsafe fn shift_in_right(here: Self, after: Self) -> Self {
        let mut lanes = [after.0[0]; N];
        lanes[..N - 1].copy_from_slice(&here.0[1..]);
        Array(lanes)
    }
}

/// The vectors of x86-64.
#[cfg(target_arch = "x86_64")]
pub mod x86 {
    use super::Simd;
    use std::arch::x86_64::*;

    /// Asks for the cache line of `at`.
    #[inline(always)]
    pub fn prefetch<T>(at: *const T) {
        // SAFETY: a prefetch reads nothing and never faults; every x86-64 processor has it.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) }
    }

    /// As [`prefetch`], into the second level of caches.
    #[inline(always)]
    pub fn prefetch_to_second_level<T>(at: *const T) {
        // SAFETY: as in `prefetch`.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(at.cast()) }
    }

    macro_rules! vector {
        ($(#[$doc:meta])* $name:ident, $elem:ty, $lanes:literal, $raw:ty, $set1:ident, $loadu:ident, $storeu:ident, $stream:ident,
         $add:ident, $sub:ident, $mul:ident, |$fixed:ident, $old:ident, $new:ident| $hold:expr,
         $shifts:literal, |$a:ident, $b:ident| $left:expr, $right:expr) => {
            $(#[$doc])*
            #[derive(Clone, Copy)]
            pub struct $name($raw);

            // SAFETY (of every block below): the trait's contract gives the vector unit and valid pointers; the
            // intrinsics used are the unaligned ones.
            #[allow(clippy::undocumented_unsafe_blocks)]
            impl Simd for $name {
                type Elem = $elem;
                const LANES: usize = $lanes;
                const SHIFTS: bool = $shifts;

                #[inline(always)]
                unsafe fn splat(value: $elem) -> Self {
                    $name(unsafe { $set1(value) })
                }
                #[inline(always)]
                unsafe fn load(from: *const $elem) -> Self {
                    $name(unsafe { $loadu(from) })
                }
                #[inline(always)]
                unsafe fn store(self, to: *mut $elem) {
                    unsafe { $storeu(to, self.0) }
                }
                #[inline(always)]
                unsafe fn stream(self, to: *mut $elem) {
                    unsafe { $stream(to.cast(), self.0) }
                }
                #[inline(always)]
                fn prefetch(at: *const $elem) {
                    prefetch(at);
                }
                #[inline(always)]
                unsafe fn add(self, other: Self) -> Self {
                    $name(unsafe { $add(self.0, other.0) })
                }
                #[inline(always)]
                unsafe fn sub(self, other: Self) -> Self {
                    $name(unsafe { $sub(self.0, other.0) })
                }
                #[inline(always)]
                unsafe fn mul(self, other: Self) -> Self {
                    $name(unsafe { $mul(self.0, other.0) })
                }
                #[inline(always)]
                unsafe fn hold($fixed: *const u8, old: Self, new: Self) -> Self {
                    let ($old, $new) = (old.0, new.0);
                    $name(unsafe { $hold })
                }
                #[inline(always)]
                unsafe fn shift_in_left(before: Self, here: Self) -> Self {
                    let ($a, $b) = (before.0, here.0);
                    $name(unsafe { $left })
                }
                #[inline(always)]
                unsafe fn shift_in_right(here: Self, after: Self) -> Self {
                    let ($a, $b) = (here.0, after.0);
                    $name(unsafe { $right })
                }
            }
        };
    }

    vector!(
        /// 16 × f32 in an AVX-512 register.
        F32x16, f32, 16, __m512, _mm512_set1_ps, _mm512_loadu_ps, _mm512_storeu_ps, _mm512_stream_ps,
        _mm512_add_ps, _mm512_sub_ps, _mm512_mul_ps,
        |fixed, old, new| {
            let wide = _mm512_cvtepu8_epi32(_mm_loadu_si128(fixed.cast()));
            _mm512_mask_blend_ps(_mm512_test_epi32_mask(wide, wide), new, old)
        },
        true, |a, b| _mm512_castsi512_ps(_mm512_alignr_epi32::<15>(_mm512_castps_si512(b), _mm512_castps_si512(a))), _mm512_castsi512_ps(_mm512_alignr_epi32::<1>(_mm512_castps_si512(b), _mm512_castps_si512(a)))
    );
    vector!(
        /// 8 × f64 in an AVX-512 register.
        F64x8, f64, 8, __m512d, _mm512_set1_pd, _mm512_loadu_pd, _mm512_storeu_pd, _mm512_stream_pd,
        _mm512_add_pd, _mm512_sub_pd, _mm512_mul_pd,
        |fixed, old, new| {
            let wide = _mm512_cvtepu8_epi64(_mm_loadl_epi64(fixed.cast()));
            _mm512_mask_blend_pd(_mm512_test_epi64_mask(wide, wide), new, old)
        },
        true, |a, b| _mm512_castsi512_pd(_mm512_alignr_epi64::<7>(_mm512_castpd_si512(b), _mm512_castpd_si512(a))), _mm512_castsi512_pd(_mm512_alignr_epi64::<1>(_mm512_castpd_si512(b), _mm512_castpd_si512(a)))
    );
    vector!(
        /// 8 × f32 in an AVX register.
        F32x8, f32, 8, __m256, _mm256_set1_ps, _mm256_loadu_ps, _mm256_storeu_ps, _mm256_stream_ps,
        _mm256_add_ps, _mm256_sub_ps, _mm256_mul_ps,
        |fixed, old, new| {
            let wide = _mm256_cvtepu8_epi32(_mm_loadl_epi64(fixed.cast()));
            let free = _mm256_cmpeq_epi32(wide, _mm256_setzero_si256());
            _mm256_blendv_ps(old, new, _mm256_castsi256_ps(free))
        },
        false, |a, b| {
            let across = _mm256_castps_si256(_mm256_permute2f128_ps::<0x21>(a, b));
            _mm256_castsi256_ps(_mm256_alignr_epi8::<12>(_mm256_castps_si256(b), across))
        }, {
            let across = _mm256_castps_si256(_mm256_permute2f128_ps::<0x21>(a, b));
            _mm256_castsi256_ps(_mm256_alignr_epi8::<4>(across, _mm256_castps_si256(a)))
        }
    );
    vector!(
        /// 4 × f64 in an AVX register.
        F64x4, f64, 4, __m256d, _mm256_set1_pd, _mm256_loadu_pd, _mm256_storeu_pd, _mm256_stream_pd,
        _mm256_add_pd, _mm256_sub_pd, _mm256_mul_pd,
        |fixed, old, new| {
            let wide = _mm256_cvtepu8_epi64(_mm_cvtsi32_si128(fixed.cast::<i32>().read_unaligned()));
            let free = _mm256_cmpeq_epi64(wide, _mm256_setzero_si256());
            _mm256_blendv_pd(old, new, _mm256_castsi256_pd(free))
        },
        false, |a, b| _mm256_shuffle_pd::<0b0101>(_mm256_permute2f128_pd::<0x21>(a, b), b), _mm256_shuffle_pd::<0b0101>(a, _mm256_permute2f128_pd::<0x21>(a, b))
    );
}
