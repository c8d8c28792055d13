//! Vectors of 256 bits: AVX2, with F16C for `f16`.
#![allow(unsafe_code)] // Reason: intrinsics.

use core::arch::x86_64::*;

use half::{bf16, f16};

use super::{Isa, Load, Vector, intrinsic};

pub(crate) struct Avx2;

impl Isa for Avx2 {
    type F32 = __m256;
    type F64 = __m256d;
    type Lanes = __m256i;
}

impl Vector for __m256 {
    type Lane = f32;
    const WIDTH: usize = 8;

    #[inline(always)]
    unsafe fn splat(value: f32) -> Self {
        intrinsic!(_mm256_set1_ps(value))
    }
    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        intrinsic!(_mm256_add_ps(self, other))
    }
    #[inline(always)]
    unsafe fn mul(self, other: Self) -> Self {
        intrinsic!(_mm256_mul_ps(self, other))
    }
    #[inline(always)]
    unsafe fn down(self, step: usize) -> Self {
        match step {
            4 => intrinsic!(_mm256_permute2f128_ps::<1>(self, self)),
            2 => intrinsic!(_mm256_permute_ps::<0b11_10_11_10>(self)),
            _ => intrinsic!(_mm256_permute_ps::<0b11_11_01_01>(self)),
        }
    }
    #[inline(always)]
    unsafe fn first(self) -> f32 {
        intrinsic!(_mm256_cvtss_f32(self))
    }
}

impl Load<f32> for __m256 {
    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        intrinsic!(_mm256_loadu_ps(from))
    }
    #[inline(always)]
    unsafe fn load_some(from: *const f32, count: usize, padding: f32) -> Self {
        let places = intrinsic!(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
        let mask = intrinsic!(_mm256_cmpgt_epi32(_mm256_set1_epi32(count as i32), places));
        let loaded = intrinsic!(_mm256_maskload_ps(from, mask));
        let mask = intrinsic!(_mm256_castsi256_ps(mask));
        intrinsic!(_mm256_blendv_ps(_mm256_set1_ps(padding), loaded, mask))
    }
    #[inline(always)]
    unsafe fn load_last(from: *const f32, count: usize, padding: f32) -> Self {
        let missing = Self::WIDTH - count;
        let places = intrinsic!(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
        let mask = intrinsic!(_mm256_cmpgt_epi32(
            places,
            _mm256_set1_epi32(missing as i32 - 1)
        ));
        let loaded = intrinsic!(_mm256_maskload_ps(from.wrapping_sub(missing), mask));
        let mask = intrinsic!(_mm256_castsi256_ps(mask));
        intrinsic!(_mm256_blendv_ps(_mm256_set1_ps(padding), loaded, mask))
    }
}

impl Load<f16> for __m256 {
    #[inline(always)]
    unsafe fn load(from: *const f16) -> Self {
        intrinsic!(_mm256_cvtph_ps(_mm_loadu_si128(from.cast())))
    }
}

impl Load<bf16> for __m256 {
    #[inline(always)]
    unsafe fn load(from: *const bf16) -> Self {
        let wide = intrinsic!(_mm256_cvtepu16_epi32(_mm_loadu_si128(from.cast())));
        intrinsic!(_mm256_castsi256_ps(_mm256_slli_epi32::<16>(wide)))
    }
}

impl Vector for __m256d {
    type Lane = f64;
    const WIDTH: usize = 4;

    #[inline(always)]
    unsafe fn splat(value: f64) -> Self {
        intrinsic!(_mm256_set1_pd(value))
    }
    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        intrinsic!(_mm256_add_pd(self, other))
    }
    #[inline(always)]
    unsafe fn mul(self, other: Self) -> Self {
        intrinsic!(_mm256_mul_pd(self, other))
    }
    #[inline(always)]
    unsafe fn down(self, step: usize) -> Self {
        match step {
            2 => intrinsic!(_mm256_permute2f128_pd::<1>(self, self)),
            _ => intrinsic!(_mm256_permute_pd::<0b1111>(self)),
        }
    }
    #[inline(always)]
    unsafe fn first(self) -> f64 {
        intrinsic!(_mm256_cvtsd_f64(self))
    }
}

impl Load<f64> for __m256d {
    #[inline(always)]
    unsafe fn load(from: *const f64) -> Self {
        intrinsic!(_mm256_loadu_pd(from))
    }
    #[inline(always)]
    unsafe fn load_some(from: *const f64, count: usize, padding: f64) -> Self {
        let places = intrinsic!(_mm256_setr_epi64x(0, 1, 2, 3));
        let mask = intrinsic!(_mm256_cmpgt_epi64(_mm256_set1_epi64x(count as i64), places));
        let loaded = intrinsic!(_mm256_maskload_pd(from, mask));
        let mask = intrinsic!(_mm256_castsi256_pd(mask));
        intrinsic!(_mm256_blendv_pd(_mm256_set1_pd(padding), loaded, mask))
    }
    #[inline(always)]
    unsafe fn load_last(from: *const f64, count: usize, padding: f64) -> Self {
        let missing = Self::WIDTH - count;
        let places = intrinsic!(_mm256_setr_epi64x(0, 1, 2, 3));
        let mask = intrinsic!(_mm256_cmpgt_epi64(
            places,
            _mm256_set1_epi64x(missing as i64 - 1)
        ));
        let loaded = intrinsic!(_mm256_maskload_pd(from.wrapping_sub(missing), mask));
        let mask = intrinsic!(_mm256_castsi256_pd(mask));
        intrinsic!(_mm256_blendv_pd(_mm256_set1_pd(padding), loaded, mask))
    }
}
