// The finest level: 4u − (the four neighbours) = b, or couplings that differ from place to place, with fixed cells and
// sides of any kind. Operations as in `finest.rs` and `rows.rs`, in the same order.
#pragma once
#include "multigrid/neighbours.cuh"

namespace crosswarp {

// The part of a point's length along an axis of `len` points that lies in the grid: a half on mirrors.
__device__ __forceinline__ double part_along(int at, int len, int first, int last) {
    return (at == 0 && first == end_mirror) || (at == len - 1 && last == end_mirror) ? 0.5 : 1.0;
}

// Whether a point of the level of `g` is on a side that keeps its values.
template <class G> __device__ __forceinline__ bool on_fixed_side(const G& g, int x, int y) {
    return (x == 0 && g.ends[0] == end_fixed) || (x == g.nx - 1 && g.ends[1] == end_fixed) ||
           (y == 0 && g.ends[2] == end_fixed) || (y == g.ny - 1 && g.ends[3] == end_fixed);
}

template <bool varying> struct five_point {
    using number = double;
    static constexpr bool corners = false;
    // Of tables of couplings.
    enum part { east, south, excess, parts };

    const level_pass<double>& g;
    const int x;
    const bool there;
    // Whether the column is a fixed side.
    const bool held;
    // Whether the column has the same neighbour on both sides.
    const bool mirrors_west, mirrors_east;

    __device__ five_point(const level_pass<double>& g, int x, bool there)
        : g(g), x(x), there(there),
          held((x == 0 && g.ends[0] == end_fixed) || (x == g.nx - 1 && g.ends[1] == end_fixed)),
          mirrors_west(x == 0 && g.ends[0] == end_mirror), mirrors_east(x == g.nx - 1 && g.ends[1] == end_mirror) {}

    __device__ bool row_held(int y) const {
        return (y == 0 && g.ends[2] == end_fixed) || (y == g.ny - 1 && g.ends[3] == end_fixed);
    }
    __device__ bool keeps(int y) const {
        return held || row_held(y) || (g.fixed && there && read(g.fixed + (y * g.pitch + x)));
    }
    __device__ double right_side(int y) const { return g.right_side && there ? read(g.right_side + (y * g.pitch + x)) : 0.0; }
    __device__ double inverse(int y) const {
        return read(row_table<double, 1>{g.inverse_index, g.inverse_rows, g.nx}.part(y, 0) + x + 1);
    }

    // Where all couplings are 1, a step of a colour: the row below is the newest, so it is added last.
    __device__ static double relaxed(double right_side, double omega, double up, double west, double here, double east,
                                     double down, step_kind kind) {
        const double solution = 0.25 * (((right_side + (east + west)) + up) + down);
        return kind == to_solution ? solution : here + (4.0 * omega) * (solution - here);
    }

    // b − Au, and a step.
    __device__ stepped<double> step(const neighbours<double>& u, int y, double omega, step_kind kind) const {
        if (keeps(y)) return {0.0, u.here};
        double residual, length;
        if constexpr (varying) {
            const row_table<double, parts> table{g.operator_index, g.operator_rows, g.nx};
            const double *row = table.row(y) + x + 1, *above = table.row(y - 1) + x + 1;
            const int part = g.nx + 2;
            const double across = read(row + east * part) * (u.east - u.here) + read(row + east * part - 1) * (u.west - u.here);
            const double down = read(row + south * part) * (u.down - u.here) + read(above + south * part) * (u.up - u.here);
            residual = right_side(y) + ((across + down) - read(row + excess * part) * u.here);
            length = omega * inverse(y);
        } else {
            const double sum = (u.east + u.west) + (u.down + u.up);
            residual = (sum - 4.0 * u.here) + right_side(y);
            if (kind != along_residual) {
                return {residual, relaxed(right_side(y), omega, u.up, u.west, u.here, u.east, u.down, kind)};
            }
            length = omega;
        }
        return {residual, u.here + length * residual};
    }

    __device__ double from_zero(int y, double omega) const {
        if (keeps(y) || !g.right_side) return 0.0;
        if constexpr (varying) return (inverse(y) * omega) * right_side(y);
        return omega * right_side(y);
    }

    __device__ double corrected(double before, float correction, int y) const {
        return keeps(y) ? before : before + double(correction) * g.up_scale;
    }

    // Where rows are all the same and far from the sides: without tables, where all couplings are 1.
    static constexpr bool has_calm_rows = !varying, has_same_rows = false;
    struct calm_rows {
        __device__ void load(const level_pass<double>&, int, int) {}
        __device__ static stepped<double> of(double right_side, double omega, double up, double west, double here,
                                             double east, double down, step_kind kind) {
            const double sum = (east + west) + (down + up), residual = (sum - 4.0 * here) + right_side;
            if (kind == along_residual) return {residual, here + omega * residual};
            return {residual, relaxed(right_side, omega, up, west, here, east, down, kind)};
        }
        // The first column, the second or both: rows `up`, `here` and `down` with the columns before and behind.
        __device__ void step(const level_pass<double>&, double omega, const pair_of<double>& b,
                             const pair_of<double> (&u)[3], const double (&west)[3], const double (&east)[3],
                             stepped<double>& first, stepped<double>& second, bool of_first, bool of_second,
                             step_kind kind) const {
            if (of_first) first = of(b.a, omega, u[0].a, west[1], u[1].a, u[1].b, u[2].a, kind);
            if (of_second) second = of(b.b, omega, u[0].b, u[1].a, u[1].b, east[1], u[2].b, kind);
        }
        __device__ pair_of<double> from_zero(const level_pass<double>&, double omega, const pair_of<double>& b) const {
            return {omega * b.a, omega * b.b};
        }
        __device__ pair_of<double> corrected(const level_pass<double>& g, const pair_of<double>& before,
                                             const pair_of<float>& by) const {
            return {before.a + double(by.a) * g.up_scale, before.b + double(by.b) * g.up_scale};
        }
        __device__ static float to_restrict(const level_pass<double>& g, double residual) {
            return float(residual * g.down_scale);
        }
    };

    using edge_rows = calm_rows;

    // The residual as that of the symmetric operator, for the next level.
    __device__ float to_restrict(double residual, int y) const {
        if constexpr (!varying) {
            if (x == 0 && g.ends[0] == end_mirror) residual *= 0.5;
            if (x == g.nx - 1 && g.ends[1] == end_mirror) residual *= 0.5;
            if ((y == 0 && g.ends[2] == end_mirror) || (y == g.ny - 1 && g.ends[3] == end_mirror)) residual *= 0.5;
        }
        return float(residual * g.down_scale);
    }
};

}  // namespace crosswarp
