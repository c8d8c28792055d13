// The roofs of a GPU: reading, arithmetic, and the latency of memory.
#include "block.cuh"

using cw::u32;
using cw::u64;

// Reads all of x; the sum of its bits is stored only if it is one number in 2^32, so that nothing is
// left out by the compiler and nearly nothing is written.
extern "C" __global__ void read(const uint4* x, u64 n, u64* out) {
    u64 stride = u64(gridDim.x) * blockDim.x, i = u64(blockIdx.x) * blockDim.x + threadIdx.x;
    u32 all = 0;
    for (; i + 3 * stride < n; i += 4 * stride) {
        uint4 a[4];
#pragma unroll
        for (int k = 0; k < 4; ++k) a[k] = x[i + k * stride];
#pragma unroll
        for (int k = 0; k < 4; ++k) all ^= a[k].x ^ a[k].y ^ a[k].z ^ a[k].w;
    }
    for (; i < n; i += stride) all ^= x[i].x ^ x[i].y ^ x[i].z ^ x[i].w;
    if (all == 0x9e3779b9) *out = all;
}

// 8 independent chains of fused multiply-adds a thread, 16 x rounds each.
extern "C" __global__ void arithmetic(float a, float b, u32 rounds, u64* out) {
    float x[8];
#pragma unroll
    for (int k = 0; k < 8; ++k) x[k] = a + float(threadIdx.x + k);
    for (u32 r = 0; r < rounds; ++r) {
#pragma unroll
        for (int i = 0; i < 16; ++i) {
#pragma unroll
            for (int k = 0; k < 8; ++k) x[k] = __fmaf_rn(x[k], a, b);
        }
    }
    float all = 0;
#pragma unroll
    for (int k = 0; k < 8; ++k) all += x[k];
    if (all == 12345.0f) *out = 1;
}

// One thread follows a chain of places through memory, from where the last launch stopped: each load
// waits for the one before.
extern "C" __global__ void chase(const u64* next, u32 steps, u64* place) {
    u64 at = *place;
    for (u32 k = 0; k < steps; ++k) at = next[at];
    *place = at;
}
