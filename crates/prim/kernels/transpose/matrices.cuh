// Transpositions of batches of matrices on one GPU.
//
// Blocks go down the columns of tiles: those that run at the same time then write neighbouring parts of
// the same output rows, which DRAM takes best (measured, see src/transpose/cuda/tile_shapes.rs).
#pragma once
#include "transpose/arguments.cuh"
#include "transpose/shifted_tile.cuh"
#include "transpose/tile_shapes.cuh"

namespace crosswarp {

extern __shared__ chunk shared[];

template <class T, int E> __device__ inline void whole_tiles(const matrices& m) {
    u32 down = m.whole_rows / T::rows, across = m.whole_columns / T::columns;
    u32 row = blockIdx.x % down, rest = blockIdx.x / down;
    u64 column = rest % across, matrix = rest / across;
    T::load(shared, m.input + matrix * m.in_batch + row * T::rows * m.in_stride + column * T::columns * E,
            m.in_stride, threadIdx.x);
    __syncthreads();
    T::store(shared, m.output + matrix * m.out_batch + column * T::columns * m.out_stride + (u64)row * T::rows * E,
             m.out_stride, threadIdx.x);
}

template <class T, int E> __device__ inline void any_tiles(const matrices& m) {
    u32 down = (m.rows + T::rows - 1) / T::rows, across = (m.columns + T::columns - 1) / T::columns;
    u32 whole_down = m.whole_rows / T::rows, whole_across = m.whole_columns / T::columns;
    // First the tiles to the right of the whole ones, then those below.
    u32 right = (across - whole_across) * down, all = right + (down - whole_down) * whole_across;
    u64 matrix = blockIdx.x / all;
    u32 i = blockIdx.x % all;
    u64 row, column;
    if (i < right) {
        row = i % down, column = whole_across + i / down;
    } else {
        i -= right;
        row = whole_down + i % (down - whole_down), column = i / (down - whole_down);
    }
    row *= T::rows, column *= T::columns;
    int height = m.rows - row < T::loaded ? m.rows - row : T::loaded;
    int width = m.columns - column < T::columns ? m.columns - column : T::columns;
    const char* in = m.input + matrix * m.in_batch;
    T::load(shared, in + row * m.in_stride + column * E, m.in_stride, height, m.input, m.input + m.in_bytes,
            threadIdx.x);
    __syncthreads();
    T::store(shared, m.output + matrix * m.out_batch + column * m.out_stride + row * E, m.out_stride, height, width,
             row == 0, threadIdx.x);
}

}  // namespace crosswarp

// The kernels for elements of E bytes: TRANSPOSE_TILES_4(TRANSPOSE).
#define TRANSPOSE(E, WHOLE, ANY, SQUARE, ANY_SQUARE)                                                             \
    extern "C" __global__ void __launch_bounds__(cw::tile<E, WHOLE>::threads) transpose_##E(cw::matrices m) {    \
        cw::whole_tiles<cw::tile<E, WHOLE>, E>(m);                                                               \
    }                                                                                                            \
    extern "C" __global__ void __launch_bounds__(cw::shifted_tile<E, ANY>::threads, E == 2 ? 3 : 1)              \
        transpose_any_##E(cw::matrices m) {                                                                      \
        cw::any_tiles<cw::shifted_tile<E, ANY>, E>(m);                                                           \
    }
