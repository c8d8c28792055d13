// A plane's operator of arrays of the caller's: what the host else reads by rows, with the same operations
// (`method/multigrid/load.rs`, `coefficients.rs`).
#include "multigrid/galerkin.cuh"
#include "multigrid/magnitude.cuh"

namespace crosswarp {

// Threads have columns of the level, blocks rows by turns.
template <class F, class Work> __device__ __forceinline__ void each_point(const operator_arrays<F>& g, Work work) {
    const int x = int(blockIdx.x) * level_threads + int(threadIdx.x);
    for (int y = blockIdx.y; y < g.ny && x < g.nx; y += gridDim.y) work(x, y);
}

template <class F> __device__ __forceinline__ i64 of_grid(const operator_arrays<F>& g, int x, int y) {
    return (i64)(y + g.first[1]) * g.grid_nx + x + g.first[0];
}

template <class F> __device__ __forceinline__ double coefficient(const operator_arrays<F>& g, int x, int y) {
    return g.coefficient ? double(g.coefficient[of_grid(g, x, y)]) : 1.0;
}

template <class F> __device__ __forceinline__ double reaction(const operator_arrays<F>& g, int x, int y) {
    return g.reaction ? double(g.reaction[of_grid(g, x, y)]) : 0.0;
}

// The mask, and how many cells do not keep their value.
__device__ inline void make_mask(const operator_arrays<double>& g) {
    u64 count = 0;
    each_point(g, [&](int x, int y) {
        const bool fixed = g.fixed[of_grid(g, x, y)];
        g.mask[y * g.pitch + x] = fixed;
        count += !fixed && !on_fixed_side(g, x, y);
    });
    add_counts(count, g.words);
}

// The bits of what is larger than all that is finite.
constexpr u64 not_finite = 0x7ff0000000000000ull;

// The largest coefficient; what is not positive, or is not finite, makes it infinite, as a factor that is negative, or is not
// finite. And whether a factor is positive.
template <class F> __device__ __forceinline__ void measure(const operator_arrays<F>& g) {
    u64 largest = 0, bits = 0;
    each_point(g, [&](int x, int y) {
        const double kappa = coefficient(g, x, y), factor = reaction(g, x, y);
        const bool good = kappa > 0.0 && isfinite(kappa) && factor >= 0.0 && isfinite(factor);
        largest = max(largest, good ? magnitude(kappa) : not_finite);
        bits |= factor > 0.0;
    });
    note_largest(largest, bits, g.words);
}

// Couplings to the east and to the south, and the excess, and along sides the coefficient.
template <class F> __device__ __forceinline__ void make_couplings(const operator_arrays<F>& g) {
    const bool wrap_x = g.ends[0] == end_wrap, wrap_y = g.ends[2] == end_wrap;
    const double h_x = g.spacings[0], h_y = g.spacings[1];
    auto between = [](double one, double other) { return 0.5 * one + 0.5 * other; };
    each_point(g, [&](int x, int y) {
        const double kappa = coefficient(g, x, y);
        const double part_x = part_along(x, g.nx, g.ends[0], g.ends[1]), part_y = part_along(y, g.ny, g.ends[2], g.ends[3]);
        int right = x + 1, below = y + 1;
        double east = 0.0, south = 0.0;
        if (is_point(right, g.nx, wrap_x)) east = between(kappa, coefficient(g, right, y)) * g.scale * (h_y / h_x) * part_y;
        if (is_point(below, g.ny, wrap_y)) south = between(kappa, coefficient(g, x, below)) * g.scale * (h_x / h_y) * part_x;
        double excess = reaction(g, x, y) * g.scale * (h_x * h_y) * (part_x * part_y);
        auto mix = [&](int side, int at, double part, double length) {
            if (g.kappas[side]) g.kappas[side][at] = kappa;
            if (g.mixed[side]) excess += kappa * g.mixed[side][at] * g.scale * part * length;
        };
        if (x == 0) mix(0, y, part_y, h_y);
        if (x == g.nx - 1) mix(1, y, part_y, h_y);
        if (y == 0) mix(2, x, part_x, h_x);
        if (y == g.ny - 1) mix(3, x, part_x, h_x);
        using numbers = five_point<true>;
        const int length = g.nx + 2;
        double* row = g.parts + (i64)(y + 1) * (numbers::parts * length);
        set_column(row + numbers::east * length, x, g.nx, wrap_x, east);
        set_column(row + numbers::south * length, x, g.nx, wrap_x, south);
        set_column(row + numbers::excess * length, x, g.nx, wrap_x, excess);
    });
}

// 1 / the diagonal.
__device__ inline void make_inverse(const operator_arrays<double>& g) {
    using numbers = five_point<true>;
    const int length = g.nx + 2, size = numbers::parts * length;
    each_point(g, [&](int x, int y) {
        const double* row = g.parts + (i64)(y + 1) * size + x + 1;
        // The row above the first: of zeros, or the last.
        const double* above = y == 0 && g.ends[2] == end_wrap ? row + (i64)(g.ny - 1) * size : row - size;
        const double couplings = (row[numbers::east * length] + row[numbers::east * length - 1]) +
                                 (row[numbers::south * length] + above[numbers::south * length]);
        const double diagonal = couplings + row[numbers::excess * length];
        set_column(g.inverse + (i64)(y + 1) * length, x, g.nx, false, diagonal > 0.0 ? 1.0 / diagonal : 0.0);
    });
}

}  // namespace crosswarp

#define KERNEL(name) extern "C" __global__ void __launch_bounds__(cw::level_threads) operator_##name
KERNEL(mask)(const __grid_constant__ cw::operator_arrays<double> g) { cw::make_mask(g); }
KERNEL(measure_f32)(const __grid_constant__ cw::operator_arrays<float> g) { cw::measure(g); }
KERNEL(measure_f64)(const __grid_constant__ cw::operator_arrays<double> g) { cw::measure(g); }
KERNEL(couplings_f32)(const __grid_constant__ cw::operator_arrays<float> g) { cw::make_couplings(g); }
KERNEL(couplings_f64)(const __grid_constant__ cw::operator_arrays<double> g) { cw::make_couplings(g); }
KERNEL(inverse)(const __grid_constant__ cw::operator_arrays<double> g) { cw::make_inverse(g); }
