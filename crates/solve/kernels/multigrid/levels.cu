// What is done on levels beside passes.
#include "superaccumulator.cuh"
#include "leaf.cuh"
#include "multigrid/right_side.cuh"

namespace crosswarp {

// The first residual where the field is +0 but at the sides.
__device__ inline void begin(const level_pass<double>& g) { restrict_right_side(g); }

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
KERNEL(begin, double, cw::level_threads)
KERNEL(square, double, cw::level_threads)
KERNEL(add_leaves, double, cw::level_threads)
KERNEL(publish_sum, double, cw::level_threads)
