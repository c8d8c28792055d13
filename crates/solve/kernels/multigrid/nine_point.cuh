// A coarse level: an operator of nine points. Operations as in `rows.rs`, in the same order.
#pragma once
#include "multigrid/neighbours.cuh"

namespace crosswarp {

struct nine_point {
    using number = float;
    static constexpr bool corners = true;
    static constexpr int west_step = -1, east_step = 1;
    // As `operator_rows.rs` numbers them.
    enum part { east, south, south_east, south_west, excess, parts };

    const level_pass<float>& g;
    const int x;
    const bool there;

    __device__ nine_point(const level_pass<float>& g, int x, bool there) : g(g), x(x), there(there) {}

    __device__ float right_side(int y) const { return g.right_side[y * g.pitch + x]; }
    __device__ float inverse(int y) const {
        return row_table<float, 1>{g.inverse_index, g.inverse_rows, g.nx}.part(y, 0)[x + 1];
    }

    __device__ stepped<float> step(const neighbours<float>& u, int y, double omega) const {
        if (!there) return {0.f, 0.f};
        const row_table<float, parts> table{g.operator_index, g.operator_rows, g.nx};
        const float *row = table.row(y) + x + 1, *above = table.row(y - 1) + x + 1;
        const int part = g.nx + 2;
        const float sides = (row[east * part] * (u.east - u.here) + row[east * part - 1] * (u.west - u.here)) +
                            (row[south * part] * (u.down - u.here) + above[south * part] * (u.up - u.here));
        const float diagonals =
            (row[south_east * part] * (u.down_east - u.here) + above[south_east * part - 1] * (u.up_west - u.here)) +
            (row[south_west * part] * (u.down_west - u.here) + above[south_west * part + 1] * (u.up_east - u.here));
        const float residual = right_side(y) + ((sides + diagonals) - row[excess * part] * u.here);
        return {residual, u.here + (float(omega) * inverse(y)) * residual};
    }

    __device__ float from_zero(int y, double omega) const {
        return there ? (float(omega) * inverse(y)) * right_side(y) : 0.f;
    }

    __device__ float corrected(float before, float correction, int y) const {
        return inverse(y) != 0.f ? before + correction : 0.f;
    }

    __device__ float to_restrict(float residual, int) const { return residual; }
};

}  // namespace crosswarp
