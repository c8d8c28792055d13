// Transpositions of batches of matrices on one GPU.
//
// Blocks go down the columns of tiles: those that run at the same time then write neighbouring parts of
// the same output rows, which DRAM takes best (measured, see src/transpose/cuda/tile_shapes.rs).
#include "transpose/arguments.cuh"
#include "transpose/shifted_tile.cuh"
#include "transpose/tile_shapes.cuh"

using namespace crosswarp;

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

#define TRANSPOSE(E, WHOLE, ANY, SQUARE, ANY_SQUARE)                                                         \
    extern "C" __global__ void __launch_bounds__(tile<E, WHOLE>::threads) transpose_##E(matrices m) {        \
        whole_tiles<tile<E, WHOLE>, E>(m);                                                                   \
    }                                                                                                        \
    extern "C" __global__ void __launch_bounds__(shifted_tile<E, ANY>::threads, E == 2 ? 3 : 1)              \
        transpose_any_##E(matrices m) {                                                                      \
        any_tiles<shifted_tile<E, ANY>, E>(m);                                                               \
    }                                                                                                        \
    extern "C" __global__ void __launch_bounds__(2 * tile<E, SQUARE>::threads) transpose_square_##E(squares m) { \
        square_tiles<tile<E, SQUARE>, E, true>(m);                                                           \
    }                                                                                                        \
    extern "C" __global__ void __launch_bounds__(2 * tile<E, ANY_SQUARE>::threads)                           \
        transpose_any_square_##E(squares m) {                                                                \
        square_tiles<tile<E, ANY_SQUARE>, E, false>(m);                                                      \
    }
TRANSPOSE_TILES(TRANSPOSE)

// The textbook's tile of 32 × 32 words, for measuring beside the others: each thread moves single words,
// a row of the tile by each warp. With rows of 32 words all words of a column lie in one bank, so reading
// columns takes 32 turns; one more word a row spreads them over all banks.
template <int Pitch> __device__ inline void textbook_tile(const matrices& m) {
    __shared__ u32 words[32][Pitch];
    u32 down = (m.rows + 31) / 32, across = (m.columns + 31) / 32;
    u64 column = blockIdx.x % across * 32, row = blockIdx.x / across % down * 32;
    u64 matrix = blockIdx.x / across / down;
    int x = threadIdx.x % 32, y = threadIdx.x / 32;
#pragma unroll
    for (int k = 0; k < 32; k += 8) {
        if (row + y + k < m.rows && column + x < m.columns) {
            words[y + k][x] = *reinterpret_cast<const u32*>(m.input + matrix * m.in_batch +
                                                            (row + y + k) * m.in_stride + (column + x) * 4);
        }
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < 32; k += 8) {
        if (column + y + k < m.columns && row + x < m.rows) {
            *reinterpret_cast<u32*>(m.output + matrix * m.out_batch + (column + y + k) * m.out_stride +
                                    (row + x) * 4) = words[x][y + k];
        }
    }
}
extern "C" __global__ void __launch_bounds__(256) transpose_padded(matrices m) { textbook_tile<33>(m); }
extern "C" __global__ void __launch_bounds__(256) transpose_unpadded(matrices m) { textbook_tile<32>(m); }
