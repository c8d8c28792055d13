// The textbook's cluster histogram of i32 samples in even bins: counters of 32 bits spread over the
// blocks of a thread-block cluster, and every increment goes to its owner through distributed shared
// memory. Kept to be measured against `count_digits`, which is several times as fast.
#include "cluster.cuh"
#include "histogram.cuh"

#if __CUDA_ARCH__ >= 900

using namespace cw::histogram;
using cw::u32;
using cw::u64;

// Counts in `counts`, one u64 a bin; block r of a cluster has the 2^span_bits bins from r << span_bits on.
extern "C" __global__ void __launch_bounds__(1024)
    histogram_cluster(const cw::i32* samples, u64 n, even_multiply rule, u64* counts, u32 span_bits) {
    u32* counter = reinterpret_cast<u32*>(dynamic_shared);
    const u32 base = shared_address(counter), span = 1u << span_bits;
    for (u32 b = threadIdx.x; b < span; b += blockDim.x) counter[b] = 0;
    const cw::cluster blocks;
    blocks.sync();  // no increment before the owner's counters are 0
    const cut<cw::i32> parts(samples, n);
    auto add = [&](cw::i32 sample) {
        u32 b = rule.bin(sample);
        if (b >= rule.bins) return;
        u32 address;
        asm("mapa.shared::cluster.u32 %0, %1, %2;"
            : "=r"(address) : "r"(base + b % span * 4), "r"(b >> span_bits));
        asm volatile("red.shared::cluster.add.u32 [%0], 1;" :: "r"(address) : "memory");
    };
    const u64 step = u64(gridDim.x) * blockDim.x;
    for (u64 i = u64(blockIdx.x) * blockDim.x + threadIdx.x; i < parts.vectors; i += step) {
        const vector_of<cw::i32> v = load_vector(parts.vector(i));
#pragma unroll
        for (int k = 0; k < vector_of<cw::i32>::size; ++k) add(v.sample[k]);
    }
    if (blockIdx.x == 0 && threadIdx.x < parts.loose()) add(parts.loose_sample(threadIdx.x));
    blocks.sync();  // all increments have arrived, and no block has ended before
    const u32 first = blocks.rank() * span;
    for (u32 b = threadIdx.x; b < span; b += blockDim.x) {
        if (counter[b]) add_global(counts, first + b, counter[b]);
    }
}

#endif
