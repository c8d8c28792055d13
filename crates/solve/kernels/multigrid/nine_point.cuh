// A coarse level: an operator of nine points. Operations as in `rows.rs`, in the same order.
#pragma once
#include "multigrid/neighbours.cuh"

namespace crosswarp {

struct nine_point {
    using number = float;
    static constexpr bool corners = true;
    static constexpr bool held = false, mirrors_west = false, mirrors_east = false;
    // As `operator_rows.rs` numbers them.
    enum part { east, south, south_east, south_west, excess, parts };

    const level_pass<float>& g;
    const int x;
    const bool there;
    // Whether the column is one of those with points that are alike.
    const bool same_column;

    __device__ nine_point(const level_pass<float>& g, int x, bool there)
        : g(g), x(x), there(there), same_column(x >= g.same_columns[0] && x < g.same_columns[1]) {}

    __device__ bool is_same(int y) const { return same_column && y >= g.same_rows[0] && y < g.same_rows[1]; }
    // b − Au where points are alike: see `same_nine_point`. Of three rows the second difference; of the column the differences to
    // the point below and from the one above.
    __device__ static float same_residual(const level_pass<float>& g, float up, float here, float down, float to_down,
                                          float from_up, float b) {
        const float across = g.same_couplings[0] * here + g.same_couplings[1] * (up + down);
        return b + (across + g.same_couplings[2] * (to_down - from_up));
    }
    __device__ static float same_residual(const level_pass<float>& g, const neighbours<float>& u, float b) {
        const float up = (u.up_west - u.up) + (u.up_east - u.up), here = (u.west - u.here) + (u.east - u.here);
        const float down = (u.down_west - u.down) + (u.down_east - u.down);
        return same_residual(g, up, here, down, u.down - u.here, u.here - u.up, b);
    }

    __device__ float right_side(int y) const { return read(g.right_side + (y * g.pitch + x)); }
    __device__ float inverse(int y) const { return is_same(y) ? g.same_couplings[3] : stored_inverse(y); }
    __device__ float stored_inverse(int y) const {
        return read(row_table<float, 1>{g.inverse_index, g.inverse_rows, g.nx}.part(y, 0) + x + 1);
    }

    // To a point's neighbours.
    struct couplings {
        float to_east, to_west, to_south, to_north, to_south_east, to_north_west, to_south_west, to_north_east, excess_of;

        __device__ void load(const level_pass<float>& g, int y, int x) {
            const row_table<float, parts> table{g.operator_index, g.operator_rows, g.nx};
            const float *row = table.row(y) + x + 1, *above = table.row(y - 1) + x + 1;
            const int part = g.nx + 2;
            to_east = read(row + east * part);
            to_west = read(row + east * part - 1);
            to_south = read(row + south * part);
            to_north = read(above + south * part);
            to_south_east = read(row + south_east * part);
            to_north_west = read(above + south_east * part - 1);
            to_south_west = read(row + south_west * part);
            to_north_east = read(above + south_west * part + 1);
            excess_of = read(row + excess * part);
        }
        // b − Au.
        __device__ float residual(const neighbours<float>& u, float b) const {
            const float sides = (to_east * (u.east - u.here) + to_west * (u.west - u.here)) +
                                (to_south * (u.down - u.here) + to_north * (u.up - u.here));
            const float diagonals = (to_south_east * (u.down_east - u.here) + to_north_west * (u.up_west - u.here)) +
                                    (to_south_west * (u.down_west - u.here) + to_north_east * (u.up_east - u.here));
            return b + ((sides + diagonals) - excess_of * u.here);
        }
    };

    // b − Au at row y.
    __device__ float residual(const neighbours<float>& u, int y, float b) const {
        return is_same(y) ? same_residual(g, u, b) : stored_residual(u, y, b);
    }
    __device__ float stored_residual(const neighbours<float>& u, int y, float b) const {
        couplings at;
        at.load(g, y, x);
        return at.residual(u, b);
    }

    __device__ stepped<float> step(const neighbours<float>& u, int y, double omega, step_kind) const {
        if (!there) return {0.f, 0.f};
        const float found = residual(u, y, right_side(y));
        return {found, u.here + (float(omega) * inverse(y)) * found};
    }

    __device__ float from_zero(int y, double omega) const {
        return there ? (float(omega) * inverse(y)) * right_side(y) : 0.f;
    }

    __device__ float corrected(float before, float correction, int y) const {
        return stored_inverse(y) != 0.f ? before + correction : 0.f;
    }

