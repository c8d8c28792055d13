// A point and those around it; two neighbouring columns.
#pragma once
#include "multigrid/transfer.cuh"

namespace crosswarp {

template <class F> struct neighbours {
    F up_west, up, up_east, west, here, east, down_west, down, down_east;
};

// How far a step goes: ω times along the residual, at all points; or at those of one colour to where their equations hold, or ω
// times as far.
enum step_kind { along_residual, to_solution, beyond_solution };

// What a step found and left.
template <class F> struct stepped {
    F residual, after;
};

// Of the even column of a thread, and of the odd one behind it.
template <class F> struct alignas(2 * sizeof(F)) pair_of {
    F a, b;
};

// Couplings, and weights between levels, of the two columns of a thread where rows are all the same.
struct transfer_of_pair {
    float right[2], below[2], amid[4], left_right, left_upper, left_lower;

    // `i`: the coarse column of the pair.
    __device__ void load(const transfer_table& table, int j, int i) {
        const int step = table.nx + 2;
        const float* w = table.row(j) + i + 1;
#pragma unroll
        for (int k = 0; k < 2; ++k) {
            right[k] = w[(right_0 + k) * step];
            below[k] = w[(below_0 + k) * step];
        }
#pragma unroll
        for (int k = 0; k < 4; ++k) amid[k] = w[(amid_0 + k) * step];
        left_right = w[right_1 * step - 1];
        left_upper = w[amid_3 * step - 1];
        left_lower = w[amid_1 * step - 1];
    }

    // As `prolong`, for both columns of row y, of the coarse row at or above it and of the next: the values at column i
    // and behind it.
    __device__ pair_of<float> prolong(const pair_of<float>& here, const pair_of<float>& under, int y) const {
        if (!(y & 1)) return {here.a, right[0] * here.a + right[1] * here.b};
        return {below[0] * here.a + below[1] * under.a,
                (amid[0] * here.a + amid[1] * here.b) + (amid[2] * under.a + amid[3] * under.b)};
    }

    // As `restrict_to` where only the point itself and the corners are not zero.
    __device__ float restrict_red(const float (&up)[3], const float (&mid)[3], const float (&down)[3]) const {
        const float over = 0.f + (left_upper * up[0] + amid[2] * up[2]);
        const float under = 0.f + (left_lower * down[0] + amid[0] * down[2]);
        return (mid[1] + 0.f) + (over + under);
    }

    // As `restrict_to`.
    __device__ float restrict_to(const float (&up)[3], const float (&mid)[3], const float (&down)[3]) const {
        const float middle = mid[1] + (left_right * mid[0] + right[0] * mid[2]);
        const float over = below[1] * up[1] + (left_upper * up[0] + amid[2] * up[2]);
        const float under = below[0] * down[1] + (left_lower * down[0] + amid[0] * down[2]);
        return middle + (over + under);
    }
};

}  // namespace crosswarp
