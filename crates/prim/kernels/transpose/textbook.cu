#include "transpose/arguments.cuh"

using namespace crosswarp;

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
