// Ghost rows and columns, and the halos beyond them, of a grid that wraps around: copies of inner cells.
#pragma once
#include "jacobi/plane.cuh"

namespace crosswarp {

// The inner row (or column) that number `at` of a periodic grid of `total` is a copy of.
__device__ inline int image(int at, int total) {
    int period = total - 2, from = (at - 1) % period;
    return 1 + (from < 0 ? from + period : from);
}

// The `count` rows up to row 0 and from row ny − 1 on; blocks in y take a row each, those in x share it.
// `field`: address of row `first`, column 0.
template <class F> __device__ inline void wrap_rows(F* field, i64 pitch, int first, int nx, int ny, int count) {
    int i = blockIdx.y;
    int y = i < count ? 1 - count + i : ny - 1 + (i - count);
    const F* from = field + (i64)(image(y, ny) - first) * pitch;
    F* to = field + (i64)(y - first) * pitch;
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x < nx) to[x] = from[x];
}

// The columns up to column 0 and from column nx − 1 on of `rows` rows from `y0`; a thread a row and column.
template <class F> __device__ inline void wrap_columns(F* field, i64 pitch, int first, int nx, int y0, int rows) {
    constexpr int side = pad + 1;
    i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= (i64)rows * 2 * side) return;
    int column = i % (2 * side);
    int x = column < side ? column - pad : nx - 1 + (column - side);
    F* row = field + (y0 - first + i / (2 * side)) * pitch;
    row[x] = row[image(x, nx)];
}

}  // namespace crosswarp
