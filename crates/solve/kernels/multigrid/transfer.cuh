// Between a level and the next coarser one. Operations as in `transfer_rows.rs`, in the same order.
#pragma once
#include "multigrid/arguments.cuh"

namespace crosswarp {

// What no kernel writes while others read it: loads that may be moved before stores.
template <class T> __device__ inline T read(const T* from) { return __ldg(from); }

// Rows of a table of `Parts` parts for rows of `nx` columns; those −1 and up can be asked for.
template <class F, int Parts> struct row_table {
    const u32* index;
    const F* rows;
    int nx;

    // Part p of column x is at (p)[x + 1] of what `part` gives.
    __device__ const F* part(int y, int p) const { return row(y) + p * (nx + 2); }
    __device__ const F* row(int y) const { return rows + (i64)read(index + y) * (Parts * (nx + 2)); }
};

// As `interpolation.rs` numbers them.
enum weight { right_0, right_1, below_0, below_1, amid_0, amid_1, amid_2, amid_3, weights };
using transfer_table = row_table<float, weights>;

// What the points (2i, 2j) and around it of a level take from the next.
struct coarse_values {
    const float* field;
    i64 pitch;
    int nx, ny;
    bool wrap_x, wrap_y;

    // The value at (i, j) or one beyond the end. `given`: in memory that nobody writes meanwhile.
    template <bool given> __device__ float at(int i, int j) const {
        if (i == nx) {
            if (!wrap_x) return 0.f;
            i = 0;
        }
        if (j == ny) {
            if (!wrap_y) return 0.f;
            j = 0;
        }
        const float* from = field + (j * pitch + i);
        return given ? read(from) : *from;
    }
};

// The correction of the point at column x, row y.
template <bool given>
__device__ inline float prolong_from(const transfer_table& transfer, const coarse_values& coarse, int x, int y) {
    const int i = x >> 1, j = y >> 1, step = transfer.nx + 2;
    const float* w = transfer.row(j) + i + 1;
    const float here = coarse.template at<given>(i, j);
    if (!(y & 1)) {
        if (!(x & 1)) return here;
        return read(w + right_0 * step) * here + read(w + right_1 * step) * coarse.template at<given>(i + 1, j);
    }
    const float under = coarse.template at<given>(i, j + 1);
    if (!(x & 1)) return read(w + below_0 * step) * here + read(w + below_1 * step) * under;
    return (read(w + amid_0 * step) * here + read(w + amid_1 * step) * coarse.template at<given>(i + 1, j)) +
           (read(w + amid_2 * step) * under + read(w + amid_3 * step) * coarse.template at<given>(i + 1, j + 1));
}

__device__ inline float prolong(const transfer_table& transfer, const coarse_values& coarse, int x, int y) {
    return prolong_from<true>(transfer, coarse, x, y);
}

// The value of coarse point (i, j), of the fine values at columns 2i − 1, 2i, 2i + 1 of three rows.
__device__ inline float restrict_to(const transfer_table& transfer, int i, int j, const float (&up)[3],
                                    const float (&mid)[3], const float (&down)[3]) {
    const int step = transfer.nx + 2;
    const float *here = transfer.row(j) + i + 1, *above = transfer.row(j - 1) + i + 1;
    const float middle = mid[1] + (read(here + right_1 * step - 1) * mid[0] + read(here + right_0 * step) * mid[2]);
    const float over = read(above + below_1 * step) * up[1] +
                       (read(above + amid_3 * step - 1) * up[0] + read(above + amid_2 * step) * up[2]);
    const float under = read(here + below_0 * step) * down[1] +
                        (read(here + amid_1 * step - 1) * down[0] + read(here + amid_0 * step) * down[2]);
    return middle + (over + under);
}

}  // namespace crosswarp
