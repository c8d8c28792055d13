// Transpositions of batches of narrow matrices: few rows ("flat") or few columns ("tall"), at most 32 and 128 bytes.
//
// A tile has all of the narrow side and 256 places of the other. A thread moves one of these places on the one side of
// shared memory, where memory is walked along long rows; on the other the rows are short, and neighbouring threads have
// neighbouring elements whatever row they are of. In shared memory short rows are an odd number of elements apart, so that
// threads at one place of neighbouring rows meet different banks.
#pragma once
#include "transpose/arguments.cuh"
#include "transpose/tile.cuh"
#include "transpose/tile_shapes.cuh"

namespace crosswarp {

constexpr int narrow_threads = 256;

// Moves an element between memory and shared memory.
template <class T, bool load> __device__ inline void move(char* memory, T& tile) {
    if (load) {
        tile = *reinterpret_cast<const T*>(memory);
    } else {
        *reinterpret_cast<T*>(memory) = tile;
    }
}

// Along the long rows, `narrow` of them and `stride` bytes apart, each thread at its place of every one.
template <class T, bool load>
__device__ inline void along(T* tile, char* memory, u64 stride, int narrow, int pitch, int count) {
    const int me = threadIdx.x;
    if (me >= count) return;
    memory += u64(me) * sizeof(T);
#pragma unroll 8
    for (int k = 0; k < narrow; ++k) move<T, load>(memory + k * stride, tile[me * pitch + k]);
}

// Through the `count` short rows, one after the other.
template <class T, bool load>
__device__ inline void through(T* tile, char* memory, u64 stride, int narrow, int pitch, int count) {
    const int rows = narrow_threads / narrow, rest = narrow_threads - rows * narrow;
    int row = int(threadIdx.x) / narrow, place = int(threadIdx.x) - row * narrow;
#pragma unroll 4
    for (int k = 0; k < narrow; ++k) {
        if (row < count) move<T, load>(memory + row * stride + u64(place) * sizeof(T), tile[row * pitch + place]);
        row += rows, place += rest;
        if (place >= narrow) place -= narrow, ++row;
    }
}

// Transposes one tile: `flat` if the input's rows are the long ones.
template <int E, bool flat> __device__ inline void narrow_tile(const matrices& m) {
    using T = typename element_of<E>::type;
    extern __shared__ chunk bytes[];
    T* tile = reinterpret_cast<T*>(bytes);
    const u64 all = flat ? m.columns : m.rows;
    const int narrow = int(flat ? m.rows : m.columns), pitch = narrow | 1;
    const u64 tiles = (all + narrow_threads - 1) / narrow_threads;
    const u64 matrix = blockIdx.x / tiles, first = (blockIdx.x - matrix * tiles) * narrow_threads;
    const int count = int(min(u64(narrow_threads), all - first));
    const u64 long_stride = flat ? m.in_stride : m.out_stride, short_stride = flat ? m.out_stride : m.in_stride;
    const char* in = m.input + matrix * m.in_batch + (flat ? first * E : first * m.in_stride);
    char* out = m.output + matrix * m.out_batch + (flat ? first * m.out_stride : first * E);
    if (flat) {
        along<T, true>(tile, const_cast<char*>(in), long_stride, narrow, pitch, count);
    } else {
        through<T, true>(tile, const_cast<char*>(in), short_stride, narrow, pitch, count);
    }
    // What is stored was loaded by others.
    __syncthreads();
    if (flat) {
        through<T, false>(tile, out, short_stride, narrow, pitch, count);
    } else {
        along<T, false>(tile, out, long_stride, narrow, pitch, count);
    }
}

}  // namespace crosswarp

// The kernels for elements of E bytes: TRANSPOSE_TILES_4(TRANSPOSE_NARROW).
#define TRANSPOSE_NARROW(E, WHOLE, ANY, SQUARE, ANY_SQUARE)                                                              \
    extern "C" __global__ void __launch_bounds__(cw::narrow_threads) transpose_flat_##E(cw::matrices m) {                \
        cw::narrow_tile<E, true>(m);                                                                                     \
    }                                                                                                                    \
    extern "C" __global__ void __launch_bounds__(cw::narrow_threads) transpose_tall_##E(cw::matrices m) {                \
        cw::narrow_tile<E, false>(m);                                                                                    \
    }
