// The ladder of sums of f32: every variant of the textbook, from one that is wrong to those at memory
// speed. All add x[0..n) into *out. Those that end in an atomic need *out to be 0 before; those that
// leave a sum per block in `parts` are followed by `add_parts`.
//
// Up to `block_shuffle` every element has a thread; from `grid_stride_1` on there are as many blocks as
// are resident.
#include "cluster.cuh"
#include "grid.cuh"

using cw::u32;

static __device__ u32 my_element() { return blockIdx.x * blockDim.x + threadIdx.x; }

// Wrong on purpose: between one thread's load and its store, others load the same old value.
extern "C" __global__ void racy(const float* x, u32 n, float* out) {
    u32 i = my_element();
    if (i < n) *out += x[i];
}

extern "C" __global__ void atomic_per_element(const float* x, u32 n, float* out) {
    u32 i = my_element();
    if (i < n) atomicAdd(out, x[i]);
}

// Lane 0 of each warp adds the warp's 32 elements.
extern "C" __global__ void lane0_per_warp(const float* x, u32 n, float* out) {
    u32 first = my_element();
    if (cw::warp::lane() != 0) return;
    float sum = 0;
    for (u32 i = first; i < first + 32 && i < n; ++i) sum += x[i];
    atomicAdd(out, sum);
}

// Thread 0 of each block adds what the others have staged in shared memory.
extern "C" __global__ void __launch_bounds__(256) thread0_per_block(const float* x, u32 n, float* out) {
    __shared__ float staged[256];
    u32 i = my_element();
    staged[threadIdx.x] = i < n ? x[i] : 0.0f;
    __syncthreads();
    if (threadIdx.x != 0) return;
    float sum = 0;
    for (u32 k = 0; k < blockDim.x; ++k) sum += staged[k];
    atomicAdd(out, sum);
}

// The second launch: one block adds what the blocks of the first have left.
extern "C" __global__ void add_parts(const float* parts, u32 count, float* out) {
    float sum = 0;
    for (u32 k = threadIdx.x; k < count; k += blockDim.x) sum += parts[k];
    sum = cw::block().sum(sum);
    if (threadIdx.x == 0) *out = sum;
}

// A tree per block, in global memory; `scratch` has a number per thread.
extern "C" __global__ void global_tree(const float* x, u32 n, float* parts, float* scratch) {
    u32 i = my_element();
    scratch[i] = i < n ? x[i] : 0.0f;
    for (u32 s = blockDim.x / 2; s > 0; s /= 2) {
        __syncthreads();
        if (threadIdx.x < s) scratch[i] += scratch[i + s];
    }
    if (threadIdx.x == 0) parts[blockIdx.x] = scratch[i];
}

// Threads 0, 2s, 4s, ... add: lanes of every warp, up to the last step.
extern "C" __global__ void __launch_bounds__(256) interleaved_divergent(const float* x, u32 n, float* parts) {
    __shared__ float part[256];
    u32 i = my_element(), t = threadIdx.x;
    part[t] = i < n ? x[i] : 0.0f;
    for (u32 s = 1; s < blockDim.x; s *= 2) {
        __syncthreads();
        if (t % (2 * s) == 0) part[t] += part[t + s];
    }
    if (t == 0) parts[blockIdx.x] = part[0];
}

// The same additions by threads 0, 1, 2, ...: whole warps, but strides that meet in one bank.
extern "C" __global__ void __launch_bounds__(256) interleaved_strided(const float* x, u32 n, float* parts) {
    __shared__ float part[256];
    u32 i = my_element(), t = threadIdx.x;
    part[t] = i < n ? x[i] : 0.0f;
    for (u32 s = 1; s < blockDim.x; s *= 2) {
        __syncthreads();
        u32 at = 2 * s * t;
        if (at < blockDim.x) part[at] += part[at + s];
    }
    if (t == 0) parts[blockIdx.x] = part[0];
}

// Neighbouring threads, neighbouring elements.
extern "C" __global__ void __launch_bounds__(256) sequential(const float* x, u32 n, float* parts) {
    __shared__ float part[256];
    u32 i = my_element(), t = threadIdx.x;
    part[t] = i < n ? x[i] : 0.0f;
    for (u32 s = blockDim.x / 2; s > 0; s /= 2) {
        __syncthreads();
        if (t < s) part[t] += part[t + s];
    }
    if (t == 0) parts[blockIdx.x] = part[0];
}

extern "C" __global__ void warp_shuffle(const float* x, u32 n, float* out) {
    u32 i = my_element();
    float sum = cw::warp().sum(i < n ? x[i] : 0.0f);
    if (cw::warp::lane() == 0) atomicAdd(out, sum);
}

