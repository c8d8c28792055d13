// Ways of counting 2^27 int32 into many bins, one value a bin, on distributions of several shapes: with the kernels of
// crates/prim/kernels/histogram and with what they were chosen over. See README.md.
//
//     histogram [LOG2]     of the number of samples
#include "scheme.h"
// After the runtime's headers, whose names it does not know.
#include "histogram/kernels.cuh"

using namespace crosswarp;
using namespace crosswarp::histogram;
using rule = fixed_shift;

// --- The library's kernels, launched as src/histogram/cuda/device_histogram.rs does.

HISTOGRAM_SHARED(i32, fixed_shift, schemes)
HISTOGRAM_PACKED(i32, fixed_shift, schemes)

// --- What they were chosen over.

// An atomic a sample in device memory.
__global__ void atomics(const i32* samples, u64 n, rule bins, u64* counts) {
    for (u64 i = u64(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += u64(gridDim.x) * blockDim.x) {
        const u32 b = bins.bin(samples[i]);
        if (b < bins.bins) add_global(counts, b, 1);
    }
}

// Packed counters without the table of hot bins.
template <int BITS>
__global__ void __launch_bounds__(1024) packed_only(const i32* samples, u64 n, rule bins, u64* counts, ranges in,
                                                    uint4* rows) {
    const u32 workers = gridDim.x / in.count, worker = blockIdx.x / in.count;
    if (worker >= workers) return;
    const u32 first = blockIdx.x % in.count * in.span, vectors = in.span * BITS / 128;
    uint4* words = dynamic_shared + sizeof(hot_table) / 16;
    for (u32 i = threadIdx.x; i < vectors; i += blockDim.x) words[i] = make_uint4(0, 0, 0, 0);
    __syncthreads();
    const packed_sink<BITS> sink{{shared_address(words), counts + first, min(in.span, bins.bins - first)},
                                 first, min(in.span, bins.bins - first)};
    const u64 step = u64(workers) * blockDim.x, all = n / 4;
    auto add = [&](const vector_of<i32>& v) {
        u32 local[4];
        bool here[4];
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            local[k] = sink.local(bins.bin(v.sample[k]));
            here[k] = local[k] < sink.span;
        }
        sink.add(local, here);
    };
    u64 i = u64(worker) * blockDim.x + threadIdx.x;
    for (; i + 3 * step < all; i += 4 * step) {
        vector_of<i32> v[4];
#pragma unroll
        for (int k = 0; k < 4; ++k) v[k] = load_vector(samples + (i + k * step) * 4);
#pragma unroll
        for (int k = 0; k < 4; ++k) add(v[k]);
    }
    for (; i < all; i += step) add(load_vector(samples + i * 4));
    __syncthreads();
    for (u32 k = threadIdx.x; k < vectors; k += blockDim.x) rows[u64(blockIdx.x) * vectors + k] = words[k];
}

// The textbook's cluster: its blocks own 2^share_bits bins each and increment one another's by distributed shared
// memory.
__global__ void __launch_bounds__(1024) cluster(const i32* samples, u64 n, rule bins, u64* counts, u32 share_bits) {
    const u32 share = 1u << share_bits;
    u32 rank;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    u32* counter = reinterpret_cast<u32*>(dynamic_shared);
    const u32 base = shared_address(counter);
    auto sync = [] { asm volatile("barrier.cluster.arrive;\nbarrier.cluster.wait;" ::: "memory"); };
    for (u32 b = threadIdx.x; b < share; b += blockDim.x) counter[b] = 0;
    sync();
    const u64 step = u64(gridDim.x) * blockDim.x;
    for (u64 i = u64(blockIdx.x) * blockDim.x + threadIdx.x; i < n / 4; i += step) {
        const vector_of<i32> v = load_vector(samples + i * 4);
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            const u32 b = bins.bin(v.sample[k]);
            if (b >= bins.bins) continue;
            u32 address;
            asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(address) : "r"(base + (b & (share - 1)) * 4),
                "r"(b >> share_bits));
            asm volatile("red.shared::cluster.add.u32 [%0], 1;" :: "r"(address) : "memory");
        }
    }
    sync();
    for (u32 b = threadIdx.x; b < share; b += blockDim.x) {
        if (rank * share + b < bins.bins && counter[b]) add_global(counts, rank * share + b, counter[b]);
    }
}

