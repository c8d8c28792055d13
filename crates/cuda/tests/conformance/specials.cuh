// Minima and maxima of the values whose order has special rules, beside plain ones.
#pragma once
#include "common.cuh"

namespace {

constexpr int specials = 9, pairs = specials * specials;
template <class T> __device__ T special(int k) {
    // Not known to the compiler, which warns of infinities otherwise.
    const T zero = (T)(k < 0), huge = (T)1 / zero;
    const T tiny = (T)(sizeof(T) == 4 ? 1e-45 : 5e-324);
    const T values[specials] = {-huge, (T)-1, -tiny, -zero, zero, tiny, (T)1, huge, zero / zero};
    return values[k];
}

template <class T> __device__ i64 ordered_bits(T x) {
    i64 bits;
    if constexpr (sizeof(T) == 4) {
        bits = __float_as_int(x);
        return bits < 0 ? bits ^ 0x7fffffff : bits;
    } else {
        bits = __double_as_longlong(x);
        return bits < 0 ? bits ^ 0x7fffffffffffffff : bits;
    }
}

// Whether `seen` is the least (or the greatest) of x and y by their bits: −0 < +0, a NaN wins.
template <class T> __device__ bool is_extreme(T seen, T x, T y, bool greatest) {
    if (x != x || y != y) return seen != seen;
    bool first = greatest ? ordered_bits(x) > ordered_bits(y) : ordered_bits(x) < ordered_bits(y);
    return ordered_bits(seen) == ordered_bits(first ? x : y);
}

}  // namespace
