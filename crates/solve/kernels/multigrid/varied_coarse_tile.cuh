// Two relaxations of a tile of a coarse level whose points differ, and what comes before and after them.
//
// As `tile.cuh`, where no row is calm: there couplings are looked up for each step, and waited for. Here a thread has a column of some
// rows in registers, with their couplings, and asks for all at once; neighbours on both sides read it in shared memory. Nothing wraps
// around. What comes out is the same.
#pragma once
#include "multigrid/tile.cuh"

namespace crosswarp {

using varied_coarse_field = float[varied_coarse_rows + 2][level_tile_wide + 2];

template <int start, bool restricts>
__device__ __forceinline__ void run_varied_coarse_tile(const level_pass<float>& g, varied_coarse_field& field, int x0, int origin,
                                                       int y0, int y1) {
    // A thread has a column of so many rows.
    constexpr int rows = varied_coarse_rows * level_tile_wide / varied_coarse_threads;
    constexpr int margin = tile_margin(restricts);
    const int lane = threadIdx.x % level_tile_wide, first = threadIdx.x / level_tile_wide * rows;
    const int column = x0 - margin + lane, top = origin - margin + first;
    const bool there = column >= 0 && column < g.nx;
    const int x = min(max(column, 0), g.nx - 1);
    const bool own_column = lane >= margin && lane < level_tile_wide - margin && column < g.nx;
    // Rows that are not there are not stored either.
    auto is_there = [&](int y) { return there && y >= max(y0 - margin, 0) && y < min(y1 + margin, g.ny); };
    const nine_point equation(g, x, there);
    float u[rows], right_sides[rows], inverses[rows];
    bool some = false;
#pragma unroll
    for (int k = 0; k < rows; ++k) {
        const int y = top + k;
        const bool stored = is_there(y);
        inverses[k] = stored ? equation.stored_inverse(y) : 0.f;
        right_sides[k] = stored ? equation.right_side(y) : 0.f;
        some |= inverses[k] != 0.f || right_sides[k] != 0.f;
    }
    auto store_own = [&] {
#pragma unroll
        for (int k = 0; k < rows; ++k) {
            const int y = top + k;
            if (own_column && y >= y0 && y < y1) g.after[y * g.pitch + column] = u[k];
        }
    };
    auto each_coarse = [&](auto work) {
        constexpr int across = level_tile_wide / 2 - margin;
        const int j0 = (y0 + 1) / 2, count = ((y1 + 1) / 2 - j0) * across;
        for (int k = threadIdx.x; k < count; k += varied_coarse_threads) {
            const int i = x0 / 2 + k % across, j = j0 + k / across;
            if (i < g.coarse_nx) g.coarse_right_side[j * g.coarse_pitch + i] = work(i, j);
        }
    };
    // Where there are no equations, nothing is to be corrected.
    if (!__syncthreads_or(some)) {
#pragma unroll
        for (int k = 0; k < rows; ++k) u[k] = 0.f;
        store_own();
        if (restricts) each_coarse([](int, int) { return 0.f; });
        return;
    }
    nine_point::couplings couplings[rows];
#pragma unroll
    for (int k = 0; k < rows; ++k) {
        if (is_there(top + k)) couplings[k].load(g, top + k, x);
        else couplings[k] = {};
    }
    const float omegas[2] = {float(g.omega[0]), float(g.omega[1])};
    const transfer_table transfer{g.transfer_index, g.transfer_rows, g.coarse_nx};
    const coarse_values coarse{g.correction, g.coarse_pitch, g.coarse_nx, g.coarse_ny, false, false};
#pragma unroll
    for (int k = 0; k < rows; ++k) {
        const int y = top + k;
        u[k] = 0.f;
        if (start == start_zero) {
            if (is_there(y)) u[k] = (omegas[0] * inverses[k]) * right_sides[k];
        } else if (is_there(y) && inverses[k] != 0.f) {
            const float before = start == start_correction ? 0.f : read(g.before + (y * g.pitch + x));
            u[k] = before + prolong(transfer, coarse, x, y);
        }
    }
    auto at = [&](int k, int i) -> float& { return field[first + k + 1][lane + 1 + i]; };
    auto share = [&] {
#pragma unroll
        for (int k = 0; k < rows; ++k) at(k, 0) = u[k];
        __syncthreads();
    };
    // After a step, or the residual.
    auto step = [&](bool relaxes, float omega) {
        float up[3] = {at(-1, -1), at(-1, 0), at(-1, 1)}, mid[3] = {at(0, -1), u[0], at(0, 1)};
        const float behind = at(rows, 0);
#pragma unroll
        for (int k = 0; k < rows; ++k) {
            const int y = top + k;
            const float down[3] = {at(k + 1, -1), k + 1 < rows ? u[k + 1] : behind, at(k + 1, 1)};
            const bool highest = y == 0, lowest = y == g.ny - 1;
            float over[3], under[3];
#pragma unroll
            for (int i = 0; i < 3; ++i) {
                over[i] = highest ? (lowest ? mid[i] : down[i]) : up[i];
                under[i] = lowest ? (highest ? mid[i] : up[i]) : down[i];
            }
            const neighbours<float> of{over[0], over[1],  over[2],  mid[0],  mid[1],
                                       mid[2],  under[0], under[1], under[2]};
            const float residual = couplings[k].residual(of, right_sides[k]);
            u[k] = !is_there(y) ? 0.f : relaxes ? mid[1] + (omega * inverses[k]) * residual : residual;
#pragma unroll
            for (int i = 0; i < 3; ++i) {
                up[i] = mid[i];
                mid[i] = down[i];
            }
        }
        // All have been read.
        __syncthreads();
    };
    share();
#pragma unroll
    for (int s = start == start_zero ? 1 : 0; s < 2; ++s) {
        step(true, omegas[s]);
        if (s == 1) store_own();
        if (s == 0 || restricts) share();
    }
    if (!restricts) return;
    step(false, 0.f);
    share();
    auto residuals_at = [&](int row, int i, float (&out)[3]) {
#pragma unroll
        for (int k = 0; k < 3; ++k) out[k] = field[row - (origin - margin) + 1][2 * i - (x0 - margin) + k];
    };
    each_coarse([&](int i, int j) {
        float up[3], mid[3], down[3];
        residuals_at(2 * j, i, mid);
        residuals_at(j > 0 ? 2 * j - 1 : 2 * j, i, up);
        residuals_at(2 * j + 1 < g.ny ? 2 * j + 1 : 2 * j, i, down);
        return restrict_to(transfer, i, j, up, mid, down);
    });
}

// `start` and `restricts`: see `pass_kinds.cuh`; nothing is measured.
template <int start, bool restricts> __device__ __forceinline__ void run_varied_coarse_pass(const level_pass<float>& g) {
    __shared__ varied_coarse_field field;
    constexpr int margin = tile_margin(restricts), own_x = level_tile_wide - 2 * margin, own_y = varied_coarse_rows - 2 * margin;
    const int x0 = blockIdx.x * own_x, origin = (g.row_start & -2) + int(blockIdx.y) * own_y;
    clear_rim<varied_coarse_threads>(field);
    run_varied_coarse_tile<start, restricts>(g, field, x0, origin, max(origin, g.row_start), min(origin + own_y, g.row_end));
}

// A kernel of passes over coarse levels whose points differ; behind its name what it does.
#define CROSSWARP_VARIED_COARSE_TILE(name, ...)                                 \
    extern "C" __global__ void __launch_bounds__(cw::varied_coarse_threads, 1)  \
        name(const __grid_constant__ cw::level_pass<float> g) {                 \
        cw::run_varied_coarse_pass<__VA_ARGS__>(g);                             \
    }

}  // namespace crosswarp
