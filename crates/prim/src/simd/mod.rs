//! Vector instruction sets, chosen at run time.
//!
//! A loop is written once, generic over [`Isa`], and compiled once per instruction set by
//! [`Simd::run`]. The lanes of a leaf are the same for every width, so all of them give the same bits.
//!
//! On AArch64 the plain set is NEON: it is part of that architecture's baseline and the compiler
//! uses it for the 128-bit vectors of [`plain`].
#![allow(unsafe_code)] // Reason: calls into functions compiled for instruction sets found at run time.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
pub(crate) mod lanes;
mod plain;

use core::fmt;

use half::{bf16, f16};

use crate::Float;

/// A vector instruction set that this machine has.
///
/// Reductions use [`Simd::detect`] unless told otherwise; the choice changes their speed, never
/// their result.
///
/// ```
/// use crosswarp_prim::{Reducer, Simd};
///
/// let values: Vec<f32> = (0..10_000).map(|i| (i as f32).sqrt()).collect();
/// let expected = Reducer::new().sum(&values)?;
/// for simd in Simd::available() {
///     assert_eq!(Reducer::new().simd(simd).sum(&values)?.to_bits(), expected.to_bits());
/// }
/// # Ok::<(), crosswarp_prim::ReduceError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Simd(Level);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Level {
    Plain,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Simd {
    /// The widest instruction set of this machine.
    #[must_use]
    pub fn detect() -> Self {
        Self::available().next_back().unwrap_or(Self(Level::Plain))
    }

    /// All instruction sets this machine has, the narrowest first.
    pub fn available() -> impl DoubleEndedIterator<Item = Self> {
        let levels: &[Level] = &[
            Level::Plain,
            #[cfg(target_arch = "x86_64")]
            Level::Avx2,
            #[cfg(target_arch = "x86_64")]
            Level::Avx512,
        ];
        levels
            .iter()
            .filter(|level| level.is_supported())
            .map(|&level| Self(level))
    }

    /// Runs a loop of the caller's, compiled for this instruction set.
    ///
    /// ```
    /// use crosswarp_prim::{Loop, Simd};
    ///
    /// struct Squares<'a>(&'a mut [f32]);
    ///
    /// impl Loop for Squares<'_> {
    ///     type Output = ();
    ///     #[inline(always)]
    ///     fn run(self) {
    ///         self.0.iter_mut().for_each(|x| *x *= *x);
    ///     }
    /// }
    ///
    /// let mut values = [1.0, 2.0, 3.0];
    /// Simd::detect().compile(Squares(&mut values));
    /// assert_eq!(values, [1.0, 4.0, 9.0]);
    /// ```
    #[inline]
    pub fn compile<L: Loop>(self, a_loop: L) -> L::Output {
        self.run(Plainly(a_loop))
    }

    /// Runs `work` compiled for this instruction set.
    #[inline]
    pub(crate) fn run<W: Work>(self, work: W) -> W::Output {
        match self.0 {
            // SAFETY: needs no particular instructions.
            Level::Plain => unsafe { work.run::<plain::Plain>() },
            // SAFETY: only `available` makes a `Simd`, of levels that `is_supported` found.
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => unsafe { run_avx2(work) },
            // SAFETY: as for AVX2.
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => unsafe { run_avx512(work) },
        }
    }
}

impl fmt::Display for Simd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Level::Plain if cfg!(target_arch = "aarch64") => "NEON",
            Level::Plain => "plain",
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => "AVX2",
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => "AVX-512",
        })
    }
}

impl Level {
    fn is_supported(self) -> bool {
        match self {
            Self::Plain => true,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => is_x86_feature_detected!("avx2") && is_x86_feature_detected!("f16c"),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => {
                Self::Avx2.is_supported()
                    && is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512vl")
            }
        }
    }
}

/// # Safety
/// The machine has AVX2 and F16C.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,f16c")]
unsafe fn run_avx2<W: Work>(work: W) -> W::Output {
    // SAFETY: the features of `Avx2` are enabled in this function.
    unsafe { work.run::<avx2::Avx2>() }
}

/// # Safety
/// The machine has the listed features.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,f16c,avx512f,avx512bw,avx512dq,avx512vl")]
unsafe fn run_avx512<W: Work>(work: W) -> W::Output {
    // SAFETY: the features of `Avx512` are enabled in this function.
    unsafe { work.run::<avx512::Avx512>() }
}

/// A loop in plain Rust, which the compiler turns into vectors of an instruction set: see [`Simd::compile`].
///
/// Rust neither fuses nor reorders operations on floats, so results do not depend on the instruction set.
pub trait Loop {
    /// What comes out.
    type Output;