    // Where points are alike, far from the sides.
    static constexpr bool has_same_rows = true;
    struct same_rows {
        __device__ void load(const level_pass<float>&, int, int) {}
        __device__ void step(const level_pass<float>& g, double omega, const pair_of<float>& b, const pair_of<float> (&u)[3],
                             const float (&west)[3], const float (&east)[3], stepped<float>& first, stepped<float>& second,
                             bool, bool, step_kind) const {
            const float length = float(omega) * g.same_couplings[3];
            // Second differences. The compiler sees what columns and rows side by side share.
            float one[3], other[3];
#pragma unroll
            for (int k = 0; k < 3; ++k) {
                const float between = u[k].b - u[k].a;
                one[k] = (west[k] - u[k].a) + between;
                other[k] = (east[k] - u[k].b) - between;
            }
            first.residual = same_residual(g, one[0], one[1], one[2], u[2].a - u[1].a, u[1].a - u[0].a, b.a);
            second.residual = same_residual(g, other[0], other[1], other[2], u[2].b - u[1].b, u[1].b - u[0].b, b.b);
            first.after = u[1].a + length * first.residual;
            second.after = u[1].b + length * second.residual;
        }
        __device__ pair_of<float> from_zero(const level_pass<float>& g, double omega, const pair_of<float>& b) const {
            const float length = float(omega) * g.same_couplings[3];
            return {length * b.a, length * b.b};
        }
        __device__ pair_of<float> corrected(const level_pass<float>&, const pair_of<float>& before,
                                            const pair_of<float>& by) const {
            return {before.a + by.a, before.b + by.b};
        }
        __device__ static float to_restrict(const level_pass<float>&, float residual) { return residual; }
    };

    // Where rows are all the same and far from the sides: couplings in registers.
    static constexpr bool has_calm_rows = true;
    struct calm_rows {
        // To the columns before, between and behind.
        float along[3];
        pair_of<float> to_south, to_north, to_south_east, to_north_west, to_south_west, to_north_east, excess_of, inverse_of;

        __device__ void load(const level_pass<float>& g, int y, int x) {
            const row_table<float, parts> table{g.operator_index, g.operator_rows, g.nx};
            const float *row = table.row(y) + x + 1, *above = table.row(y - 1) + x + 1;
            const float* inverse = row_table<float, 1>{g.inverse_index, g.inverse_rows, g.nx}.row(y) + x + 1;
            const int part = g.nx + 2;
            auto both = [](const float* at) -> pair_of<float> { return {at[0], at[1]}; };
#pragma unroll
            for (int k = 0; k < 3; ++k) along[k] = row[east * part + k - 1];
            to_south = both(row + south * part);
            to_north = both(above + south * part);
            to_south_east = both(row + south_east * part);
            to_north_west = both(above + south_east * part - 1);
            to_south_west = both(row + south_west * part);
            to_north_east = both(above + south_west * part + 1);
            excess_of = both(row + excess * part);
            inverse_of = both(inverse);
        }
        __device__ void step(const level_pass<float>&, double omega, const pair_of<float>& b,
                             const pair_of<float> (&u)[3], const float (&west)[3], const float (&east)[3],
                             stepped<float>& first, stepped<float>& second, bool, bool, step_kind) const {
            {
                const float here = u[1].a;
                const float sides = (along[1] * (u[1].b - here) + along[0] * (west[1] - here)) +
                                    (to_south.a * (u[2].a - here) + to_north.a * (u[0].a - here));
                const float diagonals = (to_south_east.a * (u[2].b - here) + to_north_west.a * (west[0] - here)) +
                                        (to_south_west.a * (west[2] - here) + to_north_east.a * (u[0].b - here));
                const float residual = b.a + ((sides + diagonals) - excess_of.a * here);
                first = {residual, here + (float(omega) * inverse_of.a) * residual};
            }
            {
                const float here = u[1].b;
                const float sides = (along[2] * (east[1] - here) + along[1] * (u[1].a - here)) +
                                    (to_south.b * (u[2].b - here) + to_north.b * (u[0].b - here));
                const float diagonals = (to_south_east.b * (east[2] - here) + to_north_west.b * (u[0].a - here)) +
                                        (to_south_west.b * (u[2].a - here) + to_north_east.b * (east[0] - here));
                const float residual = b.b + ((sides + diagonals) - excess_of.b * here);
                second = {residual, here + (float(omega) * inverse_of.b) * residual};
            }
        }
        __device__ pair_of<float> from_zero(const level_pass<float>&, double omega, const pair_of<float>& b) const {
            return {(float(omega) * inverse_of.a) * b.a, (float(omega) * inverse_of.b) * b.b};
        }
        __device__ pair_of<float> corrected(const level_pass<float>&, const pair_of<float>& before,
                                            const pair_of<float>& by) const {
            return {inverse_of.a != 0.f ? before.a + by.a : 0.f, inverse_of.b != 0.f ? before.b + by.b : 0.f};
        }
        __device__ static float to_restrict(const level_pass<float>&, float residual) { return residual; }
    };

    // The same at the sides, where some of a row's points may be alike.
    struct edge_rows : calm_rows {
        bool same_first, same_second;

        __device__ void load(const level_pass<float>& g, int y, int x) {
            calm_rows::load(g, y, x);
            same_first = nine_point(g, x, true).is_same(y);
            same_second = nine_point(g, x + 1, true).is_same(y);
        }
        __device__ void step(const level_pass<float>& g, double omega, const pair_of<float>& b, const pair_of<float> (&u)[3],
                             const float (&west)[3], const float (&east)[3], stepped<float>& first, stepped<float>& second,
                             bool of_first, bool of_second, step_kind kind) const {
            calm_rows::step(g, omega, b, u, west, east, first, second, of_first, of_second, kind);
            stepped<float> one, other;
            same_rows().step(g, omega, b, u, west, east, one, other, of_first, of_second, kind);
            if (same_first) first = one;
            if (same_second) second = other;
        }
    };

    __device__ float to_restrict(float residual, int) const { return residual; }
};

}  // namespace crosswarp
