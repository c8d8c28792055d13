// What reproducible sums have in common on the host and in kernels.
// Made from src/sum_layout.rs, which is to be changed instead.
#pragma once
#include "base.cuh"

namespace crosswarp {

// Rows of a leaf.
constexpr int leaf_rows = 16;
// Elements of a row of a leaf, and sums that are combined by halving.
constexpr int leaf_lanes = 128;
// Limbs of an accumulator of `f32`: 32 bits each of 277, and one more for the carries out of the top.
constexpr int limbs_f32 = 10;
// The same, `f64`: of 2098 bits.
constexpr int limbs_f64 = 67;
// Limbs of an accumulator of what is computed from `f32` in `f64`: multiples of 2^-298 up to 2^267, and sums
// of many.
constexpr int limbs_wide = 20;
// How many of these lie below those of `f32`.
constexpr int limbs_below = 5;
// Words behind the limbs in memory: values other than -0, NaNs, +infinity, -infinity.
constexpr int trackers = 4;
// Of a leaf of squares in `f32`: below two to this it may have lost bits that matter,
constexpr int lost_below_exponent = -100;
// if an element is below two to this, so that its square may be subnormal.
constexpr int normal_square_exponent = -63;

}  // namespace crosswarp
