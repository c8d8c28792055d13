// One sweep, one launch: the obvious kernels, with all features. A block is one leaf of the norm.
#pragma once
#include "superaccumulator.cuh"
#include "jacobi/line.cuh"
#include "jacobi/plane.cuh"

namespace crosswarp {

// Adds a leaf's columns, one per thread of a block of 128, by halving; the result is valid in thread 0.
template <class F> __device__ inline F combine_columns(F mine) {
    __shared__ F columns[leaf_columns];
    int i = threadIdx.x;
    columns[i] = mine;
    __syncthreads();
    if (i >= 32) return mine;
    return halve_quarters(columns[i], columns[i + 32], columns[i + 64], columns[i + 96]);
}

// A block of 128 threads a leaf, leaves row by row.
template <class F> __device__ inline void sweep_plane(const band<F>& g) {
    u32 across = (g.nx + leaf_columns - 1) / leaf_columns;
    int x = blockIdx.x % across * leaf_columns + threadIdx.x;
    int y0 = g.own_start + blockIdx.x / across * leaf_rows;
    int y1 = min(y0 + leaf_rows, g.own_end);
    bool inner_column = x >= 1 && x <= g.nx - 2;
    F sum = F(0);
    if (x < g.nx) {
        const F* at = g.before + g.at(x, y0);
        F up = at[-g.pitch], centre = at[0];
        for (int y = y0; y < y1; ++y, at += g.pitch) {
            F down = at[g.pitch];
            bool inner_row = y >= 1 && y <= g.ny - 2;
            F now = centre;
            if ((inner_column || g.wrap_x) && (inner_row || g.wrap_y) && !(g.fixed && g.fixed[g.at(x, y)])) {
                F total = ((at[1] + at[-1]) + down) + up;
                if (g.source) total = total - g.source[g.at(x, y)];
                now = F(0.25) * total;
            }
            g.after[g.at(x, y)] = now;
            if (inner_column && inner_row) {
                F difference = now - centre;
                sum = sum + difference * difference;
            }
            up = centre;
            centre = down;
        }
    }
    F leaf = combine_columns(sum);
    if (threadIdx.x == 0) {
        u64* words = g.words;
        accumulate(leaf, [=](int i, u64 amount) {
            if (amount != 0) atomicAdd(words + i, amount);
        });
    }
}

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