    /// Implementations must be `#[inline(always)]`, and so must what they call: that is what compiles them for the
    /// set. A closure is not inlined so.
    fn run(self) -> Self::Output;
}

struct Plainly<L>(L);

impl<L: Loop> Work for Plainly<L> {
    type Output = L::Output;

    #[inline(always)]
    unsafe fn run<I: Isa>(self) -> L::Output {
        self.0.run()
    }
}

/// A loop to be compiled for each instruction set.
pub(crate) trait Work {
    type Output;

    /// Implementations must be `#[inline(always)]`: that is what compiles them for the set.
    ///
    /// # Safety
    /// The machine has the instruction set `I`.
    unsafe fn run<I: Isa>(self) -> Self::Output;
}

/// Largest [`Vector::WIDTH`].
pub(crate) const MAX_WIDTH: usize = 16;

/// An instruction set: its vectors for the two types in which sums are formed.
pub(crate) trait Isa {
    type F32: Vector<Lane = f32> + Load<f32> + Load<f16> + Load<bf16>;
    type F64: Vector<Lane = f64> + Load<f64>;
    type Lanes: crate::simd::lanes::Lanes;
}

/// An intrinsic within [`Vector`] or [`Load`].
#[cfg(target_arch = "x86_64")]
macro_rules! intrinsic {
    ($call:expr) => {{
        // SAFETY: the machine has the instruction set of the vector, by the contract of `Vector`; a
        // load is of the vector's width, or a mask leaves of it what can be read by the contract of
        // `Load`: lanes that it takes out are not accessed.
        unsafe { $call }
    }};
}
#[cfg(target_arch = "x86_64")]
use intrinsic;

/// A register of [`WIDTH`](Self::WIDTH) lanes.
///
/// # Safety
/// The functions need the instruction set that the vector belongs to.
pub(crate) trait Vector: Copy {
    type Lane: Float;
    /// Lanes: a power of two that divides 128.
    const WIDTH: usize;
    /// Registers that one pass over a leaf adds into: 8 or 16. 8 independent additions keep two
    /// adders of four cycles busy; 16 leave room for loads only where there are 32 registers.
    const PASS: usize = 8;

    unsafe fn splat(value: Self::Lane) -> Self;
    unsafe fn add(self, other: Self) -> Self;
    unsafe fn mul(self, other: Self) -> Self;
    /// Moves lane k + `step` to lane k, for k below `step`, a power of two below the width. What
    /// the other lanes get is unspecified.
    unsafe fn down(self, step: usize) -> Self;
    /// Lane 0.
    unsafe fn first(self) -> Self::Lane;
}

/// Loads [`Vector::WIDTH`] consecutive elements, widening them exactly where `T` is narrower.
pub(crate) trait Load<T>: Vector {
    /// # Safety
    /// As for [`Vector`], and `from` is valid for reads of that many elements (no alignment needed
    /// beyond that of `T`).
    unsafe fn load(from: *const T) -> Self;

    /// Loads the first `count` elements, at most [`Vector::WIDTH`], and `padding` for the others.
    ///
    /// # Safety
    /// As for [`load`](Self::load), of `count` elements.
    #[inline(always)]
    unsafe fn load_some(from: *const T, count: usize, padding: T) -> Self
    where
        T: Copy,
    {
        let mut padded = [padding; MAX_WIDTH];
        // SAFETY: the caller's contract; the array has as many elements as any vector.
        unsafe {
            core::ptr::copy_nonoverlapping(from, padded.as_mut_ptr(), count.min(MAX_WIDTH));
            Self::load(padded.as_ptr())
        }
    }

    /// Loads `count` elements, at least one and fewer than [`Vector::WIDTH`], to the last lanes, and `padding` to those before.
    ///
    /// # Safety
    /// As for [`load`](Self::load), of `count` elements.
    #[inline(always)]
    unsafe fn load_last(from: *const T, count: usize, padding: T) -> Self
    where
        T: Copy,
    {
        let mut padded = [padding; MAX_WIDTH];
        let count = count.min(Self::WIDTH);
        let last = &mut padded[Self::WIDTH - count..];
        // SAFETY: the caller's contract; `last` has `count` elements or more, and the array as many as any vector.
        unsafe {
            core::ptr::copy_nonoverlapping(from, last.as_mut_ptr(), count);
            Self::load(padded.as_ptr())
        }
    }
}

/// Hints that the cache line at `address`, which may be anywhere, will be read soon.
#[inline(always)]
pub(crate) fn prefetch<T>(address: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: SSE is part of the x86-64 baseline; a prefetch of any address has no effect but on
    // the caches.
    unsafe {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}