extern "C" __global__ void block_shuffle(const float* x, u32 n, float* parts) {
    u32 i = my_element();
    float sum = cw::block().sum(i < n ? x[i] : 0.0f);
    if (threadIdx.x == 0) parts[blockIdx.x] = sum;
}

// The sum of one thread's elements, Loads of them in flight at a time.
template <int Loads> static __device__ float thread_sum(const float* x, u32 n) {
    u32 stride = gridDim.x * blockDim.x, i = my_element();
    float sum[Loads] = {};
    for (; i + (Loads - 1) * stride < n; i += Loads * stride) {
#pragma unroll
        for (int k = 0; k < Loads; ++k) sum[k] += x[i + k * stride];
    }
    for (; i < n; i += stride) sum[0] += x[i];
#pragma unroll
    for (int k = 1; k < Loads; ++k) sum[0] += sum[k];
    return sum[0];
}

template <int Loads> static __device__ void grid_stride(const float* x, u32 n, float* out) {
    float sum = cw::block().sum(thread_sum<Loads>(x, n));
    if (threadIdx.x == 0) atomicAdd(out, sum);
}

extern "C" __global__ void grid_stride_1(const float* x, u32 n, float* out) { grid_stride<1>(x, n, out); }
extern "C" __global__ void grid_stride_2(const float* x, u32 n, float* out) { grid_stride<2>(x, n, out); }
extern "C" __global__ void grid_stride_4(const float* x, u32 n, float* out) { grid_stride<4>(x, n, out); }
extern "C" __global__ void grid_stride_8(const float* x, u32 n, float* out) { grid_stride<8>(x, n, out); }

// The same with 16 bytes a load, four loads in flight; the last n % 4 elements one by one.
static __device__ float wide_sum(const float* x, u32 n) {
    const float4* quads = reinterpret_cast<const float4*>(x);
    u32 count = n / 4, stride = gridDim.x * blockDim.x, i = my_element();
    float4 sum[4] = {};
    auto add = [](float4& a, float4 b) { a.x += b.x, a.y += b.y, a.z += b.z, a.w += b.w; };
    for (; i + 3 * stride < count; i += 4 * stride) {
#pragma unroll
        for (int k = 0; k < 4; ++k) add(sum[k], quads[i + k * stride]);
    }
    for (; i < count; i += stride) add(sum[0], quads[i]);
    add(sum[0], sum[1]), add(sum[2], sum[3]), add(sum[0], sum[2]);
    float total = sum[0].x + sum[0].y + sum[0].z + sum[0].w;
    u32 last = 4 * count + my_element();
    return last < n ? total + x[last] : total;
}

extern "C" __global__ void wide_loads(const float* x, u32 n, float* out) {
    float sum = cw::block().sum(wide_sum(x, n));
    if (threadIdx.x == 0) atomicAdd(out, sum);
}

// No atomic, and nothing to be zeroed.
extern "C" __global__ void two_pass(const float* x, u32 n, float* parts) {
    float sum = cw::block().sum(wide_sum(x, n));
    if (threadIdx.x == 0) parts[blockIdx.x] = sum;
}

// One launch; all blocks meet at a grid barrier.
extern "C" __global__ void cooperative(const float* x, u32 n, float* out, cw::grid_state* state) {
    cw::grid grid(state);
    float sum = grid.sum(wide_sum(x, n));
    if (grid.rank() == 0 && threadIdx.x == 0) *out = sum;
}

// One launch; the block that ends last adds what the others have left.
extern "C" __global__ void last_block(const float* x, u32 n, float* out, float* parts, u32* ended) {
    __shared__ bool last;
    float sum = cw::block().sum(wide_sum(x, n));
    if (threadIdx.x == 0) {
        parts[blockIdx.x] = sum;
        // Before the count, so that whoever sees the count sees the sum.
        __threadfence();
        last = atomicAdd(ended, 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (!last) return;
    // The other side of the fence: the sums are read after the count.
    __threadfence();
    sum = 0;
    for (u32 k = threadIdx.x; k < gridDim.x; k += blockDim.x) sum += cw::load_volatile(parts + k);
    sum = cw::block().sum(sum);
    if (threadIdx.x == 0) *out = sum, *ended = 0;  // ready for the next launch
}

#if __CUDA_ARCH__ >= 900
// Blocks of a cluster add their sums over distributed shared memory: one atomic a cluster.
extern "C" __global__ void cluster_dsm(const float* x, u32 n, float* out) {
    cw::cluster cluster;
    float sum = cluster.sum(wide_sum(x, n));
    if (cluster.rank() == 0 && threadIdx.x == 0) atomicAdd(out, sum);
}
#endif
