// A level of a box whose couplings differ from point to point: residuals, relaxations, and the ways to the next level, one
// at a time. Operations as in `space/points.rs` and `space/points_transfer.rs`, in the same order.
//
// A thread has a column of a leaf of a plane, as in `finest_steps.cuh`, where there are sums; else one point.
#pragma once
#include "multigrid/finest_steps.cuh"

namespace crosswarp {

// Half of the steps to the points around, as `STEPS` of `points.rs`.
__device__ constexpr int point_steps[box_steps][3] = {{1, 0, 0},  {0, 1, 0},  {0, 0, 1},  {1, 1, 0},  {-1, 1, 0},
                                                      {1, 0, 1},  {-1, 0, 1}, {0, 1, 1},  {0, -1, 1}, {1, 1, 1},
                                                      {-1, 1, 1}, {1, -1, 1}, {-1, -1, 1}};

// As `FIRST` of `points_transfer.rs`: the first weight of points of a kind, which says between which coarse points they lie.
__device__ constexpr int first_weight[8] = {0, 0, 2, 4, 8, 10, 14, 18};

// The bits of `corner` at the axes of `kind`, next to each other.
__device__ __forceinline__ constexpr int corner_number(int kind, int corner) {
    int number = 0, place = 0;
    for (int axis = 0; axis < 3; ++axis) {
        if (kind >> axis & 1) number |= (corner >> axis & 1) << place++;
    }
    return number;
}

// A point of an axis that wraps around or not: −1 if there is none.
__device__ __forceinline__ int place_on(const box_pass& g, int axis, int at) {
    const int n = g.size[axis];
    if (at >= 0 && at < n) return at;
    return g.wraps[axis] ? wrapped(at, n) : -1;
}

// Whether there is a point between coarse points `at` and `at` + 1.
__device__ __forceinline__ bool has_between(const box_pass& g, int axis, int at) {
    const int n = g.coarse_size[axis];
    if (at < 0 || at >= n) {
        if (!g.wraps[axis]) return false;
        at = wrapped(at, n);
    }
    return 2 * at + 1 < g.size[axis];
}

// So many rows of a plane of such a level, a leaf where there are sums. `count`: half of the points that a point can be
// coupled to.
template <int count, int rows> struct points_leaf {
    using pass = box_pass;

    const pass& g;
    const box_points& of;
    const int x, bands, of_all, z, start, end;
    const bool is_there;

    __device__ explicit points_leaf(const pass& g)
        : g(g), of(*g.points), x(column_of_thread(g.size[0])), bands((g.size[1] + rows - 1) / rows),
          of_all(band_of_block(g.size[0])), z(g.plane_start + of_all / bands), start(of_all % bands * rows),
          end(min(start + rows, g.size[1])), is_there(x < g.size[0]) {}

    __device__ i64 place(int x, int y, int z) const { return z * g.plane + y * (g.size[0] + 2) + x + 1; }
    // Plane z may be one beyond an end of an axis that wraps around.
    __device__ i64 at(int y) const { return place(x, y, place_on(g, 2, z)); }
    __device__ bool has_colour(int y) const { return !((x + y + z + g.colour) & 1); }
    __device__ double* sums() const { return g.sums + (of_all * g.sum_pitch + x); }

    // b − Au in row y, u being `value` of a place in a field.
    template <class Value> __device__ double residual(Value value, int y) const {
        const i64 here = at(y);
        const double c = value(here), own = read(of.excess + here) * c;
        double sum = g.right_side ? g.right_side[here] - own : -own;
#pragma unroll
        for (int s = 0; s < count; ++s) {
#pragma unroll
            for (int way = 0; way < 2; ++way) {
                const int sign = way == 0 ? 1 : -1;
                const int row = place_on(g, 1, y + sign * point_steps[s][1]), plane = place_on(g, 2, z + sign * point_steps[s][2]);
                if (row < 0 || plane < 0) continue;
                const int beside = x + sign * point_steps[s][0], column = place_on(g, 0, beside);
                // What is beyond an end is zero, and so is the coupling to it.
                const double there = column < 0 ? 0.0 : value(place(column, row, plane));
                const double coupling = read(of.parts[s] + (way == 0 ? here : place(beside, row, plane)));
                sum += coupling * (there - c);
            }
        }
        return sum;
    }
    __device__ static double symmetric(double residual, int) { return residual; }
    __device__ static double product(double a, double b, int) { return a * b; }
    __device__ double by_diagonal(double value, int y) const {
        const double inverse = read(of.inverse + at(y));
        return inverse == 0.0 ? 0.0 : value / inverse;
    }
    __device__ double length(double gain, int y) const { return gain * read(of.inverse + at(y)); }
};

// Of the finest level, for its steps.
using leaf_of_points = points_leaf<box_steps_along_axes, leaf_rows>;

// u + ω D⁻¹ (b − Au).
template <int count, int rows> __device__ void relax(const points_leaf<count, rows>& leaf) {
    const box_pass& g = leaf.g;
    for (int y = leaf.start; y < leaf.end; ++y) {
        const i64 at = leaf.at(y);
        const double found = leaf.residual([&](i64 at) { return g.before[at]; }, y);
        const bool relaxes = g.colour < 0 || leaf.has_colour(y);
        g.after[at] = relaxes ? g.before[at] + leaf.length(g.omega[0], y) * found : g.before[at];
    }
}

// ω D⁻¹ b.
template <class Leaf> __device__ void relax_from_zero(const Leaf& leaf) {
    const box_pass& g = leaf.g;
    for (int y = leaf.start; y < leaf.end; ++y) {
        const i64 at = leaf.at(y);
        g.after[at] = leaf.length(g.omega[0], y) * g.right_side[at];
    }
}

// b − Au; where points of one colour were relaxed last, their equations hold. Its squares if the rows are those of a leaf.
template <int count, int rows> __device__ void keep_residual(const points_leaf<count, rows>& leaf) {
    const box_pass& g = leaf.g;
    double squares = -0.0;
    for (int y = leaf.start; y < leaf.end; ++y) {
        const bool solved = g.colour >= 0 && leaf.has_colour(y);
        const double found = solved ? 0.0 : leaf.residual([&](i64 at) { return g.before[at]; }, y);
        squares += found * found;
        g.after[leaf.at(y)] = found;
    }
    if (rows == leaf_rows) *leaf.sums() = squares;
}

// Squares of the field times the diagonal.
__device__ inline void square(const leaf_of_points& leaf) {
    const box_pass& g = leaf.g;
    double squares = -0.0;
    for (int y = leaf.start; y < leaf.end; ++y) {
        const double value = leaf.by_diagonal(g.before[leaf.at(y)], y);
        squares += value * value;
    }
    *leaf.sums() = squares;
}

// Adds the next level's field to this one's, or to zero.
template <class Leaf> __device__ void prolong(const Leaf& leaf) {
    const box_pass& g = leaf.g;
    const int z = leaf.z, x = leaf.x, i = x >> 1, k = z >> 1, stride = g.coarse_size[0] + 2;
    for (int y = leaf.start; y < leaf.end; ++y) {
        const i64 at = leaf.at(y);
        const int j = y >> 1, kind = (x & 1) | (y & 1) << 1 | (z & 1) << 2;
        double value = g.start == start_correction ? 0.0 : g.before[at];
        if (read(leaf.of.inverse + at) != 0.0) {
            for (int corner = 0; corner < 8; ++corner) {
                if (corner & ~kind) continue;
                // What is behind the last one of an axis wraps around or is not there. Rows that are not add nothing.
                int column = i + (corner & 1), row = j + (corner >> 1 & 1), plane = k + (corner >> 2);
                if (row == g.coarse_size[1]) {
                    if (!g.wraps[1]) continue;
                    row = 0;
                }
                const bool there = (column < g.coarse_size[0] || g.wraps[0]) && (plane < g.coarse_size[2] || g.wraps[2]);
                if (plane == g.coarse_size[2]) plane = 0;
                if (column == g.coarse_size[0]) column = 0;
                const double from = there ? g.correction[plane * g.coarse_plane + row * stride + column + 1] : 0.0;
                if (kind == 0) {
                    value += from;
                } else {
                    const double* weights = leaf.of.weights[first_weight[kind] + corner_number(kind, corner)];
                    value += read(weights + (k * g.coarse_plane + j * stride + i + 1)) * from;
                }
            }
        }
        g.after[at] = value;
    }
}

// The next level's right side, of the residual or a right side in `before`. A thread a coarse point.
__device__ inline void restrict_points(const box_pass& g) {
    const int nx = g.coarse_size[0], ny = g.coarse_size[1], stride = nx + 2;
    const int i = column_of_thread(nx), of_all = band_of_block(nx), j = of_all % ny, k = g.coarse_start + of_all / ny;
    if (i >= nx) return;
    double sum = 0.0;
    for (int pz = -1; pz <= 1; ++pz) {
        if (pz != 0 && !has_between(g, 2, pz < 0 ? k - 1 : k)) continue;
        const int plane = place_on(g, 2, 2 * k + pz);
        const int weight_plane = pz < 0 ? (k > 0 ? k : g.coarse_size[2]) - 1 : k;
        for (int py = -1; py <= 1; ++py) {
            if (py != 0 && !has_between(g, 1, py < 0 ? j - 1 : j)) continue;
            const int row = place_on(g, 1, 2 * j + py), weight_row = py < 0 ? (j > 0 ? j : ny) - 1 : j;
            for (int px = -1; px <= 1; ++px) {
                // Beyond an end that does not wrap around all is zero.
                const int column = place_on(g, 0, 2 * i + px);
                const double value = column < 0 ? 0.0 : g.before[plane * g.plane + row * (g.size[0] + 2) + column + 1];
                const int kind = (px & 1) | (py & 1) << 1 | (pz & 1) << 2;
                if (kind == 0) {
                    sum += value;
                    continue;
                }
                const int corner = (px < 0) | (py < 0) << 1 | (pz < 0) << 2;
                const double* weights = g.points->weights[first_weight[kind] + corner_number(kind, corner)];
                sum += read(weights + (weight_plane * g.coarse_plane + weight_row * stride + i + 1 - (px < 0))) * value;
            }
        }
    }
    g.coarse_right_side[k * g.coarse_plane + j * stride + i + 1] = sum;
}

}  // namespace crosswarp
