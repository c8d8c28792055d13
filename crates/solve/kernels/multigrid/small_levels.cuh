// All levels that are small, at once: there passes would wait for memory row by row.
//
// Operations as in `cycle.rs`, in the same order. The smallest levels are one block's, with fields and right sides in shared
// memory; only their first level's right side comes from outside, and its field goes out. Before these may be levels of a
// grid of blocks, in global memory.
#pragma once
#include "grid.cuh"
#include "multigrid/nine_point.cuh"

namespace crosswarp {

// Threads that share out the points of a level.
struct threads_of_block {
    __device__ int rank() const { return threadIdx.x; }
    __device__ int size() const { return blockDim.x; }
    __device__ void sync() const { __syncthreads(); }
};
struct threads_of_grid {
    const grid& blocks;
    __device__ int rank() const { return blockIdx.x * blockDim.x + threadIdx.x; }
    __device__ int size() const { return gridDim.x * blockDim.x; }
    __device__ void sync() const { blocks.sync(); }
};

template <class Threads> struct small_level {
    // A copy, so that what is in it is read once.
    const level_pass<float> g;
    // The field, what it is relaxed to by turns with it, and the right side.
    float *u, *scratch, *right_side;
    int pitch;
    Threads threads;

    __device__ bool wrap_x() const { return g.ends[0] == end_wrap; }
    __device__ bool wrap_y() const { return g.ends[2] == end_wrap; }

    // The rows around row y; at an end of the grid the one on the other side, which couplings of zero make nothing of.
    __device__ int above(int y) const { return y > 0 ? y - 1 : wrap_y() ? g.ny - 1 : g.ny > 1 ? y + 1 : y; }
    __device__ int below(int y) const { return y < g.ny - 1 ? y + 1 : wrap_y() ? 0 : g.ny > 1 ? y - 1 : y; }
    __device__ float at(const float* field, int x, int y) const {
        if (wrap_x()) x = x < 0 ? g.nx - 1 : x == g.nx ? 0 : x;
        return x < 0 || x >= g.nx ? 0.f : field[y * pitch + x];
    }
    __device__ neighbours<float> around(const float* field, int x, int y) const {
        const int up = above(y), down = below(y);
        return {at(field, x - 1, up), at(field, x, up), at(field, x + 1, up),
                at(field, x - 1, y), at(field, x, y), at(field, x + 1, y),
                at(field, x - 1, down), at(field, x, down), at(field, x + 1, down)};
    }
    // Calls `store(x, y, value(x, y))` for every point. What `value` reads no `store` of the same call may write, but at
    // the point itself.
    template <class Value, class Store> __device__ void for_each(Value value, Store store) const {
        const int points = g.nx * g.ny, size = threads.size(), across = size % g.nx, down = size / g.nx;
        for (int i = threads.rank(), x = i % g.nx, y = i / g.nx; i < points; i += size) {
            store(x, y, value(x, y));
            x += across;
            y += down;
            if (x >= g.nx) {
                x -= g.nx;
                ++y;
            }
        }
        threads.sync();
    }
    template <class Value> __device__ void fill(float* to, Value value) const {
        for_each(value, [&](int x, int y, float made) { to[y * pitch + x] = made; });
    }
    // The field is `scratch` after as many relaxations as bring it to `u` in the end.
    __device__ float* before(int relaxations) const { return relaxations & 1 ? scratch : u; }
    __device__ float* other(const float* field) const { return field == u ? scratch : u; }

    __device__ float* relax(const float* field, double omega) const {
        float* to = other(field);
        fill(to, [&](int x, int y) {
            const nine_point point(g, x, true);
            const float found = point.stored_residual(around(field, x, y), y, right_side[y * pitch + x]);
            return field[y * pitch + x] + (float(omega) * point.stored_inverse(y)) * found;
        });
        return to;
    }
    __device__ float from_zero(int x, int y, double omega, float b) const {
        return (float(omega) * nine_point(g, x, true).stored_inverse(y)) * b;
    }
    __device__ void relax_from_zero(float* to, double omega) const {
        fill(to, [&](int x, int y) { return from_zero(x, y, omega, right_side[y * pitch + x]); });
    }
    // `to` is `field` corrected by the next level, or its correction alone.
    template <class Next> __device__ void correct(float* to, const float* field, const Next& next) const {
        const transfer_table transfer{g.transfer_index, g.transfer_rows, g.coarse_nx};
        const coarse_values coarse{next.u, next.pitch, g.coarse_nx, g.coarse_ny, wrap_x(), wrap_y()};
        fill(to, [&](int x, int y) {
            const float by = prolong_from<false>(transfer, coarse, x, y);
            return nine_point(g, x, true).corrected(field ? field[y * pitch + x] : 0.f, by, y);
        });
    }
    // The next level's right side from `residual`, and if `begun` its field after a relaxation from zero.
    template <class Next>
    __device__ void restrict_residual(const Next& next, const float* residual, float* begun, double omega) const {
        const transfer_table transfer{g.transfer_index, g.transfer_rows, g.coarse_nx};
        next.for_each(
            [&](int i, int j) {
                // Where there is no row between, its weights are zero.
                const int centre = 2 * j, down = centre + 1 < g.ny ? centre + 1 : centre;
                const int up = j > 0 ? centre - 1 : wrap_y() && !(g.ny & 1) ? g.ny - 1 : centre;
                auto row = [&](int y, float (&out)[3]) {
                    for (int d = 0; d < 3; ++d) out[d] = at(residual, 2 * i + d - 1, y);
                };
                float above[3], here[3], under[3];
                row(up, above);
                row(centre, here);
                row(down, under);
                return restrict_to(transfer, i, j, above, here, under);
            },
            [&](int i, int j, float made) {
                next.right_side[j * next.pitch + i] = made;
                if (begun) begun[j * next.pitch + i] = next.from_zero(i, j, omega, made);
            });
    }
    __device__ void residual(float* to, const float* field) const {
        fill(to, [&](int x, int y) {
            return nine_point(g, x, true).stored_residual(around(field, x, y), y, right_side[y * pitch + x]);
        });
    }
    // Solves the coarsest level with its `factor`: L Lᵀ u = b, the terms of each sum in the order of `dense.rs`. A warp, of
    // which a lane has two points.
    __device__ void solve(const double* factor) const {
        if (threadIdx.x < 32) {
            const int n = g.nx * g.ny, lane = threadIdx.x;
            double sum[2];
            for (int k = 0; k < 2; ++k) {
                const int i = lane + 32 * k;
                sum[k] = i < n && g.active[i] ? double(right_side[i]) : 0.0;
            }
            // What is loaded does not depend on the step before, so some steps' loads are made at once.
            auto step = [&](int j, bool forward) {
                const double solved = __shfl_sync(0xffffffffu, j < 32 ? sum[0] : sum[1], j & 31) * factor[j * n + j];
#pragma unroll
                for (int k = 0; k < 2; ++k) {
                    const int i = lane + 32 * k, stored = min(i, n - 1);
                    const double less = sum[k] - factor[forward ? stored * n + j : j * n + stored] * solved;
                    sum[k] = i == j ? solved : (forward ? i > j : i < j) ? less : sum[k];
                }
            };
#pragma unroll 4
            for (int j = 0; j < n; ++j) step(j, true);
#pragma unroll 4
            for (int j = n - 1; j >= 0; --j) step(j, false);
            for (int k = 0; k < 2; ++k) {
                if (lane + 32 * k < n) u[lane + 32 * k] = float(sum[k]);
            }
        }
        __syncthreads();
    }
};

// From level `from` of some down to before level `last`, then `below()`, which sets the field of that one, and up again: a
// cycle from zero, or from the correction `alone`. If `begins_next` levels have arrays of their own, so that what is
// restricted to the next one is relaxed there at once.
template <class Level, class Below>
__device__ void cycle_levels(Level level, int from, int last, bool alone, bool begins_next, const relaxations& omegas,
                             Below below) {
    const int pre = omegas.pre_count, post = omegas.post_count;
    for (int at = from; at < last; ++at) {
        const auto here = level(at), next = level(at + 1);
        int done = at == from && alone ? 0 : 1;
        const float* field = here.before(pre - done);
        if (at == from && alone) {
            here.correct(here.before(pre), nullptr, next);
        } else if (at == from || !begins_next) {
            here.relax_from_zero(here.before(pre - 1), omegas.pre[0]);
        }
        for (; done < pre; ++done) field = here.relax(field, omegas.pre[done]);
        here.residual(here.scratch, here.u);
        here.restrict_residual(next, here.scratch, begins_next && at + 1 < last ? next.before(pre - 1) : nullptr,
                               omegas.pre[0]);
    }
    below();
    for (int at = last - 1; at >= from; --at) {
        const auto here = level(at);
        const float* field = here.before(post);
        here.correct(here.before(post), here.u, level(at + 1));
        for (int k = 0; k < post; ++k) field = here.relax(field, omegas.post[k]);
    }
}

// One cycle for the first of `count` levels from zero, or with `full` a solve from the coarsest one up: in a block, with
// `memory` for a scratch field, then each level's field and right side.
__device__ inline void cycle_in_block(const level_pass<float>* levels, int count, bool full, const relaxations& omegas,
                                      const double* factor, float* memory) {
    auto level = [&](int at) -> small_level<threads_of_block> {
        float* from = memory + levels[0].nx * levels[0].ny;
        for (int k = 0; k < at; ++k) from += 2 * levels[k].nx * levels[k].ny;
        return {levels[at], from, memory, from + levels[at].nx * levels[at].ny, levels[at].nx, {}};
    };
    const auto first = level(0);
    first.fill(first.right_side, [&](int x, int y) { return first.g.right_side[y * first.g.pitch + x]; });
    const int last = count - 1;
    auto solve = [&] { level(last).solve(factor); };
    if (full) {
        for (int at = 0; at < last; ++at) level(at).restrict_residual(level(at + 1), level(at).right_side, nullptr, 0.0);
        solve();
    }
    for (int at = full ? last - 1 : 0; at >= 0; --at) cycle_levels(level, at, last, full, false, omegas, solve);
    first.for_each([&](int x, int y) { return first.u[y * first.pitch + x]; },
                   [&](int x, int y, float value) { first.g.after[y * first.g.pitch + x] = value; });
}

// The same, the first `of_grid` levels with the whole grid.
__device__ inline void cycle_small(const level_pass<float>* levels, int count, int of_grid, bool full,
                                   const relaxations& omegas, grid_state* state) {
    // Shared memory has the coarsest level's factor, then what is known of levels, then what a block needs for its own:
    // reading the first two anywhere else would take longer than the work of the smallest levels.
    extern __shared__ double shared[];
    const int points = levels[count - 1].nx * levels[count - 1].ny, of_factor = blockIdx.x == 0 ? points * points : 0;
    for (int i = threadIdx.x; i < of_factor; i += blockDim.x) shared[i] = levels[count - 1].factor[i];
    static_assert(sizeof(level_pass<float>) % sizeof(double) == 0, "levels behind the factor");
    double* const known = shared + points * points;
    const int of_levels = count * int(sizeof(level_pass<float>) / sizeof(double));
    for (int i = threadIdx.x; i < of_levels; i += blockDim.x) known[i] = reinterpret_cast<const double*>(levels)[i];
    levels = reinterpret_cast<const level_pass<float>*>(known);
    float* const memory = reinterpret_cast<float*>(known + of_levels);
    __syncthreads();
    auto in_block = [&](bool full) {
        cycle_in_block(levels + of_grid, count - of_grid, full, omegas, shared, memory);
    };
    if (of_grid == 0) return in_block(full);
    const grid blocks(state);
    auto level = [&](int at) -> small_level<threads_of_grid> {
        const level_pass<float>& g = levels[at];
        return {g, g.after, const_cast<float*>(g.before), const_cast<float*>(g.right_side), int(g.pitch), {blocks}};
    };
    auto below = [&](bool full) {
        if (blockIdx.x == 0) in_block(full);
        blocks.sync();
    };
    if (full) {
        for (int at = 0; at < of_grid; ++at) level(at).restrict_residual(level(at + 1), level(at).right_side, nullptr, 0.0);
        below(true);
    }
    for (int at = full ? of_grid - 1 : 0; at >= 0; --at) {
        cycle_levels(level, at, of_grid, full, true, omegas, [&] { below(false); });
    }
}

}  // namespace crosswarp