// --- The samples.

const char* const distributions[] = {"uniform", "one-hot", "u^4", "normal", "zipf", "sorted", "half", "exp8"};

__device__ inline u64 mixed(u64 k) {
    u64 z = k * 0x9e3779b97f4a7c15ull;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ z >> 31;
}

__global__ void fill(i32* samples, u64 n, u32 bins, int distribution) {
    for (u64 k = u64(blockIdx.x) * blockDim.x + threadIdx.x; k < n; k += u64(gridDim.x) * blockDim.x) {
        const u64 z = mixed(k + 1);
        const double unit = (z >> 11) / 9007199254740992.0;
        const double other = (mixed(z + 1) >> 11) / 9007199254740992.0;
        double place = unit;
        switch (distribution) {
        case 1: place = 0.37; break;
        case 2: place = unit * unit * unit * unit; break;
        case 3: place = 0.5 + 0.08 * sqrt(-2 * log(1 - unit)) * cospi(2 * other); break;
        // Rank r has about 1 / r of the samples; an odd factor scatters the ranks over the bins, a power of two.
        case 4: place = double((u32(exp(unit * log(double(bins)))) * 0x9e3779b1u) % bins) / bins; break;
        case 5: place = double(k) / n; break;
        case 6: place = other < 0.5 ? 0.37 : unit; break;
        case 7: place = exp(-8 * unit); break;
        }
        samples[k] = static_cast<i32>(fmin(fmax(place, 0.0) * bins, bins - 1.0));
    }
}

__global__ void count_wrong(const u64* counts, const u64* expected, u32 bins, u32* wrong) {
    for (u32 b = blockIdx.x * blockDim.x + threadIdx.x; b < bins; b += gridDim.x * blockDim.x) {
        if (counts[b] != expected[b]) atomicAdd(wrong, 1u);
    }
}

ranges ranges_of(u32 bins, u32 bits, u32 bytes) {
    const u32 room = bytes * 8 / bits / 128 * 128;
    const u32 count = (bins + room - 1) / room;
    const u32 span = ((bins + count - 1) / count + 127) / 128 * 128;
    return {(bins + span - 1) / span, span};
}

struct bench {
    u64 n;
    cudaStream_t stream;
    i32* samples;
    u64 *counts, *expected;
    u32* wrong;
    plan *decided, *how;
    uint4* rows;
    u32 processors, shared_bytes;  // of a block at most
    // Of the row at hand.
    u32 bins;
    const char* distribution;
    bool known = false;  // whether `expected` is that of the samples

