// What methods that look at the residual do on the finest level, of a plane or a box, beside passes: residuals, products, and
// steps along a direction. Operations as in `finest_level.rs` and `space/finest_level.rs`, in the same order.
//
// A thread has a column of a leaf: what it sums is one number, and a warp reads rows.
#pragma once
#include "multigrid/five_point.cuh"
#include "multigrid/box_pass.cuh"

namespace crosswarp {

// A thread's column, of so many, and band of rows: blocks are numbered across, then by bands.
__device__ inline int column_of_thread(int nx) {
    return int(blockIdx.x % ((nx + blockDim.x - 1) / blockDim.x) * blockDim.x + threadIdx.x);
}
__device__ inline int band_of_block(int nx) { return int(blockIdx.x / ((nx + blockDim.x - 1) / blockDim.x)); }

// A leaf of a plane; a thread has one of its columns.
struct leaf_of_plane {
    using pass = level_pass<double>;

    const pass& g;
    const int x, band, start, end;
    const bool is_there;

    __device__ explicit leaf_of_plane(const pass& g)
        : g(g), x(column_of_thread(g.nx)), band(g.first_band + band_of_block(g.nx)), start(max(band * leaf_rows - g.first, g.row_start)),
          end(min((band + 1) * leaf_rows - g.first, g.row_end)), is_there(x < g.nx) {}

    __device__ i64 at(int y) const { return y * g.pitch + x; }
    __device__ double* sums() const { return g.sums + (band * g.sum_pitch + x); }

    // b − Au in row y, u being `value` of a place in a field.
    template <class Value> __device__ double residual(Value value, int y) const {
        // Beyond a fixed side anything: who is on it has no equation.
        auto beside = [](int at, int step, int n, const i32* ends) {
            const int to = at + step, end = ends[step > 0];
            if (to >= 0 && to < n) return to;
            if (end == end_wrap) return to < 0 ? n - 1 : 0;
            return end == end_mirror ? min(max(at - step, 0), n - 1) : at;
        };
        // Rows of other PEs lie under their own numbers, wrapped around.
        const i64 row = y * g.pitch;
        neighbours<double> u;
        u.here = value(row + x);
        u.west = value(row + beside(x, -1, g.nx, g.ends));
        u.east = value(row + beside(x, 1, g.nx, g.ends));
        u.up = value(beside(y, -1, g.ny, g.ends + 2) * g.pitch + x);
        u.down = value(beside(y, 1, g.ny, g.ends + 2) * g.pitch + x);
        u.up_west = u.up_east = u.down_west = u.down_east = 0.0;
        if (g.operator_rows) return five_point<true>(g, x, true).step(u, y, 0.0, along_residual).residual;
        return five_point<false>(g, x, true).step(u, y, 0.0, along_residual).residual;
    }
    // The part of the cell that lies in the grid, across an axis.
    __device__ static double part(int at, int n, const i32* ends) {
        return (at == 0 && ends[0] == end_mirror) || (at == n - 1 && ends[1] == end_mirror) ? 0.5 : 1.0;
    }
    // A residual as that of the symmetric operator.
    __device__ double symmetric(double residual, int y) const {
        if (g.operator_rows) return residual;
        return residual * part(x, g.nx, g.ends) * part(y, g.ny, g.ends + 2);
    }
    __device__ double product(double a, double b, int y) const {
        const double weight = g.operator_rows ? 1.0 : part(x, g.nx, g.ends) * part(y, g.ny, g.ends + 2);
        return weight * (a * b);
    }
    // A value times a quarter of its diagonal, where that is not the same everywhere.
    __device__ double by_diagonal(double value, int y) const {
        if (!g.operator_rows) return value;
        const double inverse = row_table<double, 1>{g.inverse_index, g.inverse_rows, g.nx}.row(y)[x + 1];
        return inverse == 0.0 ? 0.0 : value / (4.0 * inverse);
    }
    // How far a step goes along the residual: `gain` over the diagonal, which is in `gain` where it is the same everywhere.
    __device__ double length(double gain, int y) const {
        if (!g.operator_rows) return gain;
        return gain * row_table<double, 1>{g.inverse_index, g.inverse_rows, g.nx}.row(y)[x + 1];
    }
};

// A leaf of a box, as that of a plane.
struct leaf_of_box {
    using pass = box_pass;

    const pass& g;
    const int x, bands, of_all, z, start, end;
    const bool is_there;
    const i64 first;
    // Of the leaf.
    double before, after, excess, mass, free;

