// Several relaxations, and what comes before and after them, in one pass through memory.
//
// A block has a strip of columns and walks down its rows. When the first step has reached row y, the second is a row
// behind (two, where corners matter), and so on; after the last step comes the residual, and behind that the next
// level's right side. Own columns' values are in registers, and for the neighbours' sake in shared memory, of which each
// step needs two rows (or four): the one that neighbours read and the one that is written. So there is one barrier a
// row. Columns and rows that neighbouring blocks have are computed again at the margins of a strip; what comes out is
// the same as in passes over the whole level, one after the other (`wavefront.rs`).
//
// Source of the idea: temporal blocking by streaming in one dimension and overlapped tiles in the other, as in Rawat et
// al., "Effective resource management for enhancing performance of 2D and 3D stencils on GPUs", GPGPU 2016.
#pragma once
#include "multigrid/neighbours.cuh"
#include "sum_layout.cuh"

namespace crosswarp {

// What is left of a strip for output: per step a column on both sides is spent, and for the residual and the next
// level's right side another one each.
__device__ constexpr int strip_width(int steps) { return level_pass_threads - 2 * (steps + 2); }

__device__ inline int wrapped(int at, int count) {
    while (at < 0) at += count;
    while (at >= count) at -= count;
    return at;
}

template <class Equation, int steps> __device__ __forceinline__ void run_pass(const level_pass<typename Equation::number>& g) {
    using F = typename Equation::number;
    constexpr int lag = Equation::corners ? 2 : 1, ring = 2 * lag, margin = steps + 2;
    // Rows of a strip before each step, and of the residual. Column c of the strip is at c + 1.
    __shared__ F rows[steps + 1][ring][level_pass_threads + 2];
    __shared__ float residuals[4][level_pass_threads + 2];
    const int t = threadIdx.x + 1;
    const bool wrap_x = g.ends[0] == end_wrap, wrap_y = g.ends[2] == end_wrap;
    const int column = blockIdx.x * strip_width(steps) - margin + int(threadIdx.x);
    const bool there = wrap_x || (column >= 0 && column < g.nx);
    const int x = wrap_x ? wrapped(column, g.nx) : min(max(column, 0), g.nx - 1);
    const bool own = int(threadIdx.x) >= margin && int(threadIdx.x) < level_pass_threads - margin && column < g.nx;
    const Equation at(g, x, there);

    const int y0 = blockIdx.y * g.rows, y1 = min(y0 + g.rows, g.ny);
    const bool restricts = g.coarse_right_side;
    // Leaves begin `first` rows before multiples of 16.
    const int measure0 = y0 == 0 ? 0 : y0 - g.first, measure1 = y1 == g.ny ? y1 : y1 - g.first;
    double sum = -0.0;
    auto measure = [&](int y, F residual) {
        if (y < measure0 || y >= measure1) return;
        sum += double(residual) * double(residual);
        if ((y + g.first + 1) % leaf_rows == 0 || y + 1 == g.ny) {
            if (own) g.sums[(y + g.first) / leaf_rows * g.sum_pitch + x] = sum;
            sum = -0.0;
        }
    };

    // The own column before each step: the newest row, and those above it.
    F mine[steps + 1][lag + 2];
#pragma unroll
    for (int s = 0; s <= steps; ++s) {
#pragma unroll
        for (int k = 0; k < lag + 2; ++k) mine[s][k] = F(0);
    }
    for (int i = threadIdx.x; i < (steps + 1) * ring * (level_pass_threads + 2); i += level_pass_threads) {
        (&rows[0][0][0])[i] = F(0);
    }
    for (int i = threadIdx.x; i < 4 * (level_pass_threads + 2); i += level_pass_threads) (&residuals[0][0])[i] = 0.f;
    __syncthreads();

    // What is around row y before step s.
    auto around = [&](int s, int y) {
        const bool first = !wrap_y && y == 0, last = !wrap_y && y == g.ny - 1;
        neighbours<F> u;
        const F below = mine[s][lag - 1], above = mine[s][lag + 1];
        u.here = mine[s][lag];
        u.up = first ? (last ? u.here : below) : above;
        u.down = last ? (first ? u.here : above) : below;
        const F* middle = rows[s][y & (ring - 1)] + t;
        u.west = middle[at.west_step];
        u.east = middle[at.east_step];
        if constexpr (Equation::corners) {
            const F* over = rows[s][(first ? (last ? y : y + 1) : y - 1) & (ring - 1)] + t;
            const F* under = rows[s][(last ? (first ? y : y - 1) : y + 1) & (ring - 1)] + t;
            u.up_west = over[-1];
            u.up_east = over[1];
            u.down_west = under[-1];
            u.down_east = under[1];
        }
        return u;
    };

    const transfer_table transfer{g.transfer_index, g.transfer_rows, g.coarse_nx};
    const coarse_values coarse{g.correction, g.coarse_pitch, g.coarse_nx, g.coarse_ny, wrap_x, wrap_y};
    const int top = wrap_y ? y0 - margin : max(y0 - margin, 0);
    const int bottom = wrap_y ? y1 + margin : min(y1 + margin, g.ny);
    // A step more each, which rows there are a step less on both sides.
    auto reaches = [&](int s, int y) {
        return wrap_y ? y >= top + s && y < bottom - s
                      : y >= max(y0 - margin + s, 0) && y < min(y1 + margin - s, g.ny);
    };
    for (int now = top; now < y1 + 2 + (steps + 1) * lag; ++now) {
#pragma unroll
        for (int s = 0; s <= steps; ++s) {
#pragma unroll
            for (int k = lag + 1; k > 0; --k) mine[s][k] = mine[s][k - 1];
        }
        if (g.start != start_zero && now < bottom) {
            const int y = wrap_y ? wrapped(now, g.ny) : now;
            F value = g.start == start_correction ? F(0) : g.before[y * g.pitch + x];
            if (g.start >= start_corrected) value = at.corrected(value, prolong(transfer, coarse, x, y), y);
            if (!there) value = F(0);
            mine[0][0] = value;
            rows[0][now & (ring - 1)][t] = value;
            if constexpr (steps == 0) {
                if (g.after && own && now >= y0 && now < y1) g.after[y * g.pitch + x] = value;
            }
        }
#pragma unroll
        for (int s = 1; s <= steps; ++s) {
            const int row = now - s * lag;
            if (!reaches(s, row)) continue;
            const int y = wrap_y ? wrapped(row, g.ny) : row;
            F value;
            if (s == 1 && g.start == start_zero) {
                value = at.from_zero(y, g.omega[0]);
            } else {
                const stepped<F> made = at.step(around(s - 1, row), y, g.omega[s - 1]);
                value = made.after;
                if (g.measured == s - 1) measure(row, made.residual);
            }
            if (!there) value = F(0);
            mine[s][0] = value;
            rows[s][row & (ring - 1)][t] = value;
            if (s == steps && own && row >= y0 && row < y1) g.after[y * g.pitch + x] = value;
        }
        // The residual, a row after the last step.
        const int row = now - (steps + 1) * lag;
        if ((restricts || g.measured == steps) && reaches(steps + 1, row)) {
            const int y = wrap_y ? wrapped(row, g.ny) : row;
            const F residual = at.step(around(steps, row), y, 0.0).residual;
            if (g.measured == steps) measure(row, residual);
            residuals[row & 3][t] = there ? at.to_restrict(residual, y) : 0.f;
        }
        // The next level's right side, where the residual's rows were complete a row ago.
        const int done = row - 1, j = done >> 1;
        const bool between = 2 * j + 1 < g.ny;
        if (restricts && 2 * j >= y0 && 2 * j < y1 && (done & 1) == int(between) && own && !(column & 1)) {
            const bool between_above = j > 0 || (wrap_y && !(g.ny & 1));
            const float *mid = residuals[2 * j & 3] + t, *up = between_above ? residuals[(2 * j - 1) & 3] + t : mid;
            const float* down = between ? residuals[(2 * j + 1) & 3] + t : mid;
            const int i = column >> 1;
            g.coarse_right_side[j * g.coarse_pitch + i] =
                restrict_to(transfer, i, j, {up[-1], up[0], up[1]}, {mid[-1], mid[0], mid[1]}, {down[-1], down[0], down[1]});
        }
        __syncthreads();
    }
}

}  // namespace crosswarp
