// What is done on levels beside passes.
#include "superaccumulator.cuh"
#include "leaf.cuh"
#include "multigrid/transfer.cuh"

namespace crosswarp {

// The next level's right side from this level's. A thread a coarse point.
__device__ inline void restrict_right_side(const level_pass<float>& g) {
    const bool wrap_x = g.ends[0] == end_wrap, wrap_y = g.ends[2] == end_wrap;
    // The coarse rows of which the fine ones are this PE's.
    const int i = blockIdx.x * blockDim.x + threadIdx.x, j = (g.row_start + 1) / 2 + blockIdx.y;
    if (i >= g.coarse_nx) return;
    auto value = [&](int x, int y) {
        if (wrap_x) x = x < 0 ? g.nx - 1 : x == g.nx ? 0 : x;
        if (wrap_y) y = y < 0 ? g.ny - 1 : y == g.ny ? 0 : y;
        return x < 0 || x >= g.nx ? 0.f : g.right_side[y * g.pitch + x];
    };
    // Where there is no row between, its weights are zero.
    const int centre = 2 * j, up = j > 0 || (wrap_y && !(g.ny & 1)) ? centre - 1 : centre;
    const int down = centre + 1 < g.ny ? centre + 1 : centre, x = 2 * i;
    const transfer_table transfer{g.transfer_index, g.transfer_rows, g.coarse_nx};
    g.coarse_right_side[j * g.coarse_pitch + i] =
        restrict_to(transfer, i, j, {value(x - 1, up), value(x, up), value(x + 1, up)},
                    {value(x - 1, centre), value(x, centre), value(x + 1, centre)},
                    {value(x - 1, down), value(x, down), value(x + 1, down)});
}

// Squares of a field summed over the rows of each leaf, by columns, each value times a quarter of its diagonal where there
// are couplings: see `Finest::add_field`. A thread a column of a leaf.
__device__ inline void square(const level_pass<double>& g) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x, band = g.first_band + blockIdx.y;
    if (x >= g.nx) return;
    const int start = max(band * leaf_rows - g.first, g.row_start), end = min((band + 1) * leaf_rows - g.first, g.row_end);
    const row_table<double, 1> inverse{g.inverse_index, g.inverse_rows, g.nx};
    double sum = -0.0;
    for (int y = start; y < end; ++y) {
        double value = g.before[y * g.pitch + x];
        if (g.operator_rows) {
            const double of_cell = inverse.row(y)[x + 1];
            value = of_cell == 0 ? 0. : value / (4 * of_cell);
        }
        sum += value * value;
    }
    g.sums[band * g.sum_pitch + x] = sum;
}

// Adds up the leaves whose columns have been summed. A warp a leaf at a time, a row of blocks a kind of sums.
__device__ inline void add_leaves(const level_pass<double>& g) {
    const int lane = threadIdx.x % 32;
    const i64 warp = ((i64)blockIdx.x * blockDim.x + threadIdx.x) / 32, warps = (i64)gridDim.x * blockDim.x / 32;
    const int across = (g.nx + leaf_lanes - 1) / leaf_lanes;
    using format = float_format<double>;
    u64* words = g.words + (blockIdx.y * sum_copies + warp % sum_copies) * format::words;
    u32 seen = 0;
    for (i64 leaf = warp; leaf < (i64)across * g.leaf_bands; leaf += warps) {
        const int x = leaf % across * leaf_lanes + lane;
        const double* from = g.sums + blockIdx.y * g.sum_kind + (g.first_band + leaf / across) * g.sum_pitch + x;
        auto column = [&](int k) { return x + k < g.nx ? from[k] : -0.0; };
        const double sum = halve_quarters(column(0), column(32), column(64), column(96));
        if (lane > 0) continue;
        const chunks of = chunks_of<format>(sum);
        seen |= of.seen;
#pragma unroll
        for (int k = 0; k < 3; ++k) {
            const u64 amount = of.chunk[k];
            if (amount != 0) atomicAdd(words + of.limb + k, of.negative ? 0 - amount : amount);
        }
    }
    // One count is enough: a sum does not depend on how often.
#pragma unroll
    for (int tracker = 0; tracker < trackers; ++tracker) {
        if (seen >> tracker & 1) atomicAdd(words + format::limbs + tracker, 1ull);
    }
}

// The sums for the host; the copies are zero again. A block a kind.
__device__ inline void publish_sum(const level_pass<double>& g) {
    constexpr int words = float_format<double>::words;
    for (int i = threadIdx.x; i < words; i += blockDim.x) {
        u64 sum = 0;
        for (int copy = 0; copy < sum_copies; ++copy) {
            u64* word = g.words + (blockIdx.x * sum_copies + copy) * words + i;
            sum += *word;
            *word = 0;
        }
        g.total[blockIdx.x * words + i] = sum;
    }
}

}  // namespace crosswarp

#define KERNEL(name, F, threads)                                        \
    extern "C" __global__ void __launch_bounds__(threads)               \
        level_##name(const __grid_constant__ cw::level_pass<F> g) {     \
        cw::name(g);                                                    \
    }

KERNEL(restrict_right_side, float, cw::level_threads)
KERNEL(square, double, cw::level_threads)
KERNEL(add_leaves, double, cw::level_threads)
KERNEL(publish_sum, double, cw::level_threads)
