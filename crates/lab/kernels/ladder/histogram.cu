// The ladder of histograms: samples x[0..n) are numbers of bins; those outside count in the first or last
// bin. Counts are added to counts[0..bins), which is 0 before.
#include "cluster.cuh"

using cw::i32;
using cw::u32;

static __device__ u32 bin_of(i32 x, u32 bins) { return max(0, min(x, static_cast<i32>(bins) - 1)); }

static __device__ u32 first() { return blockIdx.x * blockDim.x + threadIdx.x; }
static __device__ u32 threads() { return gridDim.x * blockDim.x; }

extern "C" __global__ void global_atomics(const i32* x, u32 n, u32* counts, u32 bins) {
    for (u32 i = first(); i < n; i += threads()) atomicAdd(&counts[bin_of(x[i], bins)], 1);
}

static __device__ void clear(u32* part, u32 bins) {
    for (u32 b = threadIdx.x; b < bins; b += blockDim.x) part[b] = 0;
}
static __device__ void flush(const u32* part, u32 bins, u32* counts) {
    for (u32 b = threadIdx.x; b < bins; b += blockDim.x) {
        if (part[b]) atomicAdd(&counts[b], part[b]);
    }
}

// A histogram of its own per block, in shared memory.
extern "C" __global__ void shared_atomics(const i32* x, u32 n, u32* counts, u32 bins) {
    extern __shared__ u32 part[];
    clear(part, bins);
    __syncthreads();
    for (u32 i = first(); i < n; i += threads()) atomicAdd(&part[bin_of(x[i], bins)], 1);
    __syncthreads();
    flush(part, bins, counts);
}

// The same, 16 bytes a load and two loads in flight.
extern "C" __global__ void shared_wide(const int4* x, u32 n, u32* counts, u32 bins) {
    extern __shared__ u32 part[];
    clear(part, bins);
    __syncthreads();
    auto add = [=](i32 x) { atomicAdd(&part[bin_of(x, bins)], 1); };
    auto count = [=](int4 a) { add(a.x), add(a.y), add(a.z), add(a.w); };
    u32 quads = n / 4, i = first();
    for (; i + threads() < quads; i += 2 * threads()) {
        int4 a = x[i], b = x[i + threads()];
        count(a), count(b);
    }
    if (i < quads) count(x[i]);
    u32 last = 4 * quads + first();
    if (last < n) add(reinterpret_cast<const i32*>(x)[last]);
    __syncthreads();
    flush(part, bins, counts);
}

#if __CUDA_ARCH__ >= 900
// The blocks of a cluster share one histogram: each keeps a range of the bins in its shared memory, and
// every sample is an atomic in its owner's, over distributed shared memory. In a cluster of one block that is its own.
extern "C" __global__ void cluster_dsm(const i32* x, u32 n, u32* counts, u32 bins) {
    extern __shared__ u32 part[];
    cw::cluster cluster;
    u32 own = (bins + cluster.size() - 1) / cluster.size();
    u32 from = own * cluster.rank(), end = from + own < bins ? from + own : bins;
    u32 mine = from < end ? end - from : 0;
    clear(part, mine);
    cluster.sync();  // before others count here
    for (u32 i = first(); i < n; i += threads()) {
        u32 bin = bin_of(x[i], bins), owner = bin / own;
        atomicAdd(cluster.map(part, owner) + (bin - owner * own), 1);
    }
    cluster.sync();  // all have counted
    flush(part, mine, counts + from);
}
#endif
