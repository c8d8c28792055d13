// Parameters of even bins of integers.
// Made from src/histogram/even.rs, which is to be changed instead.
#pragma once
#include "base.cuh"

namespace crosswarp::histogram {

// 2^shift values a bin. Keys are first moved into `from..=to`: the range if samples outside are clamped, else the
// limits of the type.
struct alignas(4) shift_parameters {
    i32 low;
    i32 from;
    i32 to;
    u32 bins;
    u32 shift;
};
static_assert(sizeof(shift_parameters) == 20, "size of shift_parameters");
static_assert(CROSSWARP_OFFSET(shift_parameters, low) == 0, "shift_parameters::low");
static_assert(CROSSWARP_OFFSET(shift_parameters, from) == 4, "shift_parameters::from");
static_assert(CROSSWARP_OFFSET(shift_parameters, to) == 8, "shift_parameters::to");
static_assert(CROSSWARP_OFFSET(shift_parameters, bins) == 12, "shift_parameters::bins");
static_assert(CROSSWARP_OFFSET(shift_parameters, shift) == 16, "shift_parameters::shift");

// Fewer bins than values.
struct alignas(4) multiply_parameters {
    i32 low;
    i32 from;
    i32 to;
    u32 bins;
    u32 factor_low;
    u32 factor_high;
};
static_assert(sizeof(multiply_parameters) == 24, "size of multiply_parameters");
static_assert(CROSSWARP_OFFSET(multiply_parameters, low) == 0, "multiply_parameters::low");
static_assert(CROSSWARP_OFFSET(multiply_parameters, from) == 4, "multiply_parameters::from");
static_assert(CROSSWARP_OFFSET(multiply_parameters, to) == 8, "multiply_parameters::to");
static_assert(CROSSWARP_OFFSET(multiply_parameters, bins) == 12, "multiply_parameters::bins");
static_assert(CROSSWARP_OFFSET(multiply_parameters, factor_low) == 16, "multiply_parameters::factor_low");
static_assert(CROSSWARP_OFFSET(multiply_parameters, factor_high) == 20, "multiply_parameters::factor_high");

// More bins than the range is wide.
struct alignas(4) spread_parameters {
    i32 low;
    i32 from;
    i32 to;
    u32 bins;
    // Whole bins a value.
    u32 per_value;
    u32 factor_low;
    u32 factor_high;
    // The greatest distance from `low` that is inside.
    u32 last;
};
static_assert(sizeof(spread_parameters) == 32, "size of spread_parameters");
static_assert(CROSSWARP_OFFSET(spread_parameters, low) == 0, "spread_parameters::low");
static_assert(CROSSWARP_OFFSET(spread_parameters, from) == 4, "spread_parameters::from");
static_assert(CROSSWARP_OFFSET(spread_parameters, to) == 8, "spread_parameters::to");
static_assert(CROSSWARP_OFFSET(spread_parameters, bins) == 12, "spread_parameters::bins");
static_assert(CROSSWARP_OFFSET(spread_parameters, per_value) == 16, "spread_parameters::per_value");
static_assert(CROSSWARP_OFFSET(spread_parameters, factor_low) == 20, "spread_parameters::factor_low");
static_assert(CROSSWARP_OFFSET(spread_parameters, factor_high) == 24, "spread_parameters::factor_high");
static_assert(CROSSWARP_OFFSET(spread_parameters, last) == 28, "spread_parameters::last");

}  // namespace crosswarp::histogram
