// The next level's right side from this level's: from the right side itself, or of the finest level, whose field is +0 but in the
// first and last rows, which are sides, from the residual, whose squares are summed.
//
// A lane has an even column, and the odd one behind it, of some rows, and walks down; the odd column before its own is the other
// one of the lane before, which the first lane asks for beside. Eight rows are asked for at once. Operations as in passes.
// `inside`: whether all rows and columns of a warp, and those around, are far from the sides.
#pragma once
#include "multigrid/neighbours.cuh"
#include "multigrid/pass_kinds.cuh"
#include "sum_layout.cuh"

namespace crosswarp {

template <class F, bool inside>
__device__ __forceinline__ void restrict_columns(const level_pass<F>& g, int x, int y0, int y1) {
    constexpr bool finest = sizeof(F) == sizeof(double);
    constexpr int batch = inside ? 4 : 1;
    static_assert(restricted_rows % leaf_rows == 0 && restricted_rows % (2 * batch) == 0, "whole leaves, and batches");
    const bool is_first = threadIdx.x % 32 == 0, wrap_x = g.ends[0] == end_wrap, wrap_y = g.ends[2] == end_wrap;
    // A column that is beyond a side and does not wrap around is zero.
    auto column = [&](int at) { return at >= 0 && at < g.nx ? at : wrap_x ? wrapped(at, g.nx) : -1; };
    const int first = inside ? x : column(x), second = inside ? x + 1 : column(x + 1), before = inside ? x - 1 : column(x - 1);
    // Of a row: right sides as they are stored.
    struct values {
        F a, b, before;
    };
    auto load = [&](int y) -> values {
        values of{F(0), F(0), F(0)};
        if (inside) {
            const F* at = g.right_side + (y * g.pitch + x);
            const pair_of<F> both = *reinterpret_cast<const pair_of<F>*>(at);
            of = {both.a, both.b, F(0)};
            if (is_first) of.before = at[-1];
            return of;
        }
        // Rows behind the one after the own ones are not asked for, and need not be stored.
        y = min(y, y1);
        y = wrap_y ? wrapped(y, g.ny) : min(max(y, 0), g.ny - 1);
        const F* row = g.right_side + y * g.pitch;
        if (first >= 0) of.a = row[first];
        if (second >= 0) of.b = row[second];
        if (is_first && before >= 0) of.before = row[before];
        return of;
    };
    // The residual.
    auto residual = [&](int y, int at, F b) -> F {
        if (inside) return F(0) + b;
        const bool held = (at == 0 && g.ends[0] == end_fixed) || (at == g.nx - 1 && g.ends[1] == end_fixed);
        if (at < 0 || held || y <= 0 || y >= g.ny - 1) return F(0);
        const F up = y == 1 ? g.before[at] : F(0), down = y == g.ny - 2 ? g.before[(g.ny - 1) * g.pitch + at] : F(0);
        return (F(0) + (down + up)) + b;
    };
    pair_of<double> sum{-0.0, -0.0};
    auto measure = [&](int y, F one, F other) {
        if (y < y0 || y >= y1) return;
        sum.a += double(one) * double(one);
        sum.b += double(other) * double(other);
        if ((y + g.first + 1) % leaf_rows == 0 || y + 1 == y1) {
            double* to = g.sums + (y + g.first) / leaf_rows * g.sum_pitch + x;
            if (inside || x < g.nx) to[0] = sum.a;
            if (inside || x + 1 < g.nx) to[1] = sum.b;
            sum = {-0.0, -0.0};
        }
    };
    // What the next level takes of a row: of the columns before, at and behind the coarse point.
    auto take = [&](int y, values of, float (&out)[3]) {
        float one, other, outer;
        if constexpr (finest) {
            of.a = residual(y, first, of.a);
            of.b = residual(y, second, of.b);
            of.before = residual(y, before, of.before);
            measure(y, of.a, of.b);
            one = float(of.a * g.down_scale);
            other = float(of.b * g.down_scale);
            outer = float(of.before * g.down_scale);
        } else {
            one = of.a;
            other = of.b;
            outer = of.before;
        }
        const float shifted = __shfl_up_sync(0xffffffffu, other, 1);
        out[0] = is_first ? outer : shifted;
        out[1] = one;
        out[2] = other;
    };
    const transfer_table transfer{g.transfer_index, g.transfer_rows, g.coarse_nx};
    const int i = inside ? x >> 1 : min(x >> 1, g.coarse_nx - 1), j0 = (y0 + 1) / 2, j1 = (y1 + 1) / 2;
    // Coarse rows with the same weights as the row before each.
    const int same0 = (g.calm_start + 1) / 2 + 1, same1 = g.calm_end / 2;
    transfer_of_pair same;
    if (max(j0, same0) < min(j1, same1)) same.load(transfer, max(j0, same0), i);
    float up[3], mid[3], down[3];
    take(2 * j0 - 1, load(2 * j0 - 1), up);
#pragma unroll 1
    for (int j = j0; j < j1; j += batch) {
        values of[2 * batch];
#pragma unroll
        for (int k = 0; k < 2 * batch; ++k) of[k] = load(2 * j + k);
#pragma unroll
        for (int k = 0; k < batch; ++k) {
            const int at = j + k;
            take(2 * at, of[2 * k], mid);
            take(2 * at + 1, of[2 * k + 1], down);
            float* to = g.coarse_right_side + (at * g.coarse_pitch + i);
            if (inside) {
                *to = same.restrict_to(up, mid, down);
            } else if (at < j1 && x < g.nx) {
                // Where there is no row between, its weights are zero.
                const bool between = 2 * at + 1 < g.ny, above = at > 0 || (wrap_y && !(g.ny & 1));
                float over[3], under[3];
#pragma unroll
                for (int c = 0; c < 3; ++c) {
                    over[c] = above ? up[c] : mid[c];
                    under[c] = between ? down[c] : mid[c];
                }
                *to = restrict_to(transfer, i, at, over, mid, under);
            }
#pragma unroll
            for (int c = 0; c < 3; ++c) up[c] = down[c];
        }
    }
}

template <class F> __device__ __forceinline__ void restrict_right_side(const level_pass<F>& g) {
    constexpr int wide = 2 * 32;
    const int begin_x = (int(blockIdx.x) * (level_threads / 32) + int(threadIdx.x) / 32) * wide;
    // Blocks begin where leaves do.
    const int begin = g.row_start - (g.row_start + g.first) % leaf_rows + int(blockIdx.y) * restricted_rows;
    const int y0 = max(begin, g.row_start), y1 = min(begin + restricted_rows, g.row_end);
    const int x = begin_x + 2 * (threadIdx.x % 32);
    const bool whole = y1 - y0 == restricted_rows && !(y0 & 1) && begin_x > 1 && begin_x + wide < g.nx - 1;
    if (whole && y0 > max(2, g.calm_start + 3) && y1 < min(g.ny - 2, g.calm_end - 1)) {
        restrict_columns<F, true>(g, x, y0, y1);
    } else {
        restrict_columns<F, false>(g, x, y0, y1);
    }
}

}  // namespace crosswarp
