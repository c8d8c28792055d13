// What is done on levels of boxes beside passes.
#include "multigrid/box_pass.cuh"

namespace crosswarp {

// Leaves of a plane of the finest level, by rows.
__device__ __forceinline__ int bands_of_plane(const box_pass& g) { return (g.size[1] + leaf_rows - 1) / leaf_rows; }

// Squares of `field` times `factor` at column x of plane z, summed over the rows of leaf `band`: see `add_field`.
__device__ __forceinline__ void square_leaf(const box_pass& g, const double* field, double factor, int z, int band, int x) {
    const int end = min((band + 1) * leaf_rows, g.size[1]);
    double sum = -0.0;
    for (int y = band * leaf_rows; y < end; ++y) {
        const double value = factor * field[z * g.plane + y * (g.size[0] + 2) + x + 1];
        sum += value * value;
    }
    g.sums[((i64)(z - g.plane_start) * bands_of_plane(g) + band) * g.sum_pitch + x] = sum;
}

// The next level's right side from this level's, `g.planes` coarse planes a block. A lane has two columns, an even one and the
// odd one behind it, and the coarse points of some rows; it walks through the planes, and the odd column before its own is the
// other one of the lane before, so that the first lane has no points. Operations as in `box_restrict`, in the same order. If
// step 0 is measured, this level's right side is its residual: its squares are summed, of a plane that has just been read.
__device__ inline void restrict_right_side(const box_pass& g) {
    constexpr int lanes = 32, own = box_restricting_columns, rows = box_restricting_rows, fine = 2 * rows + 1;
    static_assert(own == lanes - 1, "the first lane helps the second");
    constexpr int wide = 2 * own, leaves = 2 * (box_threads / lanes) * rows / leaf_rows;
    static_assert(2 * (box_threads / lanes) * rows % leaf_rows == 0 && leaves * wide <= box_threads, "a thread a column of a leaf");
    const int across = (g.coarse_size[0] + own - 1) / own, lane = threadIdx.x % lanes;
    const int i = int(blockIdx.x) % across * own + lane - 1;
    const int j0 = (int(blockIdx.x) / across * (box_threads / lanes) + int(threadIdx.x) / lanes) * rows;
    const int k0 = g.coarse_start + int(blockIdx.y) * g.planes, k1 = min(k0 + g.planes, g.coarse_end);
    const int leaf = int(blockIdx.x) / across * leaves + int(threadIdx.x) / wide;
    const int of_leaf = int(blockIdx.x) % across * wide + int(threadIdx.x) % wide;
    const bool squares = g.measured == 0 && int(threadIdx.x) < leaves * wide && leaf < bands_of_plane(g) && of_leaf < g.size[0];
    auto square = [&](int z) {
        if (squares && z >= g.plane_start && z < g.plane_end) square_leaf(g, g.right_side, 1.0, z, leaf, of_leaf);
    };
    // Point `at` of an axis; of one that does not wrap around, one that is there, of which nothing is made.
    auto place = [&](int axis, int at) {
        return g.wraps[axis] ? wrapped(at, g.size[axis]) : min(max(at, 0), g.size[axis] - 1);
    };
    const int even = place(0, 2 * i), odd = place(0, 2 * i + 1);
    double columns[2] = {}, of_rows[rows][3];
    const bool writes = lane > 0 && i < g.coarse_size[0];
    if (writes) weights_beside(g, i, columns);
#pragma unroll
    for (int r = 0; r < rows; ++r) weights_around(g, 1, min(j0 + r, g.coarse_size[1] - 1), of_rows[r]);
    i64 at[fine];
#pragma unroll
    for (int r = 0; r < fine; ++r) at[r] = (i64)place(1, 2 * j0 - 1 + r) * (g.size[0] + 2) + 1;
    double sums[rows][2] = {}, values[fine][2];
    auto load = [&](int z) {
        const double* plane = g.right_side + place(2, z) * g.plane;
#pragma unroll
        for (int r = 0; r < fine; ++r) {
            values[r][0] = read(plane + at[r] + even);
            values[r][1] = read(plane + at[r] + odd);
        }
    };
    auto add = [&](double weight_of_plane) {
        if (weight_of_plane == 0.0) return;
#pragma unroll
        for (int r = 0; r < rows; ++r) {
#pragma unroll
            for (int y = 0; y < 3; ++y) {
                const double weight = of_rows[r][y] * weight_of_plane;
                if (weight == 0.0) continue;
                sums[r][0] += weight * values[2 * r + y][0];
                sums[r][1] += weight * values[2 * r + y][1];
            }
        }
    };
    double planes[3];
    weights_around(g, 2, k0, planes);
    if (planes[0] != 0.0) {
        load(2 * k0 - 1);
        add(planes[0]);
    }
    if (k0 == g.coarse_start) square(2 * k0 - 1);
#pragma unroll 1
    for (int k = k0; k < k1; ++k) {
        load(2 * k);
        add(planes[1]);
        square(2 * k);
        if (planes[2] != 0.0) {
            load(2 * k + 1);
            add(planes[2]);
        }
        square(2 * k + 1);
        double* to = g.coarse_right_side + (k * g.coarse_plane + (i64)j0 * (g.coarse_size[0] + 2) + i + 1);
#pragma unroll
        for (int r = 0; r < rows; ++r) {
            const double before = __shfl_up_sync(0xffffffffu, sums[r][1], 1);
            const double value = sums[r][0] + (columns[0] * before + columns[1] * sums[r][1]);
            if (writes && j0 + r < g.coarse_size[1]) to[r * (g.coarse_size[0] + 2)] = value;
            sums[r][0] = sums[r][1] = 0.0;
        }
        if (k + 1 == k1) break;
        // The plane behind this coarse one is that before the next.
        weights_around(g, 2, k + 1, planes);
        add(planes[0]);
    }
}

// Squares of the field times the diagonal. A thread a column of a leaf.
__device__ inline void square(const box_pass& g) {
    const int chunks = (g.size[0] + box_threads - 1) / box_threads, bands = bands_of_plane(g);
    const int x = blockIdx.x % chunks * box_threads + threadIdx.x, of_all = blockIdx.x / chunks;
    if (x < g.size[0]) square_leaf(g, g.before, g.diagonal, g.plane_start + of_all / bands, of_all % bands, x);
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