    __device__ explicit leaf_of_box(const pass& g)
        : g(g), x(column_of_thread(g.size[0])), bands((g.size[1] + leaf_rows - 1) / leaf_rows),
          of_all(band_of_block(g.size[0])), z(g.plane_start + of_all / bands), start(of_all % bands * leaf_rows),
          end(min(start + leaf_rows, g.size[1])), is_there(x < g.size[0]), first(z * g.plane + x + 1) {
        const int column = min(x, g.size[0] - 1);
        before = line_number(g, 0, line_before, column);
        after = line_number(g, 0, line_after, column);
        excess = line_number(g, 0, line_excess, column);
        mass = line_number(g, 0, line_mass, column);
        free = line_number(g, 0, line_free, column);
    }

    __device__ i64 at(int y) const { return first + y * (g.size[0] + 2); }
    __device__ double* sums() const { return g.sums + (of_all * g.sum_pitch + x); }

    // b − Au in row y, u being `value` of a place in a field.
    template <class Value> __device__ double residual(Value value, int y) const {
        if (line_number(g, 1, line_free, y) == 0.0 || line_number(g, 2, line_free, z) == 0.0) return 0.0;
        const int nx = g.size[0], ny = g.size[1], nz = g.size[2], stride = nx + 2;
        // At an end of the grid the one on the other side or the point itself, which couplings of zero make nothing of.
        auto beside = [&](int axis, int at, int step, int n) {
            const int to = at + step;
            if (to >= 0 && to < n) return to;
            return g.wraps[axis] ? (to < 0 ? n - 1 : 0) : at;
        };
        const i64 here = at(y);
        const double c = value(here);
        const double west = value(here + (beside(0, x, -1, nx) - x)), east = value(here + (beside(0, x, 1, nx) - x));
        const double north = value(here + (beside(1, y, -1, ny) - y) * stride);
        const double south = value(here + (beside(1, y, 1, ny) - y) * stride);
        const double up = value(here + (beside(2, z, -1, nz) - z) * g.plane);
        const double down = value(here + (beside(2, z, 1, nz) - z) * g.plane);
        const double y_mass = line_number(g, 1, line_mass, y), z_mass = line_number(g, 2, line_mass, z);
        const double along = before * (west - c) + after * (east - c);
        const double over = (z_mass * line_number(g, 1, line_before, y)) * (north - c) +
                            (z_mass * line_number(g, 1, line_after, y)) * (south - c);
        const double under = (y_mass * line_number(g, 2, line_before, z)) * (up - c) +
                             (y_mass * line_number(g, 2, line_after, z)) * (down - c);
        const double of_row = z_mass * line_number(g, 1, line_excess, y) + y_mass * line_number(g, 2, line_excess, z);
        const double sum = (y_mass * z_mass) * (along - excess * c) + mass * ((over + under) - of_row * c);
        return ((g.right_side ? g.right_side[here] : 0.0) + sum) * free;
    }
    __device__ static double symmetric(double residual, int) { return residual; }
    __device__ static double product(double a, double b, int) { return a * b; }
    __device__ double by_diagonal(double value, int) const { return g.diagonal * value; }
    __device__ double length(double gain, int y) const {
        const i64 kind = read(g.inverse_of + ((i64)z * g.size[1] + y));
        return gain * read(g.inverses + (kind * g.size[0] + x));
    }
};

// Sums of a column, so many kinds.
template <int kinds> struct column_sums {
    double value[kinds];

    __device__ column_sums() {
#pragma unroll
        for (double& sum : value) sum = -0.0;
    }
    __device__ void add(int kind, double term) { value[kind] += term; }
    __device__ void add_square(int kind, double root) { value[kind] += root * root; }
    template <class Leaf> __device__ void keep(const Leaf& leaf, const finest_step& s) const {
#pragma unroll
        for (int kind = 0; kind < kinds; ++kind) leaf.sums()[kind * s.sum_kind] = value[kind];
    }
};

// The norms of b − Au and of u times its diagonal.
template <class Leaf> __device__ void measure(const Leaf& leaf, const finest_step& s) {
    column_sums<2> sums;
    for (int y = leaf.start; y < leaf.end; ++y) {
        sums.add_square(0, leaf.residual([&](i64 at) { return s.u[at]; }, y));
        sums.add_square(1, leaf.by_diagonal(s.u[leaf.at(y)], y));
    }
    sums.keep(leaf, s);
}

// r = b − Au.
template <class Leaf> __device__ void residual(const Leaf& leaf, const finest_step& s) {
    for (int y = leaf.start; y < leaf.end; ++y) {
        s.r[leaf.at(y)] = leaf.residual([&](i64 at) { return s.u[at]; }, y);
    }
}

// q = −Ap, the right side being none, and −⟨p, Ap⟩.
template <class Leaf> __device__ void curve(const Leaf& leaf, const finest_step& s) {
    column_sums<1> sums;
    for (int y = leaf.start; y < leaf.end; ++y) {
        const double found = leaf.residual([&](i64 at) { return s.p[at]; }, y);
        s.q[leaf.at(y)] = found;
        sums.add(0, leaf.symmetric(found, y) * s.p[leaf.at(y)]);
    }
    sums.keep(leaf, s);
}

// ⟨u, r⟩ of two fields of any meaning.
template <class Leaf> __device__ void multiply(const Leaf& leaf, const finest_step& s) {
    column_sums<1> sums;
    for (int y = leaf.start; y < leaf.end; ++y) {
        sums.add(0, leaf.product(s.u[leaf.at(y)], s.r[leaf.at(y)], y));
    }
    sums.keep(leaf, s);
}

// u += α p and r += α q, α being the first weight; q = −α q where the second is not 0. The norms of r, and of u times its
// diagonal, and ⟨r, r⟩.
template <class Leaf> __device__ void descend(const Leaf& leaf, const finest_step& s) {
    const double alpha = s.weights[0];
    column_sums<3> sums;
    for (int y = leaf.start; y < leaf.end; ++y) {
        const i64 at = leaf.at(y);
        const double along = alpha * s.q[at], u = s.u[at] + alpha * s.p[at], r = s.r[at] + along;
        s.u[at] = u;
        s.r[at] = r;
        if (s.weights[1] != 0.0) s.q[at] = -along;
        sums.add_square(0, r);
        sums.add_square(1, leaf.by_diagonal(u, y));
        sums.add(2, r * leaf.symmetric(r, y));
    }
    sums.keep(leaf, s);
}

// p = r + β p, β being the first weight; p = r where the second is 0.
template <class Leaf> __device__ void turn(const Leaf& leaf, const finest_step& s) {
    for (int y = leaf.start; y < leaf.end; ++y) {
        const i64 at = leaf.at(y);
        s.p[at] = s.weights[1] != 0.0 ? s.r[at] + s.weights[0] * s.p[at] : s.r[at];
    }
}

// A step of Chebyshev's iteration: r = u + p, q = `keep` p + `gain` D⁻¹ (b − Ar), keep and gain being the weights. The norms
// of the residual and of r times its diagonal.
template <class Leaf> __device__ void chebyshev(const Leaf& leaf, const finest_step& s) {
    column_sums<2> sums;
    for (int y = leaf.start; y < leaf.end; ++y) {
        const i64 at = leaf.at(y);
        auto stepped = [&](i64 at) { return s.u[at] + s.p[at]; };
        const double found = leaf.residual(stepped, y), u = stepped(at);
        s.r[at] = u;
        s.q[at] = s.weights[0] * s.p[at] + leaf.length(s.weights[1], y) * found;
        sums.add_square(0, found);
        sums.add_square(1, leaf.by_diagonal(u, y));
    }
    sums.keep(leaf, s);
}

}  // namespace crosswarp

// The kernel of a step, of leaves of a plane or a box.
#define CROSSWARP_FINEST_STEP(of, step)                                                                          \
    extern "C" __global__ void __launch_bounds__(cw::column_threads)                                              \
        of##_##step(const __grid_constant__ cw::leaf_of_##of::pass g, const __grid_constant__ cw::finest_step s) { \
        const cw::leaf_of_##of leaf(g);                                                                          \
        if (leaf.is_there) cw::step(leaf, s);                                                                    \
    }
// Those of all.
#define CROSSWARP_FINEST_STEPS(of)       \
    CROSSWARP_FINEST_STEP(of, measure)   \
    CROSSWARP_FINEST_STEP(of, residual)  \
    CROSSWARP_FINEST_STEP(of, curve)     \
    CROSSWARP_FINEST_STEP(of, multiply)  \
    CROSSWARP_FINEST_STEP(of, descend)   \
    CROSSWARP_FINEST_STEP(of, turn)      \
    CROSSWARP_FINEST_STEP(of, chebyshev)
