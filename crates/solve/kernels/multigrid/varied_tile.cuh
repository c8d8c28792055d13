// Relaxations of a tile of a finest level whose points differ, from the corrected field, with what comes after them.
//
// Where cells keep their values by a mask, or couplings differ, so do weights, and no row is calm: strips of `pass.cuh` look
// everything up row by row, and wait each time. Here a thread has a column of some rows in registers, and asks for all that it needs
// at once; neighbours on both sides read it in shared memory. Relaxations change all points, and nothing wraps around. What comes out
// is the same.
#pragma once
#include "multigrid/finest_tile.cuh"

namespace crosswarp {

// What a block has in shared memory.
template <bool varying> struct varied_tile {
    static constexpr int threads = mask_tile_threads, blocks = 2;
    finest_tile_field field;
};
template <> struct varied_tile<true> {
    static constexpr int threads = varying_tile_threads, blocks = 1;
    finest_tile_field field;
    // Couplings to the east, from the column before the first on.
    double east[finest_tile_high][finest_tile_wide + 1];
};

// The couplings of a column of rows, and 1 / their diagonals times ω.
template <int rows> struct column_couplings {
    // From the row above the first on.
    double south[rows + 1], excess[rows], inverse[rows];
};

// `inside`: whether all points of the tile are there, and none is at a side.
template <bool varying, int steps, bool measures, bool inside>
__device__ __forceinline__ void run_varied_tile(const level_pass<double>& g, varied_tile<varying>& tile, int x0, int origin) {
    // A thread has a column of so many rows.
    constexpr int threads = varied_tile<varying>::threads, rows = finest_tile_high * finest_tile_wide / threads;
    finest_tile_field& field = tile.field;
    const int lane = threadIdx.x % finest_tile_wide, first = threadIdx.x / finest_tile_wide * rows;
    const int column = x0 - finest_margin_x + lane, top = origin - finest_margin_y + first;
    const int y0 = max(origin, g.row_start), y1 = min(origin + finest_own_y, g.row_end);
    const bool there = inside || (column >= 0 && column < g.nx);
    const five_point<varying> equation(g, min(max(column, 0), g.nx - 1), there);
    const bool own_column = lane >= finest_margin_x && lane < finest_tile_wide - finest_margin_x && column < g.nx;
    // Rows beyond what own ones depend on need not be stored.
    auto is_there = [&](int y) { return there && y >= max(y0 - steps - 2, 0) && y < min(y1 + steps + 2, g.ny); };

    double u[rows];
    u32 free = 0;
#pragma unroll
    for (int k = 0; k < rows; ++k) {
        const int y = top + k;
        const i64 place = y * g.pitch + column;
        const bool stored = is_there(y);
        u[k] = stored && (!g.is_zero || y == 0 || y == g.ny - 1) ? read(g.before + place) : 0.;
        free |= stored && !equation.keeps(y) ? 1u << k : 0u;
    }
    // Of most problems with a mask it is zero; registers are few.
    auto right_side = [&](int y) { return g.right_side && is_there(y) ? read(g.right_side + (y * g.pitch + column)) : 0.; };
    auto is_free = [&](int k) { return free >> k & 1; };
    auto store_own = [&] {
#pragma unroll
        for (int k = 0; k < rows; ++k) {
            const int y = top + k;
            if (own_column && y >= y0 && y < y1) g.after[y * g.pitch + column] = u[k];
        }
    };
    constexpr int across = finest_own_x / 2;
    const int j0 = (y0 + 1) / 2, coarse_points = ((y1 + 1) / 2 - j0) * across;
    auto each_coarse = [&](auto work) {
        for (int k = threadIdx.x; k < coarse_points; k += threads) {
            const int i = x0 / 2 + k % across, j = j0 + k / across;
            if (i < g.coarse_nx) g.coarse_right_side[j * g.coarse_pitch + i] = work(i, j);
        }
    };
    // Leaves begin with the level's rows: `first` is 0.
    auto each_leaf = [&](auto work) {
        for (int k = threadIdx.x; k < finest_own_y / leaf_rows * finest_own_x; k += threads) {
            const int x = x0 + k % finest_own_x, begin = origin + k / finest_own_x * leaf_rows;
            if (x < g.nx && begin < y1 && begin >= y0) g.sums[begin / leaf_rows * g.sum_pitch + x] = work(x, begin);
        }
    };
    // Where all cells keep their values, the field stays, and its residual is zero.
    if (!__syncthreads_or(free != 0)) {
        store_own();
        if (measures) each_leaf([](int, int) { return 0.; });
        each_coarse([](int, int) { return 0.f; });
        return;
    }

    const transfer_table transfer{g.transfer_index, g.transfer_rows, g.coarse_nx};
    const coarse_values coarse{g.correction, g.coarse_pitch, g.coarse_nx, g.coarse_ny, false, false};
    if (inside) {
        // As `prolong`, of two rows at once.
        const int i = column >> 1, j = top >> 1, part = g.coarse_nx + 2;
        const bool between = column & 1;
        const float* from = g.correction + (j * g.coarse_pitch + i);
        float here = read(from), behind = between ? read(from + 1) : 0.f;
#pragma unroll
        for (int k = 0; k < rows; k += 2) {
            from += g.coarse_pitch;
            const float under = read(from), under_behind = between ? read(from + 1) : 0.f;
            const float* w = transfer.row(j + k / 2) + i + 1;
            auto weight = [&](int of) { return read(w + of * part); };
            float by = here, below;
            if (between) {
                by = weight(right_0) * here + weight(right_1) * behind;
                below = (weight(amid_0) * here + weight(amid_1) * behind) +
                        (weight(amid_2) * under + weight(amid_3) * under_behind);
            } else {
                below = weight(below_0) * here + weight(below_1) * under;
            }
            if (is_free(k)) u[k] = u[k] + double(by) * g.up_scale;
            if (is_free(k + 1)) u[k + 1] = u[k + 1] + double(below) * g.up_scale;
            here = under;
            behind = under_behind;
        }
    } else {
#pragma unroll
        for (int k = 0; k < rows; ++k) {
            if (is_free(k)) u[k] = u[k] + double(prolong(transfer, coarse, equation.x, top + k)) * g.up_scale;
        }
    }
    column_couplings<varying ? rows : 1> of;
    if constexpr (varying) {
        using numbers = five_point<true>;
        const row_table<double, numbers::parts> table{g.operator_index, g.operator_rows, g.nx};
        const row_table<double, 1> inverses{g.inverse_index, g.inverse_rows, g.nx};
        const int part = g.nx + 2, place = min(max(column, 0), g.nx - 1) + 1;
        of.south[0] = is_there(top) ? read(table.part(top - 1, numbers::south) + place) : 0.;
#pragma unroll
        for (int k = 0; k < rows; ++k) {
            const bool stored = is_there(top + k);
            const double* row = stored ? table.row(top + k) + place : nullptr;
            of.south[k + 1] = stored ? read(row + numbers::south * part) : 0.;
            of.excess[k] = stored ? read(row + numbers::excess * part) : 0.;
            of.inverse[k] = stored ? read(inverses.row(top + k) + place) : 0.;
            tile.east[first + k][lane + 1] = stored ? read(row + numbers::east * part) : 0.;
            // Before the first column, which no own one depends on.
            if (lane == 0) tile.east[first + k][0] = stored ? read(row + numbers::east * part - 1) : 0.;
        }
    }
    // Column `lane` of row `top` + k.
    auto at = [&](int k) -> double& { return field[first + k + 1][lane + 1]; };
    auto share = [&] {
#pragma unroll
        for (int k = 0; k < rows; ++k) at(k) = u[k];
        __syncthreads();
    };
    // Puts what `work` makes of a point and its residual in its place.
    auto each_point = [&](auto work) {
        double above = at(-1);
        const double behind = at(rows);
#pragma unroll
        for (int k = 0; k < rows; ++k) {
            const double here = u[k];
            double up = above, down = k + 1 < rows ? u[k + 1] : behind, west = (&at(k))[-1], east = (&at(k))[1];
            if (!inside) {
                const int y = top + k;
                if (y == 0) up = down;
                if (y == g.ny - 1) down = above;
                if (equation.mirrors_west) west = east;
                if (equation.mirrors_east) east = (&at(k))[-1];
            }
            double residual, length = 1.0;
            if constexpr (varying) {
                const double across = tile.east[first + k][lane + 1] * (east - here) + tile.east[first + k][lane] * (west - here);
                const double along = of.south[k + 1] * (down - here) + of.south[k] * (up - here);
                residual = right_side(top + k) + ((across + along) - of.excess[k] * here);
                length = of.inverse[k];
            } else {
                const double sum = (east + west) + (down + up);
                residual = (sum - 4.0 * here) + right_side(top + k);
            }
            above = here;
            u[k] = work(here, residual, length, is_free(k));
        }
        // All have been read.
        __syncthreads();
    };
    share();
#pragma unroll
    for (int s = 0; s < steps; ++s) {
        const double omega = g.omega[s];
        each_point([omega](double here, double residual, double length, bool free) {
            return free ? here + (varying ? omega * length : omega) * residual : here;
        });
        if (s + 1 == steps) store_own();
        share();
    }
    each_point([](double, double residual, double, bool free) { return free ? residual : 0.; });
    share();
    auto residual = [&](int x, int y) { return field[y - (origin - finest_margin_y) + 1][x - (x0 - finest_margin_x) + 1]; };
    if (measures) {
        each_leaf([&](int x, int begin) {
            double sum = -0.0;
            for (int y = begin; y < min(begin + leaf_rows, y1); ++y) sum += residual(x, y) * residual(x, y);
            return sum;
        });
    }
    auto residuals_at = [&](int i, int y, float (&out)[3]) {
        // Equations with couplings are symmetric as they are.
        const bool halves = !varying && !inside;
        const bool halved = halves && ((y == 0 && g.ends[2] == end_mirror) || (y == g.ny - 1 && g.ends[3] == end_mirror));
#pragma unroll
        for (int k = 0; k < 3; ++k) {
            const int x = 2 * i - 1 + k;
            double of = residual(x, y);
            if (halves && x == 0 && g.ends[0] == end_mirror) of *= 0.5;
            if (halves && x == g.nx - 1 && g.ends[1] == end_mirror) of *= 0.5;
            if (halved) of *= 0.5;
            out[k] = float(of * g.down_scale);
        }
    };
    each_coarse([&](int i, int j) {
        float up[3], mid[3], down[3];
        residuals_at(i, 2 * j, mid);
        residuals_at(i, j > 0 ? 2 * j - 1 : 2 * j, up);
        residuals_at(i, 2 * j + 1 < g.ny ? 2 * j + 1 : 2 * j, down);
        return restrict_to(transfer, i, j, up, mid, down);
    });
}

template <bool varying, int steps, bool measures>
__device__ __forceinline__ void run_varied_tile_pass(const level_pass<double>& g) {
    extern __shared__ float4 memory[];
    constexpr int shared = varying ? varying_tile_shared : mask_tile_shared;
    static_assert(sizeof(varied_tile<varying>) == shared, "as the host has it");
    auto& tile = *reinterpret_cast<varied_tile<varying>*>(memory);
    const int x0 = blockIdx.x * finest_own_x;
    const int origin = g.row_start / leaf_rows * leaf_rows + int(blockIdx.y) * finest_own_y;
    clear_rim<varied_tile<varying>::threads>(tile.field);
    const int left = x0 - finest_margin_x, top = origin - finest_margin_y;
    // Rows beside the own ones need not all be stored.
    const bool inside = left > 0 && left + finest_tile_wide < g.nx && top >= max(g.row_start, 1) &&
                        top + finest_tile_high <= min(g.row_end, g.ny - 1);
    if (inside) {
        run_varied_tile<varying, steps, measures, true>(g, tile, x0, origin);
    } else {
        run_varied_tile<varying, steps, measures, false>(g, tile, x0, origin);
    }
}

// A kernel of passes over a finest level whose points differ by tiles; behind its name whether couplings differ, its
// relaxations, and whether it measures what they leave.
#define CROSSWARP_VARIED_TILE(name, varying, ...)                                                                       \
    extern "C" __global__ void __launch_bounds__(cw::varied_tile<varying>::threads, cw::varied_tile<varying>::blocks)   \
        name(const __grid_constant__ cw::level_pass<double> g) {                                                        \
        cw::run_varied_tile_pass<varying, __VA_ARGS__>(g);                                                              \
    }

}  // namespace crosswarp
