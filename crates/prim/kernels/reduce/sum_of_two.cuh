// Sums of the values of leaves as two numbers of f64: where that is exact, as it nearly always is, it is many times
// quicker than a superaccumulator.
#pragma once
#include "reduce/result.cuh"

namespace crosswarp {

// a + b, and what rounding took away (Knuth's two-sum).
__device__ inline double two_sum(double a, double b, double& error) {
    const double sum = a + b, of_b = sum - a;
    error = (a - (sum - of_b)) + (b - of_b);
    return sum;
}

// A sum as two numbers, exact unless something was `lost`: then it takes a superaccumulator.
struct sum_of_two {
    double high = -0.0, low = 0;
    bool lost = false;

    // Adds a value; what two numbers cannot hold beside it is returned, so that nothing is lost if that is kept.
    __device__ double add_and_keep(double value) {
        double error, rest;
        high = two_sum(high, value, error);
        low = two_sum(low, error, rest);
        return rest;
    }
    __device__ void add(double value) {
        // NaN, too, if it overflows.
        const double rest = add_and_keep(value);
        lost = lost || rest != 0;
    }
    __device__ void merge(const sum_of_two& other) {
        double rest;
        lost = lost || other.lost;
        add(other.high);
        low = two_sum(low, other.low, rest);
        lost = lost || rest != 0;
    }
};

// Adds such a number to a superaccumulator.
__device__ inline void add_exactly(warp_accumulator<format32>& sum, double value) { sum.add_wide(value); }
__device__ inline void add_exactly(warp_accumulator<format64>& sum, double value) { sum.add_finite(value); }
// The same of a sum of which nothing was lost.
template <class F> __device__ inline void add_exactly(warp_accumulator<F>& sum, const sum_of_two& two) {
    add_exactly(sum, two.high);
    // The sign of a sum that is 0 is that of `high`.
    if (two.low != 0) add_exactly(sum, two.low);
}

// Divides high + rest, high the nearest to it, by n: the nearest f64, or false. `exact`: of sum, then of quotient.
__device__ inline bool divide_nearest(double& high, double rest, double n, bool& exact) {
    const double nearest = high / n;
    if (exact) {
        high = nearest;
        exact = nearest == 0;
        return true;
    }
    const double size = fabs(high);
    // The remainder is an f64 where nothing is too small or too large: what is missing is known to some 50 bits, so
    // it does not matter where it is cut, unless that is near the middle between two f64.
    const double missing = (__fma_rn(-nearest, n, high) + rest) / n, error = missing * 0x1p-40;
    high = nearest + (missing - error);
    return size > 0x1p-900 && size < 0x1p900 && high == nearest + (missing + error);
}

// The bits of the result of a sum of n elements, or false: it takes a superaccumulator.
template <class F> __device__ inline bool quick_result(sum_of_two sum, u64 n, u64 kind, u64& bits) {
    using T = typename F::type;
    if (sum.lost) return false;
    // The nearest to the whole. The sign of a sum that is 0 stays.
    double rest = 0;
    if (sum.low != 0) sum.high = two_sum(sum.high, sum.low, rest);
    double result = sum.high;
    if (kind == finish_norm) {
        result = sqrt(result);
        // Two parts that are large may be more than there is where they are put together, and their root not.
        if (!(fabs(result) <= 1.7976931348623157e308)) return false;
    } else {
        bool exact = rest == 0;
        if (kind == finish_mean && !divide_nearest(result, rest, double(n), exact)) return false;
        // In the middle between two f32 it matters what was rounded before, as do digits that numbers that are not
        // normal have not.
        const u64 cut = __double_as_longlong(result) & 0x1fffffff;
        if (sizeof(T) == 4 && !exact && (cut == 0x10000000 || fabs(result) < 0x1p-126)) return false;
    }
    bits = F::to_bits(T(result));
    return true;
}

}  // namespace crosswarp
