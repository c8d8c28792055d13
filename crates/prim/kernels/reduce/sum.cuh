// The sum of leaves by a grid of blocks: what the kernels of sums share.
//
// ELEMENT names the element type (element_f32, …), TERM what is summed up (value_term, …).
#pragma once
#include "reduce/block_combine.cuh"
#include "reduce/doubtful_leaf.cuh"
#include "reduce/result.cuh"

#ifndef ELEMENT
#define ELEMENT element_f32
#define TERM value_term
#endif

namespace crosswarp {

// The sum of the values in lanes 0 … `count` − 1, of f32, when none is larger than 2^26 times another
// and none is special: as integers, with the hardware's sums over a warp. False if it is not so.
__device__ inline bool sum_of_similar(float value, u64& bits) {
    using F = format32;
    u32 mine = F::to_bits(value);
    int exponent = mine >> 23 & 255;
    bool zero = (mine << 1) == 0;
    int top = warp_max(exponent);
    bool good = zero || (exponent > 0 && exponent + 26 >= top && top < 255);
    if (!__all_sync(0xffffffffu, good) || top == 0) return false;
    i64 fixed = zero ? 0 : i64((mine & 0x7fffff) | 0x800000) << (26 - (top - exponent));
    if (mine >> 31) fixed = -fixed;
    // 27 bits below and 23 and a sign above: 32 of them fit in 32 bits.
    u32 low = warp_sum(u32(fixed) & 0x7ffffff);
    int high = int(warp_sum(u32(int(fixed >> 27))));
    i64 total = (i64(high) << 27) + low;
    u64 magnitude = total < 0 ? -total : total;
    if (magnitude == 0) {
        bits = 0;
    } else {
        int zeros = __clzll(magnitude);
        bits = round_bits<F>(total < 0, magnitude << zeros, false, top - 1 - 26 + F::min_lsb + 63 - zeros);
    }
    return true;
}
// The same of f64, when none is larger than 2^40 times another.
__device__ inline bool sum_of_similar(double value, u64& bits) {
    using F = format64;
    u64 mine = F::to_bits(value);
    int exponent = int(mine >> 52) & 2047;
    bool zero = (mine << 1) == 0;
    int top = warp_max(exponent);
    bool good = zero || (exponent > 0 && exponent + 40 >= top && top < 2047);
    if (!__all_sync(0xffffffffu, good) || top == 0) return false;
    // 93 bits and a sign, which are added up in parts of 27; 32 of them fit in 32 bits.
    u64 significand = zero ? 0 : (mine & ((1ull << 52) - 1)) | 1ull << 52;
    int shift = zero ? 0 : 40 - (top - exponent);
    u64 low = significand << shift, high = significand >> 1 >> (63 - shift);
    if (mine >> 63) {
        low = -low;
        high = ~high + (low == 0);
    }
    constexpr u32 part = 0x7ffffff;
    u64 sum0 = warp_sum(u32(low) & part), sum1 = warp_sum(u32(low >> 27) & part);
    u64 sum2 = warp_sum(u32(low >> 54 | high << 10) & part);
    i64 sum3 = int(warp_sum(u32(high >> 17)));
    // In units of 2^54, and what is below.
    u64 below = sum0 + (sum1 << 27);
    i64 above = (sum3 << 27) + i64(sum2 + (below >> 54));
    below <<= 10;
    bool negative = above < 0;
    if (negative) {
        below = -below;
        above = ~above + (below == 0);
    }
    u64 first = above ? u64(above) : below, second = above ? below : 0;
    if (first == 0) {
        bits = 0;
        return true;
    }
    int zeros = __clzll(first);
    u64 leading = first << zeros | second >> 1 >> (63 - zeros);
    int last = (above ? 54 : -10) + top - 1 - 40 + F::min_lsb;
    bits = round_bits<F>(negative, leading, second << zeros, last + 63 - zeros);
    return true;
}

// Adds the values of the leaves of unit `u` of inputs of n elements, which are in the leaves' lanes.
template <class E, class Term, class S>
__device__ inline void add_leaves(warp_accumulator<typename E::format>& total, typename E::format::type value,
                                  const S* x, const S* y, u64 u, u64 n) {
    using L = leaf_layout<E>;
    // One vote for all leaves: on the usual way there is nothing else to decide.
    if (__any_sync(0xffffffffu, is_doubtful<Term>(value))) {
        // A sum that is NaN stays so: of many NaN a warp computes few leaves again.
        if (!(total.seen & seen_nan)) total.merge(redo_leaves<E, Term>(x, y, u, n, value));
        return;
    }
#pragma unroll
    for (int leaf = 0; leaf < L::leaves; ++leaf) {
        total.add_finite(L::leaves == 1 ? value : __shfl_sync(0xffffffffu, value, leaf * L::lanes));
    }
}

// The sum over the blocks of the grid.
__device__ inline void sum(const reduce_arguments& a) {
    using E = ELEMENT;
    using F = typename E::format;
    using L = leaf_layout<E>;
    constexpr int per = F::per_lane;
    constexpr int most_warps = reduce_threads / 32;
    __shared__ union {
        i64 limb[most_warps][32 * per];
        typename F::type leaf[most_warps * L::leaves];
    } of_warp;
    __shared__ u32 seen[most_warps];

    const int warps = blockDim.x / 32, me = threadIdx.x / 32, lane = warp::lane();
    const warp_leaves<E, TERM, leaf_sum, false> pass(a.x, a.y);
    // Neighbouring units go to different blocks, so that few units use many SMs.
    const u64 from = u64(me) * gridDim.x + blockIdx.x, step = u64(warps) * gridDim.x;
    u64 at = pass.first(from);
    // In a single block with a unit a warp the first warp adds up the leaves' values. (By the most elements there can
    // be: fewer make no other bits.)
    const bool few = gridDim.x == 1 && a.n <= warps * pass.unit;
    // One leaf is its own sum: 1 in the threads of its warp, 2 in the one that writes it.
    u32 alone = few && me == 0 && a.n <= leaf_elements && a.finish == finish_value ? 1 + (lane == 0) : 0;
    // Computed here, while the launch waits.
    asm volatile("" : "+l"(at), "+r"(alone));
    start_early<TERM::inputs == 2, typename E::storage>(a, from * pass.unit * sizeof(typename E::storage));
    const u64 n = element_count(a);

    warp_accumulator<F> total;
    auto only = leaf_sum::identity<typename F::type>();
    run_leaves(pass, n, from, at, step, [&](u64 u, typename F::type value) {
        only = value;
        if (!few) add_leaves<E, TERM>(total, value, pass.x, pass.y, u, n);
    });

    if (few) {
        // Lanes of another leaf have the sum of no elements.
        if (alone && n && !__any_sync(0xffffffffu, is_doubtful<TERM>(only))) {
            if (alone == 2) put_result(a, 0, F::to_bits(only));
            return;
        }
        if (lane % L::lanes == 0) of_warp.leaf[me * L::leaves + lane / L::lanes] = only;
        __syncthreads();
        if (me) return;
        int leaves = warps * L::leaves;
        if (lane < leaves) only = of_warp.leaf[lane];
        if (lane >= leaves) only = leaf_sum::identity<typename F::type>();
        u64 bits;
        if (a.finish == finish_value && sum_of_similar(only, bits)) {
            if (lane == 0) put_result(a, 0, bits);
            return;
        }
        if (__any_sync(0xffffffffu, lane < leaves && is_doubtful<TERM>(only))) {
#pragma unroll 1
            for (int w = 0; w < warps; ++w) {
                const auto value = __shfl_sync(0xffffffffu, only, w * L::leaves + lane / L::lanes);
                total.merge(redo_leaves<E, TERM>(pass.x, pass.y, u64(w), n, value));
            }
        } else {
            total.add_lanes(only, leaves);
        }
    } else {
        if (me) {
#pragma unroll
            for (int i = 0; i < per; ++i) of_warp.limb[me][per * lane + i] = total.limb[i];
            if (lane == 0) seen[me] = total.seen;
        }
        if (warps > 1) __syncthreads();
        if (me) return;
#pragma unroll
        for (int w = 1; w < most_warps; ++w) {
            if (w >= warps) break;
#pragma unroll
            for (int i = 0; i < per; ++i) total.limb[i] += of_warp.limb[w][per * lane + i];
            total.seen |= seen[w];
        }
        // Up to some 2^7 leaves leave limbs below 2^40.
        if (n >> 18 >= gridDim.x) total.carry();
        if (gridDim.x > 1 && !combine_blocks(total, a.state)) return;
    }
    finish<F>(total, n, a);
}

}  // namespace crosswarp

// With a number of blocks per SM the compiler keeps a leaf's loads before their use; else it would save
// registers.
#define SUM_BLOCKS (sizeof(cw::ELEMENT::storage) == 8 ? 1 : 2)
