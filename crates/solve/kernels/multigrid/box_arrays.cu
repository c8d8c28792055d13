// Between arrays of the caller's, of all points of a box, and the finest level, an operator of lines: what the host else reads
// and writes by planes, with the same operations (`method/multigrid/space_load.rs`).
#include "leaf.cuh"
#include "multigrid/box_arguments.cuh"
#include "multigrid/magnitude.cuh"

namespace crosswarp {

// Of the numbers of an axis: masses of points, and 1 for those that have an equation.
__device__ __forceinline__ double mass_of(const box_pass& g, int axis, int at) {
    return g.lines[axis][3 * g.size[axis] + at];
}
__device__ __forceinline__ bool is_free(const box_pass& g, int axis, int at) {
    return g.lines[axis][4 * g.size[axis] + at] != 0;
}

// The volume of a point, by that of its row.
__device__ __forceinline__ double mass_of(const box_pass& g, int x, int y, int z) {
    return mass_of(g, 0, x) * (mass_of(g, 1, y) * mass_of(g, 2, z));
}

// Calls `work` for the rows that a block has by turns, with a column, row and plane, where the row begins in the level's fields,
// and where in an array of the caller's. Threads have columns.
template <class Work> __device__ __forceinline__ void of_rows(const box_pass& g, int columns, Work work) {
    const int x = int(blockIdx.x) * level_threads + int(threadIdx.x);
    const i64 rows = (i64)g.size[1] * g.size[2];
    for (i64 row = blockIdx.y; row < rows && x < columns; row += gridDim.y) {
        const int y = row % g.size[1], z = row / g.size[1];
        work(x, y, z, z * g.plane + (i64)y * (g.size[0] + 2), row * g.size[0]);
    }
}

// The field and the right side of the caller's arrays, or of nothing, and the largest magnitude of all values, and of right
// sides where there is an equation. Beyond the ends of a row are the points at its other end, or zeros.
template <class F> __device__ __forceinline__ void load(const box_pass& g, const box_arrays<F>& a) {
    const int nx = g.size[0];
    u64 largest = 0, bits = 0;
    of_rows(g, nx + 2, [&](int column, int y, int z, i64 at, i64 of_array) {
        const bool beyond = column == 0 || column == nx + 1;
        const int x = column == 0 ? nx - 1 : column == nx + 1 ? 0 : column - 1;
        double value = a.initial && !(beyond && !g.wraps[0]) ? double(a.initial[of_array + x]) : 0.;
        largest = max(largest, magnitude(value));
        value = value * a.scale;
        bits |= __double_as_longlong(value);
        a.u[at + column] = value;
        if (beyond || !a.right_side) return;
        const bool free = is_free(g, 0, x) && is_free(g, 1, y) && is_free(g, 2, z);
        double b = 0.;
        if (free && a.source) {
            b = mass_of(g, x, y, z) * double(a.source[of_array + x]);
            largest = max(largest, magnitude(b));
            b = -(b * a.scale);
        }
        const int place[3] = {x, y, z};
#pragma unroll
        for (int end = 0; end < 6; ++end) {
            const int axis = end / 2, last = (end & 1) * (g.size[axis] - 1);
            if (!free || !a.crossed[end] || place[axis] != last) continue;
            const double flow = (mass_of(g, x, y, z) / mass_of(g, axis, last)) * a.slopes[end];
            largest = max(largest, magnitude(flow));
            b += flow * a.scale;
        }
        a.right_side[at + column] = b;
    });
    note_largest(largest, bits, a.words);
}

// The caller's array of the field, without `surplus`.
template <class F> __device__ __forceinline__ void save(const box_pass& g, const box_arrays<F>& a) {
    bool fits = true;
    of_rows(g, g.size[0], [&](int x, int, int, i64 at, i64 of_array) {
        const F value = F((a.u[at + x + 1] - a.surplus) * a.scale);
        fits &= isfinite(value);
        a.field[of_array + x] = value;
    });
    if (!fits) atomicMax(a.words, ~0ull);
}

// The right side's values, their magnitudes, or the field's by volume, summed over the rows of each leaf, by columns. Threads
// have columns, blocks leaves by turns.
__device__ inline void weigh(const box_pass& g, const box_arrays<double>& a) {
    const int x = int(blockIdx.x) * level_threads + int(threadIdx.x), bands = (g.size[1] + leaf_rows - 1) / leaf_rows;
    if (x >= g.size[0]) return;
    const double* values = a.weighed == weighed_field ? a.u : a.right_side;
    for (i64 leaf = blockIdx.y; leaf < (i64)bands * g.size[2]; leaf += gridDim.y) {
        const int z = leaf / bands, first = leaf % bands * leaf_rows;
        double sum = -0.0;
        for (int y = first; y < min(first + leaf_rows, g.size[1]); ++y) {
            const double value = values[z * g.plane + (i64)y * (g.size[0] + 2) + x + 1];
            if (a.weighed == weighed_field) {
                sum += mass_of(g, x, y, z) * value;
            } else {
                sum += a.weighed == weighed_magnitudes ? fabs(value) : value;
            }
        }
        g.sums[leaf * g.sum_pitch + x] = sum;
    }
}

// The right side less `surplus` times the volume of each point.
__device__ inline void shift(const box_pass& g, const box_arrays<double>& a) {
    of_rows(g, g.size[0], [&](int x, int y, int z, i64 at, i64) {
        a.right_side[at + x + 1] += -a.surplus * mass_of(g, x, y, z);
    });
}

}  // namespace crosswarp

#define KERNEL(name, work, F)                                                           \
    extern "C" __global__ void __launch_bounds__(cw::level_threads) box_##name(        \
        const __grid_constant__ cw::box_pass g, const __grid_constant__ cw::box_arrays<F> a) { \
        cw::work(g, a);                                                                 \
    }

KERNEL(load_f32, load, float)
KERNEL(load_f64, load, double)
KERNEL(save_f32, save, float)
KERNEL(save_f64, save, double)
KERNEL(weigh, weigh, double)
KERNEL(shift, shift, double)
