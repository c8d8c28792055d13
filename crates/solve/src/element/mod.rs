//! The element types a field can have.

pub(crate) mod simd;

use std::ops::Sub;

use crosswarp_prim::Float;

use simd::Simd;

/// An IEEE binary format a field is stored and computed in: `f32` or `f64`.
pub trait Real: Float + Default + Sub<Output = Self> {
    /// The name used in files and messages: `"f32"` or `"f64"`.
    const NAME: &'static str;
    /// Vectors of 512 bits.
    #[cfg(target_arch = "x86_64")]
    #[doc(hidden)]
    type Avx512: Simd<Elem = Self>;
    /// Vectors of 256 bits.
    #[cfg(target_arch = "x86_64")]
    #[doc(hidden)]
    type Avx2: Simd<Elem = Self>;
    /// An array the compiler vectorises for the baseline of the target.
    #[doc(hidden)]
    type Plain: Simd<Elem = Self>;

    /// The same value as `f64`, exactly.
    fn to_f64(self) -> f64;
}

impl Real for f32 {
    const NAME: &'static str = "f32";
    #[cfg(target_arch = "x86_64")]
    type Avx512 = simd::x86::F32x16;
    #[cfg(target_arch = "x86_64")]
    type Avx2 = simd::x86::F32x8;
    type Plain = simd::Array<f32, 8>;

    fn to_f64(self) -> f64 {
        f64::from(self)
    }
}

impl Real for f64 {
    const NAME: &'static str = "f64";
    #[cfg(target_arch = "x86_64")]
    type Avx512 = simd::x86::F64x8;
    #[cfg(target_arch = "x86_64")]
    type Avx2 = simd::x86::F64x4;
    type Plain = simd::Array<f64, 4>;

    fn to_f64(self) -> f64 {
        self
    }
}
