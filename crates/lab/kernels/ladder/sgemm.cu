// The ladder of matrix products: c = a * b, all n x n f32, row by row, n a multiple of 128. Multiplications
// and additions are fused where the code says so.
#include "base.cuh"

using cw::u32;

// A thread per element: two loads from memory for each product.
extern "C" __global__ void naive(const float* a, const float* b, float* c, u32 n) {
    u32 column = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y * 32 + threadIdx.y;
    float sum = 0;
    for (u32 k = 0; k < n; ++k) sum = __fmaf_rn(a[size_t(row) * n + k], b[size_t(k) * n + column], sum);
    c[size_t(row) * n + column] = sum;
}

// Tiles of 32 x 32 in shared memory: each element is loaded n / 32 times instead of n.
extern "C" __global__ void __launch_bounds__(1024) tiled(const float* a, const float* b, float* c, u32 n) {
    __shared__ float of_a[32][32], of_b[32][32];
    u32 x = threadIdx.x, y = threadIdx.y;
    u32 column = blockIdx.x * 32 + x, row = blockIdx.y * 32 + y;
    float sum = 0;
    for (u32 k = 0; k < n; k += 32) {
        of_a[y][x] = a[size_t(row) * n + k + x];
        of_b[y][x] = b[size_t(k + y) * n + column];
        __syncthreads();
#pragma unroll
        for (u32 i = 0; i < 32; ++i) sum = __fmaf_rn(of_a[y][i], of_b[i][x], sum);
        __syncthreads();
    }
    c[size_t(row) * n + column] = sum;
}

// Tiles of 128 x 128 per block of 256 threads; each thread keeps 8 x 8 sums in registers, so that 16
// loads from shared memory serve 64 products.
static __device__ void in_registers(const float* a, const float* b, float* c, u32 n) {
    constexpr u32 TILE = 128, DEPTH = 8;
    __shared__ float of_a[DEPTH][TILE + 4], of_b[DEPTH][TILE];  // a's tile is kept transposed, padded
    u32 t = threadIdx.x, x = t % 16, y = t / 16;
    u32 left = blockIdx.x * TILE, top = blockIdx.y * TILE;
    // Who loads what: 4 floats a thread of each tile.
    u32 a_row = t / 2, a_column = t % 2 * 4, b_row = t / 32, b_column = t % 32 * 4;
    float sum[8][8] = {};
    for (u32 k = 0; k < n; k += DEPTH) {
        float4 from_a = *reinterpret_cast<const float4*>(&a[size_t(top + a_row) * n + k + a_column]);
        float4 from_b = *reinterpret_cast<const float4*>(&b[size_t(k + b_row) * n + left + b_column]);
        __syncthreads();  // the last round's reads are over
        of_a[a_column][a_row] = from_a.x;
        of_a[a_column + 1][a_row] = from_a.y;
        of_a[a_column + 2][a_row] = from_a.z;
        of_a[a_column + 3][a_row] = from_a.w;
        *reinterpret_cast<float4*>(&of_b[b_row][b_column]) = from_b;
        __syncthreads();
#pragma unroll
        for (u32 i = 0; i < DEPTH; ++i) {
            float column[8], row[8];
            // Two quads 64 apart each, so that the lanes of a quarter warp read neighbouring banks.
#pragma unroll
            for (u32 h = 0; h < 2; ++h) {
                *reinterpret_cast<float4*>(&column[4 * h]) = *reinterpret_cast<float4*>(&of_a[i][64 * h + 4 * y]);
                *reinterpret_cast<float4*>(&row[4 * h]) = *reinterpret_cast<float4*>(&of_b[i][64 * h + 4 * x]);
            }
#pragma unroll
            for (u32 r = 0; r < 8; ++r) {
#pragma unroll
                for (u32 s = 0; s < 8; ++s) sum[r][s] = __fmaf_rn(column[r], row[s], sum[r][s]);
            }
        }
    }
#pragma unroll
    for (u32 r = 0; r < 8; ++r) {
        u32 row = top + 64 * (r / 4) + 4 * y + r % 4;
#pragma unroll
        for (u32 h = 0; h < 2; ++h) {
            float4 quad = make_float4(sum[r][4 * h], sum[r][4 * h + 1], sum[r][4 * h + 2], sum[r][4 * h + 3]);
            *reinterpret_cast<float4*>(&c[size_t(row) * n + left + 64 * h + 4 * x]) = quad;
        }
    }
}

// The same code under two launch bounds: two blocks an SM; four, which do not leave enough registers for
// the sums.
extern "C" __global__ void __launch_bounds__(256, 2) register_tiled(const float* a, const float* b, float* c, u32 n) {
    in_registers(a, b, c, n);
}
extern "C" __global__ void __launch_bounds__(256, 4) register_starved(const float* a, const float* b, float* c, u32 n) {
    in_registers(a, b, c, n);
}
