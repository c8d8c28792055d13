// Sums of f16: what the type of the accumulator and the width of the loads do. All add x[0..n), n even,
// into *out, an f32 that is 0 before; a grid of as many blocks as are resident.
#include "block.cuh"

using cw::u16;
using cw::u32;

static __device__ u16 add(u16 a, u16 b) {
    u16 sum;
    asm("add.rn.f16 %0, %1, %2;" : "=h"(sum) : "h"(a), "h"(b));
    return sum;
}
static __device__ u32 add_pair(u32 a, u32 b) {
    u32 sum;
    asm("add.rn.f16x2 %0, %1, %2;" : "=r"(sum) : "r"(a), "r"(b));
    return sum;
}
static __device__ float widen(u16 a) {
    float wide;
    asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(a));
    return wide;
}
static __device__ float widen_pair(u32 a) { return widen(u16(a)) + widen(u16(a >> 16)); }

static __device__ void into(float* out, float sum) {
    sum = cw::block().sum(sum);
    if (threadIdx.x == 0) atomicAdd(out, sum);
}

static __device__ u32 first() { return blockIdx.x * blockDim.x + threadIdx.x; }
static __device__ u32 threads() { return gridDim.x * blockDim.x; }

// Two bytes a load, an accumulator of 11 bits of mantissa.
extern "C" __global__ void f16_plain(const u16* x, u32 n, float* out) {
    u16 sum = 0;
    for (u32 i = first(); i < n; i += threads()) sum = add(sum, x[i]);
    into(out, widen(sum));
}

// half2: two elements an instruction and a load, still added in f16.
extern "C" __global__ void f16_pairs(const u32* x, u32 n, float* out) {
    u32 sum = 0;
    for (u32 i = first(); i < n / 2; i += threads()) sum = add_pair(sum, x[i]);
    into(out, widen_pair(sum));
}

extern "C" __global__ void f16_plain_f32(const u16* x, u32 n, float* out) {
    float sum = 0;
    for (u32 i = first(); i < n; i += threads()) sum += widen(x[i]);
    into(out, sum);
}

extern "C" __global__ void f16_pairs_f32(const u32* x, u32 n, float* out) {
    float sum = 0;
    for (u32 i = first(); i < n / 2; i += threads()) sum += widen_pair(x[i]);
    into(out, sum);
}

// 16 bytes a load, four loads in flight, added in f32.
extern "C" __global__ void f16_wide_f32(const uint4* x, u32 n, float* out) {
    u32 count = n / 8, stride = threads(), i = first();
    float sum[4] = {};
    auto of = [](uint4 a) { return widen_pair(a.x) + widen_pair(a.y) + widen_pair(a.z) + widen_pair(a.w); };
    for (; i + 3 * stride < count; i += 4 * stride) {
        uint4 loaded[4];
#pragma unroll
        for (int k = 0; k < 4; ++k) loaded[k] = x[i + k * stride];
#pragma unroll
        for (int k = 0; k < 4; ++k) sum[k] += of(loaded[k]);
    }
    for (; i < count; i += stride) sum[0] += of(x[i]);
    u32 last = 4 * count + first();
    if (last < n / 2) sum[1] += widen_pair(reinterpret_cast<const u32*>(x)[last]);
    into(out, (sum[0] + sum[1]) + (sum[2] + sum[3]));
}