    template <class Kernel> void allow(Kernel* kernel) const {
        cudaFuncAttributes attributes;
        CHECK(cudaFuncGetAttributes(&attributes, kernel));
        CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                   int(shared_bytes - attributes.sharedSizeBytes)));
    }
    u32 room_of(const void* kernel) const {
        cudaFuncAttributes attributes;
        CHECK(cudaFuncGetAttributes(&attributes, kernel));
        return (shared_bytes - u32(attributes.sharedSizeBytes) - u32(sizeof(hot_table))) / 128 * 128;
    }

    // Times `count`, which adds to `counts`, and compares its counts with those of the first of all.
    template <class Count> void row(const char* name, int calls, Count count) {
        auto call = [&] { count(known ? counts : expected); };
        u64* const to = known ? counts : expected;
        CHECK(cudaMemsetAsync(to, 0, bins * sizeof(u64), stream));
        call();
        CHECK(cudaGetLastError());
        CHECK(cudaStreamSynchronize(stream));
        if (known) {
            CHECK(cudaMemset(wrong, 0, sizeof(u32)));
            count_wrong<<<256, 256, 0, stream>>>(counts, expected, bins, wrong);
            u32 found;
            CHECK(cudaStreamSynchronize(stream));
            CHECK(cudaMemcpy(&found, wrong, sizeof(u32), cudaMemcpyDeviceToHost));
            require(found == 0, "%s, %u bins, %s: %u counts are wrong", name, bins, distribution, found);
        } else {
            std::vector<u64> host(bins);
            CHECK(cudaMemcpy(host.data(), expected, bins * sizeof(u64), cudaMemcpyDeviceToHost));
            u64 sum = 0;
            for (u64 c : host) sum += c;
            require(sum == n, "%s, %u bins, %s: counts add up to %llu", name, bins, distribution, sum);
        }
        known = true;
        const spread time = time_calls(stream, 3, calls, [&] { count(counts); });
        print_row("histogram", &time,
                  "\"way\":\"%s\",\"samples\":%llu,\"bins\":%u,\"distribution\":\"%s\",\"gsamples\":%.1f", name, n,
                  bins, distribution, n / time.median * 1e-3);
    }

    void count_by_plan(const rule& r, u64* to, ranges wide, ranges narrow, grouping by, const plan* with) const {
        const u32 bytes = u32(sizeof(hot_table)) + room_of((const void*)histogram_packed_schemes);
        histogram_packed_schemes<<<processors, 1024, bytes, stream>>>(samples, n, r, to, wide, narrow, by, with, rows);
        const u32 words = std::max({wide.span / 4, narrow.span / 8, by.room / 4});
        const dim3 grid((words + 31) / 32, std::max(wide.count, narrow.count));
        histogram_rows_schemes<<<grid, dim3(32, 8), 0, stream>>>(reinterpret_cast<const u32*>(rows), with, processors,
                                                                wide, narrow, by, bins, to);
    }

    void run(u32 of_bins, int of_distribution) {
        bins = of_bins;
        distribution = distributions[of_distribution];
        known = false;
        fill<<<1024, 256, 0, stream>>>(samples, n, bins, of_distribution);
        CHECK(cudaGetLastError());
        const rule r{0, -0x7fffffff - 1, 0x7fffffff, bins, 0};
        row("atomics in device memory", 1,
            [&](u64* to) { atomics<<<processors * 2, 1024, 0, stream>>>(samples, n, r, to); });

        if (bins * 4 <= shared_bytes) {
            row("a counter of 32 bits a bin and block", 3, [&](u64* to) {
                histogram_shared_schemes<<<processors, 1024, bins * 4, stream>>>(samples, n, r, to);
            });
        }
        const u32 room = room_of((const void*)histogram_packed_schemes);
        const ranges wide = ranges_of(bins, 8, room), narrow = ranges_of(bins, 4, room);
        u32 group_bits = 8;
        while (u64(most_groups) << group_bits < bins) ++group_bits;
        const grouping by{group_bits, (room - 4 * most_groups) / 128 * 128};

        row("8 bits, no table of hot bins", 3, [&](u64* to) {
            const u32 bytes = u32(sizeof(hot_table)) + room;
            packed_only<8><<<processors, 1024, bytes, stream>>>(samples, n, r, to, wide, rows);
            histogram_rows_schemes<<<dim3((wide.span / 4 + 31) / 32, wide.count), dim3(32, 8), 0, stream>>>(
                reinterpret_cast<const u32*>(rows), nullptr, processors, wide, {0, 0}, by, bins, to);
        });
        auto choose = [&] {
            histogram_plan_schemes<<<1, 1024, 4 << cell_bits, stream>>>(samples, n, r, wide, narrow, by, processors,
                                                                       decided);
        };
        plan chosen = {};
        CHECK(cudaMemcpyAsync(decided, &chosen, sizeof(plan), cudaMemcpyHostToDevice, stream));
        choose();
        CHECK(cudaGetLastError());
        CHECK(cudaMemcpyAsync(&chosen, decided, sizeof(plan), cudaMemcpyDeviceToHost, stream));
        CHECK(cudaStreamSynchronize(stream));
        const struct {
            const char* name;
            u32 bits, merging;
        } ways[] = {{"8 bits", 8, 0}, {"4 bits", 4, 0}, {"bin groups", 0, 0}, {"bin groups, merging", 0, 1}};
        for (const auto& w : ways) {
            // Without ranges the bin groups do not fit.
            if (w.bits == 0 && chosen.ranges == 0) continue;
            plan forced = chosen;
            forced.bits = w.bits;
            forced.merging = w.merging;
            CHECK(cudaMemcpyAsync(how, &forced, sizeof(plan), cudaMemcpyHostToDevice, stream));
            CHECK(cudaStreamSynchronize(stream));
            row(w.name, 3, [&](u64* to) { count_by_plan(r, to, wide, narrow, by, how); });
        }
        row(chosen.bits == 4   ? "as the library chooses (4 bits)"
            : chosen.bits == 8 ? "as the library chooses (8 bits)"
                               : "as the library chooses (bin groups)",
            3, [&](u64* to) {
                choose();
                count_by_plan(r, to, wide, narrow, by, decided);
            });

        for (u32 blocks = 2; blocks <= 16 && bins <= 65536; blocks *= 2) {
            u32 share_bits = 0;
            while (blocks << share_bits < bins) ++share_bits;
            if (4u << share_bits > shared_bytes) continue;
            cudaLaunchAttribute attribute;
            attribute.id = cudaLaunchAttributeClusterDimension;
            attribute.val.clusterDim = {blocks, 1, 1};
            cudaLaunchConfig_t config = {};
            config.blockDim = 1024;
            config.gridDim = processors / blocks * blocks;
            config.dynamicSmemBytes = 4u << share_bits;
            config.stream = stream;
            config.attrs = &attribute;
            config.numAttrs = 1;
            int at_once = 0;
            CHECK(cudaOccupancyMaxActiveClusters(&at_once, cluster, &config));
            if (at_once == 0) continue;
            config.gridDim = at_once * blocks;
            const char* names[] = {"cluster of 2 blocks", "cluster of 4 blocks", "cluster of 8 blocks",
                                   "cluster of 16 blocks"};
            const i32* from = samples;
            row(names[blocks == 2 ? 0 : blocks == 4 ? 1 : blocks == 8 ? 2 : 3], 1, [&](u64* to) {
                CHECK(cudaLaunchKernelEx(&config, cluster, from, n, r, to, share_bits));
            });
        }
    }
};

