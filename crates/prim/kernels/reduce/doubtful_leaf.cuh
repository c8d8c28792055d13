// Doubtful leaves: their value says that their type was too narrow for them, so they are computed again.
//
// `LeafTotal` in Rust (src/sum/leaf_total.rs) says which they are and is the contract: of f32 a leaf whose value is not
// finite is added in f64; so is one whose squares are so small that f32 lost bits which matter to the norm. A leaf of
// f64 that is not finite has its terms added exactly.
#pragma once
#include "reduce/warp_leaf.cuh"

namespace crosswarp {

// As bits of f32, and in f64.
constexpr u32 lost_below = u32(127 + lost_below_exponent) << 23;
constexpr double squares_are_normal = 1.0 / double(1ull << -normal_square_exponent);

// Whether a leaf has to be computed again, by its value. Sums of squares have no sign, but for the -0.0 of no elements.
template <class Term> __device__ inline bool is_doubtful(float value) {
    const u32 bits = __float_as_uint(value);
    if (Term::squares) return bits - lost_below >= u32(format32::infinity) - lost_below;
    return (bits & 0x7fffffff) >= u32(format32::infinity);
}
template <class Term> __device__ inline bool is_doubtful(double value) {
    return (u32(__double2hiint(value)) & 0x7fffffff) >= u32(format64::infinity >> 32);
}

// Adds the value of `count` elements, one leaf, in f64: leaf lanes and halving as always. `value` if that was f32's and
// no square was too small. Elements are `step` apart.
template <class E, class Term, class S>
__device__ inline void redo_leaf(warp_accumulator<format32>& total, const S* x, const S* y, u32 count, float value,
                                 u64 step = 1) {
    double sum[4] = {-0.0, -0.0, -0.0, -0.0};
    bool small = false;
    // Two rows at a time, all of whose elements are under way together: they may lie far apart.
    constexpr int flight = 8;
#pragma unroll 1
    for (u32 row = 0; row < count; row += 32 * flight) {
        S p[flight], q[flight];
#pragma unroll
        for (int i = 0; i < flight; ++i) {
            const u32 k = min(row + 32 * i + warp::lane(), count - 1);
            p[i] = __ldg(x + k * step);
            q[i] = Term::inputs == 2 ? __ldg(y + k * step) : p[i];
        }
#pragma unroll
        for (int i = 0; i < flight; ++i) {
            if (row + 32 * i + warp::lane() >= count) continue;
            const float value_x = E::widen(p[i]), value_y = E::widen(q[i]);
            const double size = value_x < 0 ? -double(value_x) : double(value_x);
            small |= size > 0 && size < squares_are_normal;
            sum[i % 4] = sum[i % 4] + Term::wide(value_x, value_y);
        }
    }
    const double again = halve_quarters(sum[0], sum[1], sum[2], sum[3]);
    const bool finite = (__float_as_uint(value) & 0x7fffffff) < u32(format32::infinity);
    total.add_wide(finite && !__any_sync(0xffffffffu, small) ? double(value) : again);
}

// Adds all terms of a leaf exactly.
template <class E, class Term, class S>
__device__ inline void redo_leaf(warp_accumulator<format64>& total, const S* x, const S* y, u32 count, double,
                                 u64 step = 1) {
#pragma unroll 1
    for (u32 row = 0; row < count; row += 32) {
        const u32 k = row + warp::lane();
        double term = -0.0;
        if (k < count) {
            const double p = E::widen(__ldg(x + k * step));
            term = Term::of(p, Term::inputs == 2 ? E::widen(__ldg(y + k * step)) : p);
        }
        total.add_lanes(term, 32);
    }
    // So many values would leave limbs larger than one does.
    total.carry();
}

// What the leaves of unit `u` of inputs of n elements add to a sum, some of whose values, which are in the leaves'
// lanes, are doubtful. One whole warp calls: seldom, so out of the way of the loop; and by value, so that the sum stays
// in registers.
template <class E, class Term, class S>
__device__ __noinline__ warp_accumulator<typename E::format> redo_leaves(
    const S* x, const S* y, u64 u, u64 n, typename E::format::type value) {
    using L = leaf_layout<E>;
    warp_accumulator<typename E::format> total;
#pragma unroll 1
    for (int leaf = 0; leaf < L::leaves; ++leaf) {
        const u64 first = (u * L::leaves + leaf) * leaf_elements;
        if (first >= n) break;
        const auto one = __shfl_sync(0xffffffffu, value, leaf * L::lanes);
        if (is_doubtful<Term>(one)) {
            const u32 count = u32(min(n - first, u64(leaf_elements)));
            redo_leaf<E, Term>(total, x + first, Term::inputs == 2 ? y + first : y, count, one);
        } else {
            total.add_finite(one);
        }
    }
    return total;
}

}  // namespace crosswarp
