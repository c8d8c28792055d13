// A PE's part of the line: one sweep, one launch. The host's twin is `cuda::line::Segment`.
#pragma once
#include "jacobi/one_sweep/sweep.cuh"

namespace crosswarp {

template <class F> struct segment {
    const F* before;  // address of point `own_start`; halos left and right of the own points
    F* after;
    u64* words;  // one superaccumulator per sweep
    i64 points;
    i64 own_start, own_end;
};

constexpr int leaf_points = leaf_elements;

// A block of 128 threads a leaf.
template <class F> __device__ inline void sweep_line(const segment<F>& g) {
    i64 leaf = g.own_start + (i64)blockIdx.x * leaf_points;
    F sum = F(0);
#pragma unroll 4
    for (int row = 0; row < leaf_points / leaf_columns; ++row) {
        i64 x = leaf + row * leaf_columns + threadIdx.x;
        if (x >= g.own_end) break;
        const F* at = g.before + (x - g.own_start);
        F centre = at[0], now = centre;
        if (x > 0 && x < g.points - 1) now = F(0.5) * (at[-1] + at[1]);
        g.after[x - g.own_start] = now;
        F difference = now - centre;
        sum = sum + difference * difference;
    }
    F total = combine_columns(sum);
    if (threadIdx.x == 0) {
        u64* words = g.words;
        accumulate(total, [=](int i, u64 amount) {
            if (amount != 0) atomicAdd(words + i, amount);
        });
    }
}

}  // namespace crosswarp