int main(int argc, char** argv) {
    bench b;
    b.n = u64(1) << (argc > 1 ? std::atoi(argv[1]) : 27);
    int processors, shared_bytes;
    CHECK(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, 0));
    CHECK(cudaDeviceGetAttribute(&shared_bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0));
    b.processors = processors;
    b.shared_bytes = shared_bytes;
    const u32 most_bins = 1 << 20;
    CHECK(cudaStreamCreateWithFlags(&b.stream, cudaStreamNonBlocking));
    CHECK(cudaMalloc(&b.samples, b.n * sizeof(i32)));
    CHECK(cudaMalloc(&b.counts, most_bins * sizeof(u64)));
    CHECK(cudaMalloc(&b.expected, most_bins * sizeof(u64)));
    CHECK(cudaMalloc(&b.wrong, sizeof(u32)));
    CHECK(cudaMalloc(&b.decided, sizeof(plan)));
    CHECK(cudaMalloc(&b.how, sizeof(plan)));
    CHECK(cudaMalloc(&b.rows, size_t(b.processors) * b.shared_bytes));
    b.allow(histogram_shared_schemes);
    b.allow(histogram_plan_schemes);
    b.allow(histogram_packed_schemes);
    b.allow(packed_only<8>);
    b.allow(cluster);
    CHECK(cudaFuncSetAttribute(cluster, cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
    for (u32 bins : {57344u, 65536u, 262144u, 1048576u}) {
        for (int d = 0; d < 8; ++d) {
            // Fewer bins than 65536 show one way of counting only, and a power of two is what `zipf` needs.
            if (bins == 57344 && d > 1) continue;
            b.run(bins, d);
        }
    }
}
