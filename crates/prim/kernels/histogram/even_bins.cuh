// Parameters of even bins.
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

// A rule of bins no narrower than a value, with the upper end of the range in the last bin: it counts as
// the integer before it. (Where bins are narrower, these two are in different bins.)
//
// Keys are counted on from `after`, the integer behind the upper end, where that end is the last of all 2^32
// integers; so a minimum moves it, and nothing else. The rule's `low` is counted on from there, too.
template <class R> struct closed_parameters {
    R rule;
    i32 after;
};
static_assert(sizeof(closed_parameters<shift_parameters>) == 4 + 1 * sizeof(shift_parameters),
              "size of closed_parameters");
static_assert(CROSSWARP_OFFSET(closed_parameters<shift_parameters>, rule) == 0 + 0 * sizeof(shift_parameters),
              "closed_parameters::rule");
static_assert(CROSSWARP_OFFSET(closed_parameters<shift_parameters>, after) == 0 + 1 * sizeof(shift_parameters),
              "closed_parameters::after");
static_assert(sizeof(closed_parameters<multiply_parameters>) == 4 + 1 * sizeof(multiply_parameters),
              "size of closed_parameters");
static_assert(CROSSWARP_OFFSET(closed_parameters<multiply_parameters>, rule) == 0 + 0 * sizeof(multiply_parameters),
              "closed_parameters::rule");
static_assert(CROSSWARP_OFFSET(closed_parameters<multiply_parameters>, after) == 0 + 1 * sizeof(multiply_parameters),
              "closed_parameters::after");

// Even bins of floating-point samples. Samples outside `from..=to` are dropped.
template <class F> struct even_float_parameters {
    F low;
    F scale;
    F from;
    F to;
    u32 bins;
    u32 pad;
};
static_assert(sizeof(even_float_parameters<float>) == 8 + 4 * sizeof(float),
              "size of even_float_parameters");
static_assert(CROSSWARP_OFFSET(even_float_parameters<float>, low) == 0 + 0 * sizeof(float),
              "even_float_parameters::low");
static_assert(CROSSWARP_OFFSET(even_float_parameters<float>, scale) == 0 + 1 * sizeof(float),
              "even_float_parameters::scale");
static_assert(CROSSWARP_OFFSET(even_float_parameters<float>, from) == 0 + 2 * sizeof(float),
              "even_float_parameters::from");
static_assert(CROSSWARP_OFFSET(even_float_parameters<float>, to) == 0 + 3 * sizeof(float),
              "even_float_parameters::to");
static_assert(CROSSWARP_OFFSET(even_float_parameters<float>, bins) == 0 + 4 * sizeof(float),
              "even_float_parameters::bins");
static_assert(CROSSWARP_OFFSET(even_float_parameters<float>, pad) == 4 + 4 * sizeof(float),
              "even_float_parameters::pad");
static_assert(sizeof(even_float_parameters<double>) == 8 + 4 * sizeof(double),
              "size of even_float_parameters");
static_assert(CROSSWARP_OFFSET(even_float_parameters<double>, low) == 0 + 0 * sizeof(double),
              "even_float_parameters::low");
static_assert(CROSSWARP_OFFSET(even_float_parameters<double>, scale) == 0 + 1 * sizeof(double),
              "even_float_parameters::scale");
static_assert(CROSSWARP_OFFSET(even_float_parameters<double>, from) == 0 + 2 * sizeof(double),
              "even_float_parameters::from");
static_assert(CROSSWARP_OFFSET(even_float_parameters<double>, to) == 0 + 3 * sizeof(double),
              "even_float_parameters::to");
static_assert(CROSSWARP_OFFSET(even_float_parameters<double>, bins) == 0 + 4 * sizeof(double),
              "even_float_parameters::bins");
static_assert(CROSSWARP_OFFSET(even_float_parameters<double>, pad) == 4 + 4 * sizeof(double),
              "even_float_parameters::pad");

}  // namespace crosswarp::histogram
