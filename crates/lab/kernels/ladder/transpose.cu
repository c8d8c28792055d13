// The ladder of transposes: `to`, n x m, becomes the transpose of `from`, m x n (rows x columns), both
// row by row. Blocks of 32 x 8 threads, a tile of 32 x 32 elements each.
#include "base.cuh"

using cw::u32;

constexpr u32 TILE = 32, ROWS = 8;

// Reads along rows, writes down columns: each lane of a write touches a line of its own.
extern "C" __global__ void naive_read(float* to, const float* from, u32 rows, u32 columns) {
    u32 column = blockIdx.x * TILE + threadIdx.x;
    for (u32 k = threadIdx.y; k < TILE; k += ROWS) {
        u32 row = blockIdx.y * TILE + k;
        if (row < rows && column < columns) to[size_t(column) * rows + row] = from[size_t(row) * columns + column];
    }
}

// Writes along rows, reads down columns.
extern "C" __global__ void naive_write(float* to, const float* from, u32 rows, u32 columns) {
    u32 row = blockIdx.y * TILE + threadIdx.x;
    for (u32 k = threadIdx.y; k < TILE; k += ROWS) {
        u32 column = blockIdx.x * TILE + k;
        if (row < rows && column < columns) to[size_t(column) * rows + row] = from[size_t(row) * columns + column];
    }
}

// Through a tile in shared memory, so that both sides go along rows; `place(row, column)` says where
// the tile keeps an element.
template <class Place>
static __device__ void tiled(float* to, const float* from, u32 rows, u32 columns, float* tile, Place place) {
    u32 left = blockIdx.x * TILE, top = blockIdx.y * TILE;
    for (u32 k = threadIdx.y; k < TILE; k += ROWS) {
        u32 row = top + k, column = left + threadIdx.x;
        if (row < rows && column < columns) tile[place(k, threadIdx.x)] = from[size_t(row) * columns + column];
    }
    __syncthreads();
    for (u32 k = threadIdx.y; k < TILE; k += ROWS) {
        u32 row = top + threadIdx.x, column = left + k;
        if (row < rows && column < columns) to[size_t(column) * rows + row] = tile[place(threadIdx.x, k)];
    }
}

extern "C" __global__ void __launch_bounds__(256) tile(float* to, const float* from, u32 rows, u32 columns) {
    __shared__ float tile[TILE * TILE];
    tiled(to, from, rows, columns, tile, [](u32 row, u32 column) { return TILE * row + column; });
}

extern "C" __global__ void __launch_bounds__(256) tile_padded(float* to, const float* from, u32 rows, u32 columns) {
    __shared__ float tile[TILE * (TILE + 1)];
    tiled(to, from, rows, columns, tile, [](u32 row, u32 column) { return (TILE + 1) * row + column; });
}

extern "C" __global__ void __launch_bounds__(256) tile_swizzled(float* to, const float* from, u32 rows, u32 columns) {
    __shared__ float tile[TILE * TILE];
    tiled(to, from, rows, columns, tile, [](u32 row, u32 column) { return TILE * row + (column ^ row); });
}
