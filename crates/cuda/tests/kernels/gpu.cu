// Kernels of the tests that need a GPU.
#include "cluster.cuh"
#include "grid.cuh"
using namespace cw;
extern "C" __device__ u32 counter;
__device__ u32 counter = 41;
extern "C" __constant__ float scale[4];
__constant__ float scale[4] = {1, 2, 3, 4};

extern "C" __global__ void fill(u32* out, u32 value) { out[blockIdx.x * blockDim.x + threadIdx.x] = value; }

extern "C" __global__ void add_scaled(float* out, float factor) { *out += factor * scale[1] + counter; }

extern "C" __global__ void square(u64* values) { values[threadIdx.x] *= values[threadIdx.x]; }

struct Pair { u16 a; u32 b; };
extern "C" __global__ void by_value(double* out, Pair pair, unsigned char byte, double number) {
    *out = pair.a + pair.b * number + byte;
}

// Contract: one rounding per operation, subnormals kept, correct division and square root.
extern "C" __global__ void arithmetic(const float* in, float* out, u32 n) {
    for (u32 i = threadIdx.x; i < n; i += blockDim.x) {
        float a = in[3 * i], b = in[3 * i + 1], c = in[3 * i + 2];
        out[4 * i] = a * b + c;
        out[4 * i + 1] = a / b;
        out[4 * i + 2] = sqrtf(c);
        out[4 * i + 3] = a - b * c;
    }
}
extern "C" __global__ void arithmetic64(const double* in, double* out, u32 n) {
    for (u32 i = threadIdx.x; i < n; i += blockDim.x) {
        double a = in[3 * i], b = in[3 * i + 1], c = in[3 * i + 2];
        out[4 * i] = a * b + c;
        out[4 * i + 1] = a / b;
        out[4 * i + 2] = sqrt(c);
        out[4 * i + 3] = a - b * c;
    }
}

extern "C" __global__ void reverse(const u32* in, u32* out, u32 n) {
    extern __shared__ u32 staged[];
    for (u32 i = threadIdx.x; i < n; i += blockDim.x) staged[i] = in[i];
    __syncthreads();
    for (u32 i = threadIdx.x; i < n; i += blockDim.x) out[i] = staged[n - 1 - i];
}

// Local memory: an array indexed at run time. Static shared memory beside it.
extern "C" __global__ void __launch_bounds__(128) resources(float* p, const int* index) {
    __shared__ float s[300];
    float a[64];
    for (int i = 0; i < 64; i++) a[i] = p[i] * 2;
    s[threadIdx.x] = p[threadIdx.x];
    __syncthreads();
    for (int i = 0; i < 64; i++) p[index[i]] = a[index[i + 64]] + s[index[i]];
}

// Every block of the grid waits for all others: ends only if all are resident.
extern "C" __global__ void meet(u32* arrived, u32* seen) {
    if (threadIdx.x == 0) {
        atomicAdd(arrived, 1);
        while (atomicAdd(arrived, 0) < gridDim.x) {}
        seen[blockIdx.x] = 1;
    }
}

extern "C" __global__ void ranks(u32* out) {
    u32 rank = 0, size = 1;
#if __CUDA_ARCH__ >= 900
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(size));
#endif
    if (threadIdx.x == 0) out[blockIdx.x] = rank + 100 * size;
}

extern "C" __global__ void spin(u64 cycles) {
    u64 start = clock64();
    while (clock64() - start < cycles) {}
}
