// Two relaxations of a tile of a coarse level, and what comes before and after them, in shared memory.
//
// For levels of which a strip of `pass.cuh` would have few rows: there the way of a row through the steps takes most of the
// time. Here a thread has a column of some rows, all points make a step before the next one, and what neighbours read is in
// shared memory. Margins of a tile are computed again, as in `pass.cuh`; what comes out is the same.
#pragma once
#include "multigrid/nine_point.cuh"
#include "multigrid/pass_kinds.cuh"

namespace crosswarp {

constexpr int tile_high = level_tile_threads / level_tile_wide * level_tile_rows;

// Per step a row and a column on both sides are spent, and for the residual and the next level's right side another one each.
__device__ constexpr int tile_margin(bool restricts) { return restricts ? 4 : 2; }

// What the next level gives a column of rows that are all the same, the first of which is a coarse one's: as `prolong`.
struct calm_prolongation {
    static constexpr int rows = level_tile_rows / 2 + 1;
    bool between;
    float right[2], below[2], amid[4], here[rows], behind[rows];

    __device__ void load(const transfer_table& transfer, const coarse_values& coarse, int x, int y) {
        const int i = x >> 1, j = y >> 1, step = transfer.nx + 2;
        const float* w = transfer.row(j) + i + 1;
        between = x & 1;
#pragma unroll
        for (int k = 0; k < 2; ++k) {
            right[k] = read(w + (right_0 + k) * step);
            below[k] = read(w + (below_0 + k) * step);
        }
#pragma unroll
        for (int k = 0; k < 4; ++k) amid[k] = read(w + (amid_0 + k) * step);
#pragma unroll
        for (int k = 0; k < rows; ++k) {
            here[k] = coarse.at<true>(i, j + k);
            behind[k] = between ? coarse.at<true>(i + 1, j + k) : 0.f;
        }
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

// `calm`: whether all rows are the same, and inside; `alike`: whether all points of all columns are, too.
template <int start, bool restricts, bool calm, bool alike>
__device__ __forceinline__ void run_tile(const level_pass<float>& g, float (&fields)[2][tile_high + 2][level_tile_wide + 2],
                                         int x0, int origin, int y0, int y1) {
    // Elsewhere rows are few, and code is long.
    constexpr int margin = tile_margin(restricts), unrolled = calm ? level_tile_rows : 1;
    const bool wrap_x = g.ends[0] == end_wrap, wrap_y = g.ends[2] == end_wrap;
    const int lane = threadIdx.x % level_tile_wide, first = threadIdx.x / level_tile_wide * level_tile_rows;
    const int column = x0 - margin + lane, top = origin - margin + first;
    const bool there = alike || wrap_x || (column >= 0 && column < g.nx);
    const int x = wrap_x ? wrapped(column, g.nx) : min(max(column, 0), g.nx - 1);
    const bool own_column = lane >= margin && lane < level_tile_wide - margin && column < g.nx;
    const nine_point equation(g, x, there);
    // Rows that are not there are not stored either.
    auto is_there = [&](int y) {
        return there && (calm || (y >= y0 - margin && y < y1 + margin && (wrap_y || (y >= 0 && y < g.ny))));
    };
    auto row_of = [&](int y) { return !calm && wrap_y ? wrapped(y, g.ny) : y; };
    auto read_right_side = [&](int y) { return is_there(y) ? equation.right_side(row_of(y)) : 0.f; };
    nine_point::couplings at;
    float right_sides[level_tile_rows], inverse;
    const bool same = alike || (calm && equation.is_same(top));
    if (alike) inverse = g.same_couplings[3];
    if (calm) {
        if (!same) at.load(g, top, x);
        if (!alike) inverse = equation.inverse(top);
#pragma unroll
        for (int k = 0; k < level_tile_rows; ++k) right_sides[k] = read_right_side(top + k);
    }
    auto right_side = [&](int k) { return calm ? right_sides[k] : read_right_side(top + k); };

    const float omegas[2] = {float(g.omega[0]), float(g.omega[1])};
    const transfer_table transfer{g.transfer_index, g.transfer_rows, g.coarse_nx};
    const coarse_values coarse{g.correction, g.coarse_pitch, g.coarse_nx, g.coarse_ny, wrap_x, wrap_y};
    calm_prolongation calm_by;
    if (calm && start != start_zero) calm_by.load(transfer, coarse, x, top);
#pragma unroll unrolled
    for (int k = 0; k < level_tile_rows; ++k) {
        float begun = 0.f;
        if (is_there(top + k)) {
            const int y = row_of(top + k);
            if (!calm) inverse = equation.inverse(y);
            if (start == start_zero) {
                begun = (omegas[0] * inverse) * right_side(k);
            } else {
                const float before = start == start_correction ? 0.f : read(g.before + (y * g.pitch + x));
                const float by = calm ? calm_by.of(k) : prolong(transfer, coarse, x, y);
                begun = alike || inverse != 0.f ? before + by : 0.f;
            }
        }
        fields[0][first + k + 1][lane + 1] = begun;
    }
    // The next fields, of those in `from`: after a step of `omega`, or the residual.
    auto step = [&](int from, bool relaxes, float omega, bool last) {
        float up[3], mid[3], down[3];
        auto load = [&](int row, float (&to)[3]) {
#pragma unroll
            for (int i = 0; i < 3; ++i) to[i] = fields[from][row][lane + i];
        };
        __syncthreads();
        load(first, up);
        load(first + 1, mid);
#pragma unroll unrolled
        for (int k = 0; k < level_tile_rows; ++k) {
            load(first + k + 2, down);
            float made = 0.f;
            if (is_there(top + k)) {
                const int y = row_of(top + k);
                const bool is_same = calm ? same : equation.is_same(y);
                if (!calm) {
                    if (!is_same) at.load(g, y, x);
                    inverse = equation.inverse(y);
                }
                float over[3], under[3];
                const bool highest = !calm && !wrap_y && y == 0, lowest = !calm && !wrap_y && y == g.ny - 1;
#pragma unroll
                for (int i = 0; i < 3; ++i) {
                    over[i] = highest ? (lowest ? mid[i] : down[i]) : up[i];
                    under[i] = lowest ? (highest ? mid[i] : up[i]) : down[i];
                }
                const neighbours<float> u{over[0], over[1],  over[2],  mid[0],  mid[1],
                                          mid[2],  under[0], under[1], under[2]};
                const float residual =
                    is_same ? nine_point::same_residual(g, u, right_side(k)) : at.residual(u, right_side(k));
                made = relaxes ? mid[1] + (omega * inverse) * residual : residual;
            }
            fields[1 - from][first + k + 1][lane + 1] = made;
            const int y = top + k;
            if (last && own_column && y >= y0 && y < y1) g.after[y * g.pitch + column] = made;
#pragma unroll
            for (int i = 0; i < 3; ++i) {
                up[i] = mid[i];
                mid[i] = down[i];
            }
        }
    };
    // Two relaxations, the first of which may be done, and the residual.
    constexpr int begin = start == start_zero ? 1 : 0, end = restricts ? 3 : 2, made = (end - begin) & 1;
#pragma unroll(calm ? end : 1)
    for (int s = begin; s < end; ++s) step((s - begin) & 1, s < 2, s == 0 ? omegas[0] : omegas[1], s == 1);
    if (!restricts) return;
    __syncthreads();
    auto residuals_at = [&](int row, int i, float (&out)[3]) {
#pragma unroll
        for (int k = 0; k < 3; ++k) out[k] = fields[made][row - (origin - margin) + 1][2 * i - (x0 - margin) + k];
    };
    constexpr int across = level_tile_wide / 2 - margin;
    const int j0 = (y0 + 1) / 2, count = ((y1 + 1) / 2 - j0) * across;
    for (int k = threadIdx.x; k < count; k += level_tile_threads) {
        const int i = x0 / 2 + k % across, j = j0 + k / across;
        if (i >= g.coarse_nx) continue;
        const bool between = 2 * j + 1 < g.ny;
        float up[3], mid[3], down[3];
        residuals_at(2 * j, i, mid);
        residuals_at(j > 0 || (wrap_y && !(g.ny & 1)) ? 2 * j - 1 : 2 * j, i, up);
        residuals_at(between ? 2 * j + 1 : 2 * j, i, down);
        g.coarse_right_side[j * g.coarse_pitch + i] = restrict_to(transfer, i, j, up, mid, down);
    }
}

// `start` and `restricts`: see `pass_kinds.cuh`; nothing is measured.
template <int start, bool restricts> __device__ __forceinline__ void run_tile_pass(const level_pass<float>& g) {
    __shared__ float fields[2][tile_high + 2][level_tile_wide + 2];
    constexpr int margin = tile_margin(restricts);
    constexpr int own_x = level_tile_wide - 2 * margin, own_y = tile_high - 2 * margin;
    // Tiles at the ends take longest, and begin first.
    const int bands = gridDim.y, number = blockIdx.y, band = number == 0 ? 0 : number == 1 ? bands - 1 : number - 1;
    const int x0 = blockIdx.x * own_x, origin = (g.row_start & -2) + band * own_y;
    const int y0 = max(origin, g.row_start), y1 = min(origin + own_y, g.row_end);
    for (auto& field : fields) clear_rim<level_tile_threads>(field);
    // Rows of the run have the same couplings and weights. A row's inverse depends on the row above, too, and is not known at
    // the ends of what is stored: so some rows are left out at both.
    const int top = origin - margin, bottom = top + tile_high;
    const bool calm = top >= max(g.calm_start + 4, 1) && bottom <= min(g.calm_end - 2, g.ny - 1) && y1 - y0 == own_y;
    const int left = x0 - margin, right = left + level_tile_wide;
    if (calm && g.same_rows[1] && left >= g.same_columns[0] && right <= g.same_columns[1]) {
        run_tile<start, restricts, true, true>(g, fields, x0, origin, y0, y1);
    } else if (calm) {
        run_tile<start, restricts, true, false>(g, fields, x0, origin, y0, y1);
    } else {
        run_tile<start, restricts, false, false>(g, fields, x0, origin, y0, y1);
    }
}

// A kernel of passes over coarse levels by tiles; behind its name what it does.
#define CROSSWARP_LEVEL_TILE(name, ...)                                         \
    extern "C" __global__ void __launch_bounds__(cw::level_tile_threads, 4)     \
        name(const __grid_constant__ cw::level_pass<float> g) {                 \
        cw::run_tile_pass<__VA_ARGS__>(g);                                      \
    }

}  // namespace crosswarp
