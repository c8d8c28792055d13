// What is done on levels of boxes beside passes.
#include "multigrid/box_pass.cuh"

namespace crosswarp {

// The next level's right side from this level's. A thread a coarse point.
__device__ inline void restrict_right_side(const box_pass& g) {
    const int chunks = (g.coarse_size[0] + box_threads - 1) / box_threads, row = blockIdx.x / chunks;
    const int i = blockIdx.x % chunks * box_threads + threadIdx.x;
    const int j = row % g.coarse_size[1], k = g.coarse_start + row / g.coarse_size[1];
    if (i >= g.coarse_size[0]) return;
    // The point `at` of an axis; what is beyond an end that does not wrap around is asked for along x only.
    auto place = [&](int axis, int at) { return g.wraps[axis] ? wrapped(at, g.size[axis]) : at; };
    double columns[2], rows[3], planes[3];
    weights_beside(g, i, columns);
    weights_around(g, 1, j, rows);
    weights_around(g, 2, k, planes);
    const double value = box_restrict(columns, rows, planes, [&](int x, int y, int z) {
        const int column = place(0, 2 * i + x);
        if (column < 0 || column >= g.size[0]) return 0.0;
        const int row = place(1, 2 * j + y), plane = place(2, 2 * k + z);
        return g.right_side[plane * g.plane + row * (g.size[0] + 2) + column + 1];
    });
    g.coarse_right_side[k * g.coarse_plane + j * (g.coarse_size[0] + 2) + i + 1] = value;
}

// Squares of the field times the diagonal, summed over the rows of each leaf, by columns: see `add_field`. A thread a
// column of a leaf.
__device__ inline void square(const box_pass& g) {
    const int chunks = (g.size[0] + box_threads - 1) / box_threads, bands = (g.size[1] + leaf_rows - 1) / leaf_rows;
    const int x = blockIdx.x % chunks * box_threads + threadIdx.x, of_all = blockIdx.x / chunks;
    const int band = of_all % bands, z = g.plane_start + of_all / bands;
    if (x >= g.size[0]) return;
    const int end = min((band + 1) * leaf_rows, g.size[1]);
    double sum = -0.0;
    for (int y = band * leaf_rows; y < end; ++y) {
        const double value = g.diagonal * g.before[z * g.plane + y * (g.size[0] + 2) + x + 1];
        sum += value * value;
    }
    g.sums[of_all * g.sum_pitch + x] = sum;
}

// Solves the coarsest level: L Lᵀ u = b, the terms of each sum in the order of `dense.rs`. A warp, of which a lane has a
// few points. The factor has Lᵀ above its diagonal, so that lanes read side by side.
__device__ inline void solve_coarsest(const box_pass& g) {
    constexpr int per = box_coarsest_of_lane;
    const int nx = g.size[0], ny = g.size[1], n = nx * ny * g.size[2], lane = threadIdx.x;
    auto offset = [&](int i) { return i / (nx * ny) * g.plane + i / nx % ny * (nx + 2) + i % nx + 1; };
    double sum[per];
#pragma unroll
    for (int k = 0; k < per; ++k) {
        const int i = lane + 32 * k;
        sum[k] = i < n && g.active[i] ? g.right_side[offset(i)] : 0.0;
    }
    static_assert(per == 4, "who has point j");
    // What steps load does not depend on the steps before: it is asked for so many steps earlier, and does not wait.
    constexpr int ahead = 6;
    struct numbers {
        double inverse, column[per];
    };
    auto pass = [&](bool forward) {
        auto load = [&](int t, numbers& to) {
            if (t >= n) return;
            const int j = forward ? t : n - 1 - t;
            const double* row = g.factor + j * n;
            to.inverse = read(row + j);
#pragma unroll
            for (int k = 0; k < per; ++k) to.column[k] = read(row + min(lane + 32 * k, n - 1));
        };
        numbers now[ahead], next[ahead] = {};
#pragma unroll
        for (int a = 0; a < ahead; ++a) load(a, next[a]);
#pragma unroll 1
        for (int begin = 0; begin < n; begin += ahead) {
#pragma unroll
            for (int a = 0; a < ahead; ++a) {
                now[a] = next[a];
                load(begin + ahead + a, next[a]);
            }
#pragma unroll
            for (int a = 0; a < ahead; ++a) {
                const int j = forward ? begin + a : n - 1 - begin - a;
                const double first = j & 32 ? sum[1] : sum[0], second = j & 32 ? sum[3] : sum[2];
                const double solved = __shfl_sync(0xffffffffu, j & 64 ? second : first, j & 31) * now[a].inverse;
#pragma unroll
                for (int k = 0; k < per; ++k) {
                    const int i = lane + 32 * k;
                    const double less = sum[k] - now[a].column[k] * solved;
                    const bool takes = forward ? i > j : i < j;
                    if (begin + a < n) sum[k] = i == j ? solved : takes ? less : sum[k];
                }
            }
        }
    };
    pass(true);
    pass(false);
#pragma unroll
    for (int k = 0; k < per; ++k) {
        if (lane + 32 * k < n) g.after[offset(lane + 32 * k)] = sum[k];
    }
}

}  // namespace crosswarp

#define KERNEL(name, threads)                                      \
    extern "C" __global__ void __launch_bounds__(threads)          \
        box_##name(const __grid_constant__ cw::box_pass g) {       \
        cw::name(g);                                               \
    }

KERNEL(restrict_right_side, cw::box_threads)
KERNEL(square, cw::box_threads)
KERNEL(solve_coarsest, 32)
