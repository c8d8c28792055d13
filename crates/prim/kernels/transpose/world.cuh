// A matrix whose rows lie on several PEs, transposed by puts: each tile goes straight from this PE's
// shared memory to the memory of the PE whose rows of the output it holds.
#pragma once
#include "pe.cuh"
#include "transpose/arguments.cuh"
#include "transpose/tile.cuh"
#include "transpose/tile_shapes.cuh"

namespace crosswarp {

extern __shared__ chunk shared[];

template <class T, int E> __device__ inline void put_tile(const part& p) {
    int n = n_pes();
    // Consecutive blocks write to different PEs, and each PE begins with another: all links are busy.
    int owner = (my_pe() + 1 + blockIdx.x % n) % n;
    u64 first_column = p.columns * owner / n, columns = p.columns * (owner + 1) / n - first_column;
    u32 i = blockIdx.x / n, down = (p.rows + T::rows - 1) / T::rows;
    u64 row = (u64)(i % down) * T::rows, column = (u64)(i / down) * T::columns;
    if (column >= columns) return;
    int height = p.rows - row < T::rows ? p.rows - row : T::rows;
    int width = columns - column < T::columns ? columns - column : T::columns;
    u64 stride = p.all_rows * E;
    const char* from = p.input + row * p.in_stride + (first_column + column) * E;
    char* to = ptr(p.output, owner) + column * stride + (p.first_row + row) * E;
    u64 places = reinterpret_cast<u64>(from) | p.in_stride | reinterpret_cast<u64>(to) | stride;
    if (places % 16 == 0 && height == T::rows && width == T::columns) {
        T::load(shared, from, p.in_stride, threadIdx.x);
        __syncthreads();
        T::store(shared, to, stride, threadIdx.x);
    } else {
        bool shifted = T::shiftable(from, p.in_stride, height, width, p.input, p.input + p.in_bytes);
        T::load_any(shared, shifted, from, p.in_stride, height, width, to, stride, p.input, p.input + p.in_bytes,
                    threadIdx.x);
        __syncthreads();
        T::store_any(shared, shifted, to, stride, height, width, threadIdx.x);
    }
}

}  // namespace crosswarp

// The kernel for elements of E bytes: TRANSPOSE_WORLD_TILES_4(TRANSPOSE_PUT).
#define TRANSPOSE_PUT(E, TILE)                                                                               \
    extern "C" __global__ void __launch_bounds__(cw::tile<E, TILE>::threads) transpose_put_##E(cw::part p) { \
        cw::put_tile<cw::tile<E, TILE>, E>(p);                                                               \
    }
