//! Vectors of 128 bits without any special instruction; the compiler maps them to SSE2 or NEON.
#![allow(unsafe_code)] // Reason: the traits' functions are unsafe, for the other instruction sets.

use half::{bf16, f16};

use super::{Isa, Load, Vector};
use crate::Float;

pub(crate) struct Plain;

impl Isa for Plain {
    type F32 = Array<f32, 4>;
    type F64 = Array<f64, 2>;
    type Lanes = crate::simd::lanes::Plain;
}

#[derive(Clone, Copy)]
pub(crate) struct Array<F, const N: usize>([F; N]);

impl<F: Float, const N: usize> Vector for Array<F, N> {
    type Lane = F;
    const WIDTH: usize = N;

    #[inline(always)]
    unsafe fn splat(value: F) -> Self {
        Self([value; N])
    }
    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        Self(core::array::from_fn(|k| self.0[k] + other.0[k]))
    }
    #[inline(always)]
    unsafe fn mul(self, other: Self) -> Self {
        Self(core::array::from_fn(|k| self.0[k] * other.0[k]))
    }
    #[inline(always)]
    unsafe fn down(self, step: usize) -> Self {
        Self(core::array::from_fn(|k| self.0[(k + step) % N]))
    }
    #[inline(always)]
    unsafe fn first(self) -> F {
        self.0[0]
    }
}

impl<F: Float, const N: usize> Load<F> for Array<F, N> {
    #[inline(always)]
    unsafe fn load(from: *const F) -> Self {
        // SAFETY: valid for N reads by the contract; an array has its elements' alignment.
        Self(unsafe { *from.cast::<[F; N]>() })
    }
}

impl<const N: usize> Load<f16> for Array<f32, N> {
    #[inline(always)]
    unsafe fn load(from: *const f16) -> Self {
        // SAFETY: valid for N reads by the contract; an array has its elements' alignment.
        let narrow = unsafe { *from.cast::<[f16; N]>() };
        Self(core::array::from_fn(|k| widen_f16(narrow[k])))
    }
}

impl<const N: usize> Load<bf16> for Array<f32, N> {
    #[inline(always)]
    unsafe fn load(from: *const bf16) -> Self {
        // SAFETY: valid for N reads by the contract; an array has its elements' alignment.
        let narrow = unsafe { *from.cast::<[bf16; N]>() };
        Self(core::array::from_fn(|k| {
            f32::from_bits(u32::from(narrow[k].to_bits()) << 16)
        }))
    }
}

/// Widens exactly and without branches, so that the compiler can vectorise it: the bits are placed
/// as those of a tiny `f32`, which a multiplication by 2^112 brings to size, subnormals included.
#[inline(always)]
fn widen_f16(narrow: f16) -> f32 {
    let bits = u32::from(narrow.to_bits());
    let magnitude = (f32::from_bits((bits & 0x7fff) << 13) * f32::from_bits(0x7780_0000)).to_bits();
    let special = u32::from(bits & 0x7c00 == 0x7c00).wrapping_neg() & 0x7f80_0000;
    f32::from_bits(magnitude | special | (bits & 0x8000) << 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widening_agrees_with_half_for_every_f16() {
        for bits in 0..=u16::MAX {
            let narrow = f16::from_bits(bits);
            let (mine, theirs) = (widen_f16(narrow), narrow.to_f32());
            assert!(mine.to_bits() == theirs.to_bits() || (mine.is_nan() && theirs.is_nan()));
        }
    }
}
