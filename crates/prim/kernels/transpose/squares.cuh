// Transpositions of batches of square matrices on one GPU, each into its own place.
#pragma once
#include "transpose/arguments.cuh"
#include "transpose/tile.cuh"
#include "transpose/tile_shapes.cuh"

namespace crosswarp {

extern __shared__ chunk shared[];

// Pair `i` of tiles that change places, counted down the columns of the upper triangle.
__device__ inline u32 pairs_of(u64 tiles) { return tiles * (tiles + 1) / 2; }
__device__ inline void triangle(u32 i, u32& row, u32& column) {
    column = (u32)((sqrt(8.0 * i + 1.0) - 1.0) * 0.5);
    while (pairs_of(column + 1) <= i) ++column;
    while (pairs_of(column) > i) --column;
    row = i - pairs_of(column);
}

// Half of the block's threads take the tile above the diagonal, half the one below; a tile on the
// diagonal leaves the second half idle. Race prevented by the barrier: a tile is overwritten only when
// both have been read.
template <class T, int E, bool Whole> __device__ inline void square_tiles(const squares& m) {
    u32 left_out = Whole ? 0 : pairs_of(m.whole / T::rows);
    u32 pairs = pairs_of(Whole ? m.whole / T::rows : (m.side + T::rows - 1) / T::rows) - left_out;
    u64 matrix = blockIdx.x / pairs;
    u32 row, column;
    triangle(blockIdx.x % pairs + left_out, row, column);
    bool lower = threadIdx.x >= T::threads, works = !lower || row != column;
    int thread = threadIdx.x - (lower ? T::threads : 0);
    chunk* mine = shared + (lower ? (Whole ? T::bytes : T::any_bytes) / 16 : 0);
    u64 r = (u64)(lower ? column : row) * T::rows, c = (u64)(lower ? row : column) * T::rows;
    char* data = m.data + matrix * m.batch;
    char* from = data + r * m.stride + c * E;
    char* to = data + c * m.stride + r * E;
    int height = m.side - r < T::rows ? m.side - r : T::rows;
    int width = m.side - c < T::rows ? m.side - c : T::rows;
    bool shifted = false;
    if (works) {
        if constexpr (Whole) {
            T::load(mine, from, m.stride, thread);
        } else {
            shifted = T::shiftable(from, m.stride, height, width, m.data, m.data + m.bytes);
            T::load_any(mine, shifted, from, m.stride, height, width, to, m.stride, m.data,
                        m.data + m.bytes, thread);
        }
    }
    __syncthreads();
    if (works) {
        if constexpr (Whole) {
            T::store(mine, to, m.stride, thread);
        } else {
            T::store_any(mine, shifted, to, m.stride, height, width, thread);
        }
    }
}

}  // namespace crosswarp

// The kernels for elements of E bytes: TRANSPOSE_TILES_4(TRANSPOSE_SQUARES).
#define TRANSPOSE_SQUARES(E, WHOLE, ANY, SQUARE, ANY_SQUARE)                                                     \
    extern "C" __global__ void __launch_bounds__(2 * cw::tile<E, SQUARE>::threads)                               \
        transpose_square_##E(cw::squares m) {                                                                    \
        cw::square_tiles<cw::tile<E, SQUARE>, E, true>(m);                                                       \
    }                                                                                                            \
    extern "C" __global__ void __launch_bounds__(2 * cw::tile<E, ANY_SQUARE>::threads)                           \
        transpose_any_square_##E(cw::squares m) {                                                                \
        cw::square_tiles<cw::tile<E, ANY_SQUARE>, E, false>(m);                                                  \
    }
