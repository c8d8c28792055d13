// All levels that are small, in one block: there passes would wait for memory row by row.
//
// Operations as in `cycle.rs`, in the same order. Fields and right sides are in shared memory; only the first level's right
// side comes from outside, and its field goes out.
#pragma once
#include "multigrid/nine_point.cuh"

namespace crosswarp {

struct small_level {
    const level_pass<float>& g;
    float *u, *right_side;

    __device__ int points() const { return g.nx * g.ny; }
    __device__ bool wrap_x() const { return g.ends[0] == end_wrap; }
    __device__ bool wrap_y() const { return g.ends[2] == end_wrap; }

    // The rows around row y; at an end of the grid the one on the other side, which couplings of zero make nothing of.
    __device__ int above(int y) const { return y > 0 ? y - 1 : wrap_y() ? g.ny - 1 : g.ny > 1 ? y + 1 : y; }
    __device__ int below(int y) const { return y < g.ny - 1 ? y + 1 : wrap_y() ? 0 : g.ny > 1 ? y - 1 : y; }
    __device__ float at(const float* field, int x, int y) const {
        if (wrap_x()) x = x < 0 ? g.nx - 1 : x == g.nx ? 0 : x;
        return x < 0 || x >= g.nx ? 0.f : field[y * g.nx + x];
    }
    __device__ neighbours<float> around(const float* field, int x, int y) const {
        const int up = above(y), down = below(y);
        return {at(field, x - 1, up), at(field, x, up), at(field, x + 1, up),
                at(field, x - 1, y), at(field, x, y), at(field, x + 1, y),
                at(field, x - 1, down), at(field, x, down), at(field, x + 1, down)};
    }
    template <class Each> __device__ void for_each(Each each) const {
        for (int i = threadIdx.x; i < points(); i += blockDim.x) each(i, i % g.nx, i / g.nx);
        __syncthreads();
    }
    // One relaxation.
    __device__ void relax(float* scratch, double omega) const {
        for_each([&](int i, int x, int y) {
            const nine_point point(g, x, true);
            const float found = point.residual(around(u, x, y), y, right_side[i]);
            scratch[i] = u[i] + (float(omega) * point.inverse(y)) * found;
        });
        for_each([&](int i, int, int) { u[i] = scratch[i]; });
    }
    __device__ void relax_from_zero(double omega) const {
        for_each([&](int i, int x, int y) {
            u[i] = (float(omega) * nine_point(g, x, true).inverse(y)) * right_side[i];
        });
    }
    // Corrects by the next level, or takes its correction alone.
    __device__ void correct(const small_level& next, bool alone) const {
        const transfer_table transfer{g.transfer_index, g.transfer_rows, g.coarse_nx};
        const coarse_values coarse{next.u, g.coarse_nx, g.coarse_nx, g.coarse_ny, wrap_x(), wrap_y()};
        for_each([&](int i, int x, int y) {
            const float by = prolong_from<false>(transfer, coarse, x, y);
            u[i] = nine_point(g, x, true).corrected(alone ? 0.f : u[i], by, y);
        });
    }
    // The next level's right side from `residual`.
    __device__ void restrict_residual(const small_level& next, const float* residual) const {
        const transfer_table transfer{g.transfer_index, g.transfer_rows, g.coarse_nx};
        next.for_each([&](int k, int i, int j) {
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
            next.right_side[k] = restrict_to(transfer, i, j, above, here, under);
        });
    }
    __device__ void residual(float* out) const {
        for_each([&](int i, int x, int y) {
            out[i] = nine_point(g, x, true).residual(around(u, x, y), y, right_side[i]);
        });
    }
    // Solves the coarsest level: L Lᵀ u = b, the terms of each sum in the order of `dense.rs`. A warp, of which a lane has
    // two points.
    __device__ void solve() const {
        if (threadIdx.x < 32) {
            const int n = points(), lane = threadIdx.x;
            double sum[2];
            for (int k = 0; k < 2; ++k) {
                const int i = lane + 32 * k;
                sum[k] = i < n && g.active[i] ? double(right_side[i]) : 0.0;
            }
            auto step = [&](int j, bool forward) {
                const double solved = __shfl_sync(0xffffffffu, j < 32 ? sum[0] : sum[1], j & 31) * read(g.factor + (j * n + j));
                for (int k = 0; k < 2; ++k) {
                    const int i = lane + 32 * k;
                    if (i == j) {
                        sum[k] = solved;
                    } else if (i < n && (forward ? i > j : i < j)) {
                        sum[k] -= read(g.factor + (forward ? i * n + j : j * n + i)) * solved;
                    }
                }
            };
            for (int j = 0; j < n; ++j) step(j, true);
            for (int j = n - 1; j >= 0; --j) step(j, false);
            for (int k = 0; k < 2; ++k) {
                if (lane + 32 * k < n) u[lane + 32 * k] = float(sum[k]);
            }
        }
        __syncthreads();
    }
};

// One cycle for the first of `count` levels from zero, or with `full` a solve from the coarsest one up.
__device__ inline void cycle_small(const level_pass<float>* levels, int count, int full, relaxations omegas) {
    extern __shared__ float memory[];
    // The scratch field, then each level's field and right side.
    auto level = [&](int at) -> small_level {
        float* from = memory + levels[0].nx * levels[0].ny;
        for (int k = 0; k < at; ++k) from += 2 * levels[k].nx * levels[k].ny;
        return {levels[at], from, from + levels[at].nx * levels[at].ny};
    };
    const small_level first = level(0);
    first.for_each([&](int i, int x, int y) { first.right_side[i] = first.g.right_side[y * first.g.pitch + x]; });
    const int last = count - 1;
    auto cycle = [&](int from, bool alone) {
        for (int at = from; at < last; ++at) {
            const small_level here = level(at), next = level(at + 1);
            int done = 0;
            if (at == from && alone) {
                here.correct(next, true);
            } else {
                here.relax_from_zero(omegas.pre[0]);
                done = 1;
            }
            for (; done < omegas.pre_count; ++done) here.relax(memory, omegas.pre[done]);
            here.residual(memory);
            here.restrict_residual(next, memory);
        }
        level(last).solve();
        for (int at = last - 1; at >= from; --at) {
            const small_level here = level(at);
            here.correct(level(at + 1), false);
            for (int k = 0; k < omegas.post_count; ++k) here.relax(memory, omegas.post[k]);
        }
    };
    if (full) {
        for (int at = 0; at < last; ++at) level(at).restrict_residual(level(at + 1), level(at).right_side);
        level(last).solve();
        for (int at = last - 1; at >= 0; --at) cycle(at, true);
    } else {
        cycle(0, false);
    }
    first.for_each([&](int i, int x, int y) { first.g.after[y * first.g.pitch + x] = first.u[i]; });
}

}  // namespace crosswarp
