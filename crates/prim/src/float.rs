//! What the superaccumulator and the leaf sum need to know of `f32` and `f64`.

use core::fmt::Debug;
use core::ops::{Add, Mul};

use crosswarp_cuda::sum_layout::{LIMBS_F32, LIMBS_F64, TRACKERS};

/// The binary floating-point types in which sums are formed: `f32` and `f64`.
///
/// Sealed: the sizes of the superaccumulator follow from these two formats.
pub trait Float:
    sealed::Sealed
    + bytemuck::Pod
    + Debug
    + PartialEq
    + PartialOrd
    + Add<Output = Self>
    + Mul<Output = Self>
    + Send
    + Sync
{
    /// Bits of the significand, the hidden bit included.
    const PRECISION: u32;
    /// Exponent of the least significant bit of a subnormal number: every finite value is an
    /// integer multiple of 2^`MIN_LSB_EXPONENT`.
    const MIN_LSB_EXPONENT: i32;
    /// The identity of addition, −0.0.
    const NEG_ZERO: Self;
    /// The number 1.
    const ONE: Self;
    /// +0.0.
    const ZERO: Self;
    /// Positive infinity.
    const INFINITY: Self;
    /// Negative infinity.
    const NEG_INFINITY: Self;
    /// The canonical quiet NaN: sign clear, only the highest payload bit set.
    const CANONICAL_NAN: Self;

    /// The words of a [`Superaccumulator`](crate::Superaccumulator) of this type: an array of `u64`.
    type Words: bytemuck::Pod + AsRef<[u64]> + AsMut<[u64]> + Debug + Send + Sync;

    /// The bit pattern, zero-extended.
    fn to_bits64(self) -> u64;
    /// The value with this bit pattern; bits beyond the type's width are ignored.
    fn from_bits64(bits: u64) -> Self;
    /// Square root, correctly rounded.
    #[must_use]
    fn sqrt(self) -> Self;
    /// Whether this is a NaN.
    fn is_nan(self) -> bool;
    /// The same value as an `f64`.
    fn as_f64(self) -> f64;
    /// Rounds an `f64` to this type, to nearest even.
    fn from_f64(value: f64) -> Self;

    /// This value, with every NaN replaced by [`CANONICAL_NAN`](Self::CANONICAL_NAN).
    #[must_use]
    #[inline]
    fn canonical(self) -> Self {
        if self.is_nan() {
            Self::CANONICAL_NAN
        } else {
            self
        }
    }
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}
}

macro_rules! float {
    ($float:ident, $precision:literal, $min_lsb:literal, $nan:literal, $limbs:expr) => {
        impl Float for $float {
            const PRECISION: u32 = $precision;
            const MIN_LSB_EXPONENT: i32 = $min_lsb;
            const NEG_ZERO: Self = -0.0;
            const ONE: Self = 1.0;
            const ZERO: Self = 0.0;
            const INFINITY: Self = $float::INFINITY;
            const NEG_INFINITY: Self = $float::NEG_INFINITY;
            const CANONICAL_NAN: Self = $float::from_bits($nan);
            type Words = [u64; $limbs + TRACKERS];

            #[inline(always)]
            fn to_bits64(self) -> u64 {
                self.to_bits().into()
            }
            #[inline(always)]
            fn from_bits64(bits: u64) -> Self {
                Self::from_bits(bits as _)
            }
            #[inline]
            fn sqrt(self) -> Self {
                <$float>::sqrt(self)
            }
            #[inline(always)]
            fn is_nan(self) -> bool {
                <$float>::is_nan(self)
            }
            #[inline(always)]
            fn as_f64(self) -> f64 {
                self.into()
            }
            #[inline]
            fn from_f64(value: f64) -> Self {
                value as Self
            }
        }
    };
}

// The limbs hold 32 bits each of [2^MIN_LSB_EXPONENT, 2^128 or 2^1024), that is 277 or 2098 bits: 9 or 66 limbs, and
// one more for the carries out of the top.
float!(f32, 24, -149, 0x7fc0_0000, LIMBS_F32);
float!(f64, 53, -1074, 0x7ff8_0000_0000_0000, LIMBS_F64);
