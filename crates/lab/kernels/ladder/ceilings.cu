// Two roofs of a GPU: arithmetic, and the latency of memory. Reading is in ../read.cu.
#include "block.cuh"

using cw::u32;
using cw::u64;

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
