// Relaxations in red-black order of a tile of the finest level, from the corrected field, with what comes after them, in
// shared memory.
//
// For levels of which a strip of `pass.cuh` would have few rows, as `tile.cuh`: of 1025² points a strip has 16 rows, and 24
// more to pass through the steps. All couplings are 1, no cell is fixed inside, and nothing wraps around. What comes out is
// the same.
#pragma once
#include "async_copy.cuh"
#include "multigrid/five_point.cuh"
#include "multigrid/pass_kinds.cuh"
#include "sum_layout.cuh"

namespace crosswarp {

// A thread has a column of so many rows.
constexpr int finest_thread_rows = 16;
constexpr int finest_tile_wide = level_tile_wide;
constexpr int finest_tile_high = level_tile_threads / finest_tile_wide * finest_thread_rows;
// Own points of a tile are some of these: a point on both sides is spent for each step, for the residual and for the next
// level's right side, and of rows more, so that leaves are whole.
constexpr int finest_own_x = finest_tile_columns, finest_own_y = finest_tile_rows;
constexpr int finest_margin_x = (finest_tile_wide - finest_own_x) / 2;
constexpr int finest_margin_y = (finest_tile_high - finest_own_y) / 2;
static_assert(finest_margin_x >= most_steps + 2 && finest_margin_y >= most_steps + 2, "margins");
static_assert(finest_own_y % leaf_rows == 0, "whole leaves");
static_assert(finest_own_x % 2 == 0 && finest_margin_x % 2 == 0, "columns that begin even");
static_assert(finest_margin_y % 2 == 0 && finest_thread_rows % 2 == 0, "rows that begin even");

using finest_tile_field = double[finest_tile_high + 2][finest_tile_wide + 2];

// What the next level gives a column of rows that all have the same weights, the first of which is a coarse one's: as
// `prolong`.
struct column_prolongation {
    static constexpr int rows = finest_thread_rows / 2 + 1;
    bool between;
    float right[2], below[2], amid[4], here[rows], behind[rows];

