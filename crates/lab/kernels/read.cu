// Reads memory and does nothing else: the roof of what reads, and what empties the caches of the rest.
#include "base.cuh"

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
