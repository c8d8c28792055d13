// Several relaxations, and what comes before and after them, in one pass through memory.
//
// A block has a strip of columns, a thread two of them, and walks down its rows. When the first step has reached row y,
// the second is a row behind (two, where corners matter), and so on; after the last step comes the residual, and behind
// that the next level's right side. Own columns' values are in registers, and for the neighbours' sake in shared memory, of
// which each step needs two rows (or four): the one that neighbours read and the one that is written. So there is one
// barrier a row. Columns and rows that neighbouring blocks have are computed again at the margins of a strip; what comes
// out is the same as in passes over the whole level, one after the other (`wavefront.rs`).
//
// Most rows of a level without a mask are the same, and far from the sides (`calm`): there couplings and weights stay in
// registers, and nothing is asked for twice.
//
// Source of the idea: temporal blocking by streaming in one dimension and overlapped tiles in the other, as in Rawat et
// al., "Effective resource management for enhancing performance of 2D and 3D stencils on GPUs", GPGPU 2016.
#pragma once
#include "multigrid/neighbours.cuh"
#include "multigrid/pass_kinds.cuh"
#include "sum_layout.cuh"

namespace crosswarp {

__device__ inline void prefetch(const void* at) {
    asm volatile("prefetch.global.L2 [%0];" ::"l"(__cvta_generic_to_global(at)));
}

// Rows of a strip before each step, and of the residual: even columns and odd ones. Those of thread t are at t + 1.
template <class Equation, int steps> struct strip_rows {
    using F = typename Equation::number;
    static constexpr int lag = Equation::corners ? 2 : 1, ring = 2 * lag;
    F evens[steps + 1][ring][level_pass_threads + 2], odds[steps + 1][ring][level_pass_threads + 2];
    float even_residuals[4][level_pass_threads + 2], odd_residuals[4][level_pass_threads + 2];
};

// `at_edge`: whether the strip has columns at or beyond a side.
template <class Equation, int steps, class Work, bool at_edge>
__device__ __forceinline__ void run_strip(const level_pass<typename Equation::number>& g,
                                          strip_rows<Equation, steps>& rows) {
    using F = typename Equation::number;
    using pair = pair_of<F>;
    constexpr int lag = strip_rows<Equation, steps>::lag, ring = 2 * lag, threads = level_pass_threads;
    // Per step a row and a column on both sides are spent, and for the residual and the next level's right side another
    // one each.
    constexpr int margin = steps + 2, side = (margin + 1) / 2 * 2;
    auto& evens = rows.evens;
    auto& odds = rows.odds;
    auto& even_residuals = rows.even_residuals;
    auto& odd_residuals = rows.odd_residuals;
    const int t = threadIdx.x + 1;
    const bool wrap_x = g.ends[0] == end_wrap, wrap_y = g.ends[2] == end_wrap;
    const int strip = blockIdx.x * (2 * threads - 2 * side) - side, column = strip + 2 * int(threadIdx.x);
    auto exists = [&](int column) { return wrap_x || (column >= 0 && column < g.nx); };
    auto inside = [&](int column) { return wrap_x ? wrapped(column, g.nx) : min(max(column, 0), g.nx - 1); };
    const Equation first(g, inside(column), exists(column)), second(g, inside(column + 1), exists(column + 1));
    const bool own = int(threadIdx.x) >= side / 2 && int(threadIdx.x) < threads - side / 2 && column < g.nx;
    const bool own_second = own && column + 1 < g.nx;

    const int y0 = g.row_start + blockIdx.y * g.rows, y1 = min(y0 + g.rows, g.row_end);
    const int start = Work::start(g), measured = Work::measured(g);
    const bool restricts = Work::restricts(g);
    // Whole leaves, which may begin before the rows of a block do, and end before these.
    const int measure0 = max(y0 - (y0 + g.first) % leaf_rows, g.row_start);
    const int measure1 = y1 == g.row_end ? y1 : y1 - (y1 + g.first) % leaf_rows;
    pair_of<double> sum{-0.0, -0.0};
    auto measure = [&](int y, F one, F other) {
        if (y < measure0 || y >= measure1) return;
        sum.a += double(one) * double(one);
        sum.b += double(other) * double(other);
        if ((y + g.first + 1) % leaf_rows == 0 || y + 1 == g.ny) {
            double* to = g.sums + (y + g.first) / leaf_rows * g.sum_pitch + column;
            if (own) to[0] = sum.a;
            if (own_second) to[1] = sum.b;
            sum = {-0.0, -0.0};
        }
    };

    // The own columns before each step: the newest row, and those above it.
    pair mine[steps + 1][lag + 2];
#pragma unroll
    for (int s = 0; s <= steps; ++s) {
#pragma unroll
        for (int k = 0; k < lag + 2; ++k) mine[s][k] = {F(0), F(0)};
    }
    for (int i = threadIdx.x; i < (steps + 1) * ring * (threads + 2); i += threads) {
        (&evens[0][0][0])[i] = F(0);
        (&odds[0][0][0])[i] = F(0);
    }
    for (int i = threadIdx.x; i < 4 * (threads + 2); i += threads) {
        (&even_residuals[0][0])[i] = 0.f;
        (&odd_residuals[0][0])[i] = 0.f;
    }
    __syncthreads();

    // Both columns before step s around row y, with the columns beside them: three rows; without corners the middle one.
    auto around = [&](int s, int y, bool top, bool bottom, pair (&u)[3], F (&west)[3], F (&east)[3]) {
        u[1] = mine[s][lag];
        const pair below = mine[s][lag - 1], above = mine[s][lag + 1];
        u[0] = top ? (bottom ? u[1] : below) : above;
        u[2] = bottom ? (top ? u[1] : above) : below;
        const int at = y & (ring - 1);
        west[1] = odds[s][at][t - 1];
        east[1] = evens[s][at][t + 1];
        if constexpr (Equation::corners) {
            const int over = (top ? (bottom ? y : y + 1) : y - 1) & (ring - 1);
            const int under = (bottom ? (top ? y : y - 1) : y + 1) & (ring - 1);
            west[0] = odds[s][over][t - 1];
            east[0] = evens[s][over][t + 1];
            west[2] = odds[s][under][t - 1];
            east[2] = evens[s][under][t + 1];
        } else {
            west[0] = west[2] = east[0] = east[2] = F(0);
        }
    };
    auto keep = [&](int s, int row, const pair& value) {
        mine[s][0] = value;
        evens[s][row & (ring - 1)][t] = value.a;
        odds[s][row & (ring - 1)][t] = value.b;
    };
    auto keep_residuals = [&](int row, float one, float other) {
        even_residuals[row & 3][t] = one;
        odd_residuals[row & 3][t] = other;
    };
    // The three residuals at a fine row around a coarse column.
    auto residuals_at = [&](int row, float (&out)[3]) {
        out[0] = odd_residuals[row & 3][t - 1];
        out[1] = even_residuals[row & 3][t];
        out[2] = odd_residuals[row & 3][t];
    };

    const transfer_table transfer{g.transfer_index, g.transfer_rows, g.coarse_nx};
    const coarse_values coarse{g.correction, g.coarse_pitch, g.coarse_nx, g.coarse_ny, wrap_x, wrap_y};
    const int top = wrap_y ? y0 - margin : max(y0 - margin, 0);
    const int bottom = wrap_y ? y1 + margin : min(y1 + margin, g.ny);
    // A step more each, which rows there are a step less on both sides.
    auto reaches = [&](int s, int y) {
        return wrap_y ? y >= top + s && y < bottom - s : y >= max(y0 - margin + s, 0) && y < min(y1 + margin - s, g.ny);
    };

    // Where nothing but the values differs from row to row.
    constexpr int depth = (steps + 1) * lag;
    const bool calm_columns = Equation::has_calm_rows && !(at_edge && wrap_x) && !g.fixed &&
                              (restricts || start >= start_corrected);
    // A column that is a side, or beyond one, keeps its value or zero.
    auto hold = [&](const Equation& at, F here, stepped<F>& made) {
        if (!at.there) made = {F(0), F(0)};
        if (at.held) made = {F(0), here};
    };
    // Weights are those of two coarse rows; couplings those of two rows.
    const int calm_from = max(max(top + steps + 1, 4), g.calm_start + 5) + depth;
    const int calm_to = min(min(bottom, g.ny - 1), g.calm_end);
    typename Equation::calm_rows held;
    transfer_of_pair held_transfer;
    bool holds = false;
    // What columns beyond the sides read is not used.
    const int nearest = min(max(column, 0), int(g.pitch) - 2), coarse_column = min(max(column, 0) >> 1, g.coarse_nx - 1);
    // What is asked for a row ahead, and for which row that was.
    pair next_before{F(0), F(0)}, next_right_side{F(0), F(0)};
    pair_of<float> coarse_here{0.f, 0.f}, coarse_under{0.f, 0.f};
    int asked_for = -1, coarse_row = -1;

    for (int now = top; now < y1 + 2 + depth; ++now) {
#pragma unroll
        for (int s = 0; s <= steps; ++s) {
#pragma unroll
            for (int k = lag + 1; k > 0; --k) mine[s][k] = mine[s][k - 1];
        }
        if (calm_columns && now >= calm_from && now < calm_to) {
            if (!holds) {
                held.load(g, now, min(max(column, 0), g.nx - 1));
                held_transfer.load(transfer, now >> 1, coarse_column);
                holds = true;
            }
            const i64 at = now * g.pitch + nearest;
            auto load = [&](const F* from, int rows_ago) {
                if (!from) return pair{F(0), F(0)};
                const auto both = read(reinterpret_cast<const typename Equation::vector*>(from + (at - rows_ago * g.pitch)));
                return pair{both.x, both.y};
            };
            const bool reads = start == start_field || start == start_corrected;
            if (asked_for != now) {
                if (reads) next_before = load(g.before, 0);
                next_right_side = load(g.right_side, lag);
            }
            const pair before = next_before, newest_right_side = next_right_side;
            // So many rows ahead memory is asked for, to be in the L2 cache by then.
            constexpr int ahead = 8;
            if (const int row = now + ahead; row < bottom) {
                if (reads) prefetch(g.before + (at + ahead * g.pitch));
                if (g.right_side) prefetch(g.right_side + (at + ahead * g.pitch));
                if (start >= start_corrected && !(row & 1)) {
                    prefetch(g.correction + ((row >> 1) * g.coarse_pitch + coarse_column));
                }
            }
            // There is a row behind: the present one is not the last.
            if (reads) next_before = load(g.before, -1);
            next_right_side = load(g.right_side, lag - 1);
            asked_for = now + 1;
            if (start != start_zero) {
                pair value = reads ? before : pair{F(0), F(0)};
                if (start >= start_corrected) {
                    const int j = now >> 1;
                    auto coarse_at = [&](int j) -> pair_of<float> {
                        const float* from = g.correction + j * g.coarse_pitch + coarse_column;
                        return {read(from), coarse_column + 1 < g.coarse_nx ? read(from + 1) : 0.f};
                    };
                    if (coarse_row != j) {
                        coarse_here = coarse_row == j - 1 ? coarse_under : coarse_at(j);
                        coarse_under = coarse_at(min(j + 1, g.coarse_ny - 1));
                        coarse_row = j;
                    }
                    const pair base = value;
                    value = held.corrected(g, value, held_transfer.prolong(coarse_here, coarse_under, now));
                    if (at_edge && first.held) value.a = base.a;
                    if (at_edge && second.held) value.b = base.b;
                }
                if (at_edge) value = {first.there ? value.a : F(0), second.there ? value.b : F(0)};
                keep(0, now, value);
                if constexpr (steps == 0) {
                    if (g.after && own && now >= y0 && now < y1) *reinterpret_cast<pair*>(g.after + at) = value;
                }
            }
            pair u[3];
            F west[3], east[3];
            stepped<F> one, other;
            auto step = [&](int s, int row, double omega, const pair& b) {
                around(s, row, false, false, u, west, east);
                if (at_edge) {
                    if (first.mirrors_west) west[1] = u[1].b;
                    if (second.mirrors_east) east[1] = u[1].a;
                    // The second column is beyond the side then.
                    if (first.mirrors_east) u[1].b = west[1];
                }
                held.step(g, omega, b, u, west, east, one, other);
                if (at_edge) {
                    hold(first, u[1].a, one);
                    hold(second, u[1].b, other);
                }
            };
#pragma unroll
            for (int s = 1; s <= steps; ++s) {
                const int row = now - s * lag;
                const pair b = s == 1 ? newest_right_side : load(g.right_side, s * lag);
                pair value;
                if (s == 1 && start == start_zero) {
                    value = held.from_zero(g.omega[0], b);
                    if (at_edge && (first.held || !first.there)) value.a = F(0);
                    if (at_edge && (second.held || !second.there)) value.b = F(0);
                } else {
                    step(s - 1, row, g.omega[s - 1], b);
                    value = {one.after, other.after};
                    if (measured == s - 1) measure(row, one.residual, other.residual);
                }
                keep(s, row, value);
                if (s == steps && own && row >= y0 && row < y1) {
                    *reinterpret_cast<pair*>(g.after + (at - s * lag * g.pitch)) = value;
                }
            }
            if (restricts || measured == steps) {
                const int row = now - depth;
                step(steps, row, 0.0, steps == 0 ? newest_right_side : load(g.right_side, depth));
                if (measured == steps) measure(row, one.residual, other.residual);
                if (at_edge) {
                    keep_residuals(row, first.to_restrict(one.residual, row), second.to_restrict(other.residual, row));
                } else {
                    keep_residuals(row, held.to_restrict(g, one.residual), held.to_restrict(g, other.residual));
                }
                const int done = row - 1;
                if (restricts && (done & 1) && done > y0 && done <= y1 && own) {
                    float up[3], mid[3], down[3];
                    residuals_at(done - 2, up);
                    residuals_at(done - 1, mid);
                    residuals_at(done, down);
                    g.coarse_right_side[(done >> 1) * g.coarse_pitch + coarse_column] =
                        held_transfer.restrict_to(up, mid, down);
                }
            }
            __syncthreads();
            continue;
        }
        // Anywhere else: each column by itself.
        auto index_of = [&](int row) { return wrap_y ? wrapped(row, g.ny) : row; };
        auto there = [](const Equation& at, F value) { return at.there ? value : F(0); };
        auto store = [&](int y, const pair& value) {
            F* to = g.after + y * g.pitch + column;
            if (own) to[0] = value.a;
            if (own_second) to[1] = value.b;
        };
        if (start != start_zero && now < bottom) {
            const int y = index_of(now);
            auto begun = [&](const Equation& at) {
                F value = start == start_correction ? F(0) : read(g.before + (y * g.pitch + at.x));
                if (start >= start_corrected) value = at.corrected(value, prolong(transfer, coarse, at.x, y), y);
                return there(at, value);
            };
            const pair value{begun(first), begun(second)};
            keep(0, now, value);
            if (steps == 0 && g.after && now >= y0 && now < y1) store(y, value);
        }
        // Step s + 1 of both columns of row y.
        auto both = [&](int s, int row, int y, double omega, stepped<F>& one, stepped<F>& other) {
            pair u[3];
            F west[3], east[3];
            around(s, row, !wrap_y && y == 0, !wrap_y && y == g.ny - 1, u, west, east);
            const F before = first.mirrors_west ? (g.nx > 1 ? u[1].b : u[1].a) : west[1];
            const F between = first.mirrors_east ? (g.nx > 1 ? west[1] : u[1].a) : u[1].b;
            const F behind = second.mirrors_east ? u[1].a : east[1];
            one = first.step({west[0], u[0].a, u[0].b, before, u[1].a, between, west[2], u[2].a, u[2].b}, y, omega);
            other = second.step({u[0].a, u[0].b, east[0], u[1].a, u[1].b, behind, u[2].a, u[2].b, east[2]}, y, omega);
        };
        stepped<F> one, other;
#pragma unroll
        for (int s = 1; s <= steps; ++s) {
            const int row = now - s * lag;
            if (!reaches(s, row)) continue;
            const int y = index_of(row);
            pair value;
            if (s == 1 && start == start_zero) {
                value = {first.from_zero(y, g.omega[0]), second.from_zero(y, g.omega[0])};
            } else {
                both(s - 1, row, y, g.omega[s - 1], one, other);
                value = {one.after, other.after};
                if (measured == s - 1) measure(row, one.residual, other.residual);
            }
            value = {there(first, value.a), there(second, value.b)};
            keep(s, row, value);
            if (s == steps && row >= y0 && row < y1) store(y, value);
        }
        // The residual, a row after the last step.
        const int row = now - depth;
        if ((restricts || measured == steps) && reaches(steps + 1, row)) {
            const int y = index_of(row);
            both(steps, row, y, 0.0, one, other);
            if (measured == steps) measure(row, one.residual, other.residual);
            keep_residuals(row, first.there ? first.to_restrict(one.residual, y) : 0.f,
                           second.there ? second.to_restrict(other.residual, y) : 0.f);
        }
        // The next level's right side, where the residual's rows were complete a row ago.
        const int done = row - 1, j = done >> 1;
        const bool between = 2 * j + 1 < g.ny;
        if (restricts && 2 * j >= y0 && 2 * j < y1 && (done & 1) == int(between) && own) {
            float up[3], mid[3], down[3];
            residuals_at(2 * j, mid);
            residuals_at(j > 0 || (wrap_y && !(g.ny & 1)) ? 2 * j - 1 : 2 * j, up);
            residuals_at(between ? 2 * j + 1 : 2 * j, down);
            const int i = column >> 1;
            g.coarse_right_side[j * g.coarse_pitch + i] = restrict_to(transfer, i, j, up, mid, down);
        }
        __syncthreads();
    }
}

template <class Equation, int steps, class Work = as_launched>
__device__ __forceinline__ void run_pass(const level_pass<typename Equation::number>& g) {
    __shared__ strip_rows<Equation, steps> rows;
    // The last strip may be narrower than the margins of the one before it.
    if (blockIdx.x == 0 || blockIdx.x + 2 >= gridDim.x) {
        run_strip<Equation, steps, Work, true>(g, rows);
    } else {
        run_strip<Equation, steps, Work, false>(g, rows);
    }
}

// A kernel of passes over levels of `F`; behind it the arguments of `run_pass`.
#define CROSSWARP_LEVEL_PASS(name, F, ...)                                  \
    extern "C" __global__ void __launch_bounds__(cw::level_pass_threads, 4) \
        name(const __grid_constant__ cw::level_pass<F> g) {                 \
        cw::run_pass<__VA_ARGS__>(g);                                       \
    }

}  // namespace crosswarp