    __device__ void load(const level_pass<double>& g, int x, int y) {
        const transfer_table transfer{g.transfer_index, g.transfer_rows, g.coarse_nx};
        const int i = x >> 1, part = g.coarse_nx + 2;
        between = x & 1;
        const float* from = g.correction + ((y >> 1) * g.coarse_pitch + i);
#pragma unroll
        for (int k = 0; k < rows; ++k) {
            here[k] = read(from + k * g.coarse_pitch);
            behind[k] = read(from + k * g.coarse_pitch + between);
        }
        const float* w = transfer.row(y >> 1) + i + 1;
#pragma unroll
        for (int k = 0; k < 2; ++k) {
            right[k] = read(w + (right_0 + k) * part);
            below[k] = read(w + (below_0 + k) * part);
        }
#pragma unroll
        for (int k = 0; k < 4; ++k) amid[k] = read(w + (amid_0 + k) * part);
    }
    // Of row k.
    __device__ float of(int k) const {
        const int j = k >> 1;
        if (k & 1) {
            return between ? (amid[0] * here[j] + amid[1] * behind[j]) + (amid[2] * here[j + 1] + amid[3] * behind[j + 1])
                           : below[0] * here[j] + below[1] * here[j + 1];
        }
        return between ? right[0] * here[j] + right[1] * behind[j] : here[j];
    }
};

// `inside`: whether all points of the tile are there, far from the sides, and have the same weights as those above them.
template <int steps, bool measures, bool inside>
__device__ __forceinline__ void run_finest_tile(const level_pass<double>& g, finest_tile_field& field, int x0, int origin) {
    const int lane = threadIdx.x % finest_tile_wide, first = threadIdx.x / finest_tile_wide * finest_thread_rows;
    const int column = x0 - finest_margin_x + lane, top = origin - finest_margin_y + first;
    const int y0 = max(origin, g.row_start), y1 = min(origin + finest_own_y, g.row_end);
    const bool there = inside || (column >= 0 && column < g.nx);
    const five_point<false> equation(g, min(max(column, 0), g.nx - 1), there);
    const bool own_column = lane >= finest_margin_x && lane < finest_tile_wide - finest_margin_x && column < g.nx;
    // Rows beyond what own ones depend on need not be stored.
    auto is_there = [&](int y) { return there && y >= max(y0 - steps - 2, 0) && y < min(y1 + steps + 2, g.ny); };
    auto keeps = [&](int y) { return !inside && (equation.held || equation.row_held(y)); };
    // Column `lane` of row `top` + k.
    auto at = [&](int k) -> double& { return field[first + k + 1][lane + 1]; };

    // All that is read is asked for at once.
    double right_sides[finest_thread_rows];
#pragma unroll
    for (int k = 0; k < finest_thread_rows; ++k) {
        const int y = top + k;
        const i64 place = y * g.pitch + column;
        right_sides[k] = 0.;
        if (is_there(y) && (!g.is_zero || y == 0 || y == g.ny - 1)) {
            copy_async<sizeof(double)>(&at(k), g.before + place);
        } else {
            at(k) = 0.;
        }
        if (is_there(y) && g.right_side) right_sides[k] = read(g.right_side + place);
    }
    copy_commit();
    if (inside) {
        column_prolongation by;
        by.load(g, column, top);
        copy_wait<0>();
#pragma unroll
        for (int k = 0; k < finest_thread_rows; ++k) at(k) = at(k) + double(by.of(k)) * g.up_scale;
    } else {
        const transfer_table transfer{g.transfer_index, g.transfer_rows, g.coarse_nx};
        const coarse_values coarse{g.correction, g.coarse_pitch, g.coarse_nx, g.coarse_ny, false, false};
        copy_wait<0>();
#pragma unroll 4
        for (int k = 0; k < finest_thread_rows; ++k) {
            const int y = top + k;
            if (is_there(y) && !keeps(y)) at(k) = at(k) + double(prolong(transfer, coarse, equation.x, y)) * g.up_scale;
        }
    }
    // The points of a colour: of each two rows of the thread one.
    auto of_colour = [&](int colour, auto work) {
        const int odd = (lane + colour) & 1;
#pragma unroll
        for (int k = 0; k < finest_thread_rows; k += 2) {
            const int y = top + k + odd;
            if (!inside && (!is_there(y) || keeps(y))) continue;
            double* here = &at(k + odd);
            constexpr int pitch = finest_tile_wide + 2;
            double up = here[-pitch], down = here[pitch], west = here[-1], east = here[1];
            if (!inside) {
                if (y == 0) up = down;
                if (y == g.ny - 1) down = y == 0 ? up : here[-pitch];
                if (equation.mirrors_west) west = east;
                if (equation.mirrors_east) east = equation.mirrors_west ? east : here[-1];
            }
            work(here, up, west, east, down, odd ? right_sides[k + 1] : right_sides[k]);
        }
    };
#pragma unroll
    for (int s = 0; s < steps; ++s) {
        const double omega = g.omega[s];
        __syncthreads();
        of_colour(s & 1 ? black : red, [&](double* here, double up, double west, double east, double down, double b) {
            const step_kind kind = s == 0 || s + 1 == steps ? to_solution : beyond_solution;
            *here = five_point<false>::relaxed(b, omega, up, west, *here, east, down, kind);
        });
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < finest_thread_rows; ++k) {
        const int y = top + k;
        if (own_column && y >= y0 && y < y1) g.after[y * g.pitch + column] = at(k);
    }
    // The equations of black points hold. A residual takes the place of its point, which no other one depends on.
    of_colour(red, [&](double* here, double up, double west, double east, double down, double b) {
        const double sum = (east + west) + (down + up);
        *here = (sum - 4.0 * *here) + b;
    });
    __syncthreads();
    // Of column and row; 0 of a point that keeps its value.
    auto residual = [&](int x, int y) -> double {
        if ((x + y) & 1) return 0.;
        if (!inside) {
            const bool side = (x == 0 && g.ends[0] == end_fixed) || (x == g.nx - 1 && g.ends[1] == end_fixed);
            if (x < 0 || x >= g.nx || y < 0 || y >= g.ny || side || equation.row_held(y)) return 0.;
        }
        return field[y - (origin - finest_margin_y) + 1][x - (x0 - finest_margin_x) + 1];
    };
    if (measures) {
        // Leaves begin with the level's rows: `first` is 0.
        constexpr int leaves = finest_own_y / leaf_rows;
        for (int k = threadIdx.x; k < leaves * finest_own_x; k += level_tile_threads) {
            const int x = x0 + k % finest_own_x, begin = origin + k / finest_own_x * leaf_rows;
            if (x >= g.nx || begin >= y1 || begin < y0) continue;
            double sum = -0.0;
            for (int y = begin; y < min(begin + leaf_rows, y1); ++y) {
                const double of = residual(x, y);
                sum += of * of;
            }
            g.sums[begin / leaf_rows * g.sum_pitch + x] = sum;
        }
    }
    auto to_restrict = [&](int x, int y) -> float {
        double of = residual(x, y);
        if (!inside) {
            if (x == 0 && g.ends[0] == end_mirror) of *= 0.5;
            if (x == g.nx - 1 && g.ends[1] == end_mirror) of *= 0.5;
            if ((y == 0 && g.ends[2] == end_mirror) || (y == g.ny - 1 && g.ends[3] == end_mirror)) of *= 0.5;
        }
        return float(of * g.down_scale);
    };
    const transfer_table transfer{g.transfer_index, g.transfer_rows, g.coarse_nx};
    constexpr int across = finest_own_x / 2;
    const int j0 = (y0 + 1) / 2, count = ((y1 + 1) / 2 - j0) * across, part = g.coarse_nx + 2;
    const float* same = inside ? transfer.row(origin >> 1) : nullptr;
    for (int k = threadIdx.x; k < count; k += level_tile_threads) {
        const int i = x0 / 2 + k % across, j = j0 + k / across;
        if (i >= g.coarse_nx) continue;
        const float* here = (inside ? same : transfer.row(j)) + i + 1;
        const float* above = (inside ? same : transfer.row(j - 1)) + i + 1;
        // As `restrict_to`, of red points alone. Where there is no row between, its weights are zero.
        const int over = 2 * j - 1 < 0 ? 2 * j : 2 * j - 1, under = 2 * j + 1 >= g.ny ? 2 * j : 2 * j + 1;
        const float upper = 0.f + (read(above + amid_3 * part - 1) * to_restrict(2 * i - 1, over) +
                                   read(above + amid_2 * part) * to_restrict(2 * i + 1, over));
        const float lower = 0.f + (read(here + amid_1 * part - 1) * to_restrict(2 * i - 1, under) +
                                   read(here + amid_0 * part) * to_restrict(2 * i + 1, under));
        g.coarse_right_side[j * g.coarse_pitch + i] = (to_restrict(2 * i, 2 * j) + 0.f) + (upper + lower);
    }
}

template <int steps, bool measures> __device__ __forceinline__ void run_finest_tile_pass(const level_pass<double>& g) {
    __shared__ finest_tile_field field;
    // Tiles at the ends take longest, and begin first.
    const int bands = gridDim.y, number = blockIdx.y, band = number == 0 ? 0 : number == 1 ? bands - 1 : number - 1;
    const int x0 = blockIdx.x * finest_own_x;
    const int origin = g.row_start / leaf_rows * leaf_rows + band * finest_own_y;
    clear_rim<level_tile_threads>(field);
    const int left = x0 - finest_margin_x, top = origin - finest_margin_y;
    const bool inside = left > 0 && left + finest_tile_wide < g.nx && top >= max(g.calm_start + 4, 2) &&
                        top + finest_tile_high <= min(g.calm_end - 2, g.ny - 1);
    if (inside) {
        run_finest_tile<steps, measures, true>(g, field, x0, origin);
    } else {
        run_finest_tile<steps, measures, false>(g, field, x0, origin);
    }
}

// A kernel of passes over the finest level by tiles; behind its name its relaxations, and whether it measures what they
// leave.
#define CROSSWARP_FINEST_TILE(name, ...)                                            \
    extern "C" __global__ void __launch_bounds__(cw::level_tile_threads, 3)         \
        name(const __grid_constant__ cw::level_pass<double> g) {                    \
        cw::run_finest_tile_pass<__VA_ARGS__>(g);                                   \
    }

}  // namespace crosswarp
