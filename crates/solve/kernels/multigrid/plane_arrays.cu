// Between arrays of the caller's, of all points of a plane, and the finest level: what the host else reads and writes by rows,
// with the same operations (`method/multigrid/load.rs`).
#include "leaf.cuh"
#include "multigrid/five_point.cuh"
#include "multigrid/magnitude.cuh"

namespace crosswarp {

template <class F> __device__ __forceinline__ double part_of(const level_arrays<F>& g, int x, int y) {
    return part_along(x, g.nx, g.ends[0], g.ends[1]) * part_along(y, g.ny, g.ends[2], g.ends[3]);
}

// Whether a point does not keep its value.
template <class F> __device__ __forceinline__ bool has_equation(const level_arrays<F>& g, int x, int y) {
    return !on_fixed_side(g, x, y) && !(g.fixed && g.fixed[y * g.pitch + x]);
}

// The field and the right side of the caller's arrays, or of nothing, and the largest magnitude of what counts: all values, and
// right sides of points that have an equation. Threads have columns, blocks rows by turns.
template <class F> __device__ __forceinline__ void load(const level_arrays<F>& g) {
    const int x = int(blockIdx.x) * level_threads + int(threadIdx.x);
    u64 largest = 0, bits = 0;
    for (int y = blockIdx.y; y < g.ny && x < g.nx; y += gridDim.y) {
        const i64 at = y * g.pitch + x;
        const int grid_x = x + g.first[0], grid_y = y + g.first[1];
        const i64 of_grid = (i64)grid_y * g.grid_nx + grid_x;
        F value = g.initial ? g.initial[of_grid] : F(0);
        if (y == 0 && g.sides[2]) value = g.sides[2][grid_x];
        if (y == g.ny - 1 && g.sides[3]) value = g.sides[3][grid_x];
        if (x == 0 && g.sides[0]) value = g.sides[0][grid_y];
        if (x == g.nx - 1 && g.sides[1]) value = g.sides[1][grid_y];
        largest = max(largest, magnitude(double(value)));
        const double u = double(value) * g.scale;
        if (y > 0 && y < g.ny - 1) bits |= __double_as_longlong(u);
        g.u[at] = u;
        if (!g.right_side) continue;
        double b = 0.;
        if (g.source) {
            b = g.area * double(g.source[of_grid]);
            if (g.varies) b = b * g.operator_scale * part_of(g, x, y);
            if (has_equation(g, x, y)) largest = max(largest, magnitude(b));
            b = -(b * g.scale);
        }
        if (x == 0 && g.flows[0]) b += g.flows[0][y] * g.scale;
        if (x == g.nx - 1 && g.flows[1]) b += g.flows[1][y] * g.scale;
        if (y == 0 && g.flows[2]) b += g.flows[2][x] * g.scale;
        if (y == g.ny - 1 && g.flows[3]) b += g.flows[3][x] * g.scale;
        g.right_side[at] = b;
    }
    note_largest(largest, bits, g.words);
}

// The caller's array of the field, without `surplus`. Points beyond an axis that wraps around are those that they stand for.
template <class F> __device__ __forceinline__ void save(const level_arrays<F>& g) {
    const int grid_x = int(blockIdx.x) * level_threads + int(threadIdx.x);
    bool fits = true;
    auto place = [](int at, int len) { return at < 0 ? len - 1 : at >= len ? 0 : at; };
    for (int grid_y = blockIdx.y; grid_y < g.grid_ny && grid_x < g.grid_nx; grid_y += gridDim.y) {
        const int x = place(grid_x - g.first[0], g.nx), y = place(grid_y - g.first[1], g.ny);
        const F value = F((g.u[y * g.pitch + x] - g.surplus) * g.scale);
        fits &= isfinite(value);
        g.field[(i64)grid_y * g.grid_nx + grid_x] = value;
    }
    if (!fits) atomicMax(g.words, ~0ull);
}

// The right side's or the field's values times the parts of the points that lie in the grid, or the magnitudes of these
// products, summed over the rows of each leaf, by columns. Threads have columns, blocks rows of leaves by turns.
__device__ inline void weigh(const level_pass<double>& sums, const level_arrays<double>& g) {
    const int x = int(blockIdx.x) * level_threads + int(threadIdx.x);
    if (x >= g.nx) return;
    // The right side of equations that are multiplied by the part has it already.
    const bool of_field = g.weighed == weighed_field, by_part = of_field || !g.varies;
    const double* values = of_field ? g.u : g.right_side;
    for (int band = blockIdx.y; band < sums.leaf_bands; band += gridDim.y) {
        const int first = band * leaf_rows - g.first[1];
        double sum = -0.0;
        for (int y = max(first, 0); y < min(first + leaf_rows, g.ny); ++y) {
            const double value = values[y * g.pitch + x];
            const double weighed = by_part ? part_of(g, x, y) * value : value;
            sum += g.weighed == weighed_magnitudes ? fabs(weighed) : weighed;
        }
        sums.sums[band * sums.sum_pitch + x] = sum;
    }
}

// The right side less `surplus` at each point.
__device__ inline void shift(const level_arrays<double>& g) {
    const int x = int(blockIdx.x) * level_threads + int(threadIdx.x);
    for (int y = blockIdx.y; y < g.ny && x < g.nx; y += gridDim.y) {
        double& b = g.right_side[y * g.pitch + x];
        b -= g.varies ? g.surplus * part_of(g, x, y) : g.surplus;
    }
}

}  // namespace crosswarp

#define KERNEL(name) extern "C" __global__ void __launch_bounds__(cw::level_threads) plane_##name
KERNEL(load_f32)(const __grid_constant__ cw::level_arrays<float> g) { cw::load(g); }
KERNEL(load_f64)(const __grid_constant__ cw::level_arrays<double> g) { cw::load(g); }
KERNEL(save_f32)(const __grid_constant__ cw::level_arrays<float> g) { cw::save(g); }
KERNEL(save_f64)(const __grid_constant__ cw::level_arrays<double> g) { cw::save(g); }
KERNEL(weigh)(const __grid_constant__ cw::level_pass<double> sums, const __grid_constant__ cw::level_arrays<double> g) {
    cw::weigh(sums, g);
}
KERNEL(shift)(const __grid_constant__ cw::level_arrays<double> g) { cw::shift(g); }
