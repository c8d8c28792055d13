//! Vectors of 512 bits: AVX-512 (F, BW, DQ, VL).
#![allow(unsafe_code)] // Reason: intrinsics.

use core::arch::x86_64::*;

use half::{bf16, f16};

use super::{Isa, Load, Vector, intrinsic};

pub(crate) struct Avx512;

impl Isa for Avx512 {
    type F32 = __m512;
    type F64 = __m512d;
    type Lanes = __m512i;
}

impl Vector for __m512 {
    type Lane = f32;
    const WIDTH: usize = 16;

    #[inline(always)]
    unsafe fn splat(value: f32) -> Self {
        intrinsic!(_mm512_set1_ps(value))
    }
    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        intrinsic!(_mm512_add_ps(self, other))
    }
    #[inline(always)]
    unsafe fn mul(self, other: Self) -> Self {
        intrinsic!(_mm512_mul_ps(self, other))
    }
    #[inline(always)]
    unsafe fn down(self, step: usize) -> Self {
        match step {
            8 => intrinsic!(_mm512_shuffle_f32x4::<0b11_10_11_10>(self, self)),
            4 => intrinsic!(_mm512_shuffle_f32x4::<0b11_11_01_01>(self, self)),
            2 => intrinsic!(_mm512_permute_ps::<0b11_10_11_10>(self)),
            _ => intrinsic!(_mm512_permute_ps::<0b11_11_01_01>(self)),
        }
    }
    #[inline(always)]
    unsafe fn first(self) -> f32 {
        intrinsic!(_mm512_cvtss_f32(self))
    }
}

impl Load<f32> for __m512 {
    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        intrinsic!(_mm512_loadu_ps(from))
    }
    #[inline(always)]
    unsafe fn load_some(from: *const f32, count: usize, padding: f32) -> Self {
        let mask = (1u32 << count) - 1;
        intrinsic!(_mm512_mask_loadu_ps(
            _mm512_set1_ps(padding),
            mask as u16,
            from
        ))
    }
    #[inline(always)]
    unsafe fn load_last(from: *const f32, count: usize, padding: f32) -> Self {
        let missing = Self::WIDTH - count;
        intrinsic!(_mm512_mask_loadu_ps(
            _mm512_set1_ps(padding),
            u16::MAX << missing,
            from.wrapping_sub(missing)
        ))
    }
}

impl Load<f16> for __m512 {
    #[inline(always)]
    unsafe fn load(from: *const f16) -> Self {
        intrinsic!(_mm512_cvtph_ps(_mm256_loadu_si256(from.cast())))
    }
}

impl Load<bf16> for __m512 {
    #[inline(always)]
    unsafe fn load(from: *const bf16) -> Self {
        let wide = intrinsic!(_mm512_cvtepu16_epi32(_mm256_loadu_si256(from.cast())));
        intrinsic!(_mm512_castsi512_ps(_mm512_slli_epi32::<16>(wide)))
    }
}

impl Vector for __m512d {
    type Lane = f64;
    const WIDTH: usize = 8;
    const PASS: usize = 16;

    #[inline(always)]
    unsafe fn splat(value: f64) -> Self {
        intrinsic!(_mm512_set1_pd(value))
    }
    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        intrinsic!(_mm512_add_pd(self, other))
    }
    #[inline(always)]
    unsafe fn mul(self, other: Self) -> Self {
        intrinsic!(_mm512_mul_pd(self, other))
    }
    #[inline(always)]
    unsafe fn down(self, step: usize) -> Self {
        match step {
            4 => intrinsic!(_mm512_shuffle_f64x2::<0b11_10_11_10>(self, self)),
            2 => intrinsic!(_mm512_shuffle_f64x2::<0b11_11_01_01>(self, self)),
            _ => intrinsic!(_mm512_permute_pd::<0b1111_1111>(self)),
        }
    }
    #[inline(always)]
    unsafe fn first(self) -> f64 {
        intrinsic!(_mm512_cvtsd_f64(self))
    }
}

impl Load<f64> for __m512d {
    #[inline(always)]
    unsafe fn load(from: *const f64) -> Self {
        intrinsic!(_mm512_loadu_pd(from))
    }
    #[inline(always)]
    unsafe fn load_some(from: *const f64, count: usize, padding: f64) -> Self {
        let mask = (1u32 << count) - 1;
        intrinsic!(_mm512_mask_loadu_pd(
            _mm512_set1_pd(padding),
            mask as u8,
            from
        ))
    }
    #[inline(always)]
    unsafe fn load_last(from: *const f64, count: usize, padding: f64) -> Self {
        let missing = Self::WIDTH - count;
        intrinsic!(_mm512_mask_loadu_pd(
            _mm512_set1_pd(padding),
            u8::MAX << missing,
            from.wrapping_sub(missing)
        ))
    }
}
