// The kernels of histograms, for one type of samples. All add to `counts`, one u64 a bin.
#pragma once
#include "histogram/bin_groups.cuh"

namespace crosswarp {
namespace histogram {

// One counter of 32 bits a bin and block, in shared memory. Increments of equal counters in a warp are
// merged by the hardware, so no distribution is slow.
template <class Rule, class T>
__device__ void count_shared_by(const T* samples, u64 n, const Rule& rule, u64* counts) {
    u32* counter = reinterpret_cast<u32*>(dynamic_shared);
    const u32 base = shared_address(counter);
    for (u32 b = threadIdx.x; b < bins_of(rule); b += blockDim.x) counter[b] = 0;
    __syncthreads();
    const cut<T> parts(samples, n);
    auto add = [&](T sample) {
        u32 b = rule.bin(static_cast<typename Rule::key>(sample));
        increment(base + b * 4, b < bins_of(rule));
    };
    auto add_vector = [&](const vector_of<T>& v) {
#pragma unroll
        for (int k = 0; k < vector_of<T>::size; ++k) add(v.sample[k]);
    };
    constexpr int in_flight = 4;
    const u64 step = u64(gridDim.x) * blockDim.x;
    u64 i = u64(blockIdx.x) * blockDim.x + threadIdx.x;
    for (; i + (in_flight - 1) * step < parts.vectors; i += in_flight * step) {
        vector_of<T> v[in_flight];
#pragma unroll
        for (int k = 0; k < in_flight; ++k) v[k] = load_vector(parts.vector(i + k * step));
#pragma unroll
        for (int k = 0; k < in_flight; ++k) add_vector(v[k]);
    }
#pragma unroll 1
    for (; i < parts.vectors; i += step) add_vector(load_vector(parts.vector(i)));
    if (blockIdx.x == 0 && threadIdx.x < parts.loose()) add(parts.loose_sample(threadIdx.x));
    __syncthreads();
    // Blocks begin at different bins, so that they do not all add to the same ones at once.
    const u32 start = static_cast<u32>(u64(bins_of(rule)) * blockIdx.x / gridDim.x) & ~31u;
    for (u32 k = threadIdx.x; k < bins_of(rule); k += blockDim.x) {
        u32 b = k + start < bins_of(rule) ? k + start : k + start - bins_of(rule);
        if (counter[b]) add_global(counts, b, counter[b]);
    }
}

// Rules with tables have them in shared memory, too, if the launch gave room for them behind the counters.
template <class Rule, class T>
__device__ void count_shared(const T* samples, u64 n, const Rule& rule, u64* counts) {
    if constexpr (Rule::has_tables) {
        u32 bytes, counters = (bins_of(rule) * 4 + 15) / 16;
        asm("mov.u32 %0, %%dynamic_smem_size;" : "=r"(bytes));
        if (bytes >= counters * 16 + rule.table_bytes()) {
            // The barrier is the one after the zeros.
            count_shared_by(samples, n, rule.staged(dynamic_shared + counters), counts);
            return;
        }
    }
    count_shared_by(samples, n, rule, counts);
}

// Packed counters in shared memory (packed_counters.cuh). `ranges` blocks share a tile of the samples: block r counts
// the `span` bins from r · span on. Counters that never overflowed are left in `rows`, for `sum_rows`.
template <int BITS> struct packed_sink {
    static constexpr bool always_hot = false;
    packed_counters<BITS> counters;
    u32 first, span;
    __device__ u32 local(u32 bin) const { return bin - first; }
    __device__ u32 word(u32 local) const { return packed_counters<BITS>::word_offset(local); }
    __device__ bool takes_turns(u32 local) const { return local < span; }
    template <int N> __device__ void add(const u32 (&local)[N], const bool (&in)[N]) const {
        counters.template add<N>(local, in);
    }
    __device__ void add_many(u32 local, u32 count) const {
        if (count <= counters.full) {
            counters.add_many(local, count);
        } else {
            add_global(counters.totals, local, count);
        }
    }
};

template <int BITS, class Rule, class T>
__device__ void count_in_ranges(const T* samples, u64 n, const Rule& rule, u64* counts,
                                u32 ranges, u32 span, uint4* rows) {
    const u32 workers = gridDim.x / ranges;
    if (blockIdx.x >= workers * ranges) return;
    hot_table& hot = *reinterpret_cast<hot_table*>(dynamic_shared);
    uint4* words = dynamic_shared + sizeof(hot_table) / 16;
    const u32 vectors = span * BITS / 128;  // `span` is a multiple of 128
    const u32 range = blockIdx.x % ranges;
    const u32 first = range * span;
    const u32 bins = min(span, bins_of(rule) - first);
    const packed_sink<BITS> sink{{shared_address(words), counts + first, bins}, first, bins};
    const u32 worker = blockIdx.x / ranges;
    count_by(samples, n, rule, sink, hot, worker, workers);
    __syncthreads();
    for (u32 i = threadIdx.x; i < vectors; i += threads) rows[u64(blockIdx.x) * vectors + i] = words[i];
}

// Whether there are counters of 4 bits. Samples of 2 bytes have too few values to need them: see `narrow_pays` in
// src/histogram/cuda/device_histogram.rs.
template <class T> constexpr bool may_be_narrow = sizeof(T) > 2;

// Counts as `how` says, or, if it is null, with packed counters of 8 bits.
template <class Rule, class T>
__device__ void count_packed(const T* samples, u64 n, const Rule& rule, u64* counts, ranges wide,
                             ranges narrow, grouping by, const plan* how, uint4* rows) {
    // Zeros, while the launch before chooses the plan.
    u32 bytes;
    asm("mov.u32 %0, %%dynamic_smem_size;" : "=r"(bytes));
    if (!how) bytes = sizeof(hot_table) + wide.span;
    for (u32 i = sizeof(hot_table) / 16 + threadIdx.x; i < bytes / 16; i += threads) {
        dynamic_shared[i] = make_uint4(0, 0, 0, 0);
    }
    __syncthreads();
    wait_for_earlier();
    const u32 bits = how ? how->bits : 8;
    if (bits == 8) {
        count_in_ranges<8>(samples, n, rule, counts, wide.count, wide.span, rows);
        return;
    }
    if constexpr (may_be_narrow<T>) {
        if (bits == 4) {
            count_in_ranges<4>(samples, n, rule, counts, narrow.count, narrow.span, rows);
            return;
        }
    }
    count_in_groups(samples, n, rule, counts, by, *how, rows);
}

// Adds up counters of BITS bits that lie in the rows of `workers` workers, `stride` words apart, and adds them to the
// bins from `first` on: 32 words of each row, of which `words` are there. Block: 32 × 8 threads.
template <int BITS>
__device__ void sum_words(const u32* row, u32 words, u32 workers, u64 stride, u64 first, u32 bins, u64* counts) {
    constexpr u32 per_word = 32 / BITS;
    __shared__ u32 part[8][per_word][33];
    u32 sum[per_word] = {};
    if (threadIdx.x < words) {
#pragma unroll 4
        for (u32 g = threadIdx.y; g < workers; g += 8) {
            u32 word = row[g * stride + threadIdx.x];
#pragma unroll
            for (u32 d = 0; d < per_word; ++d) {
                if constexpr (BITS == 32) {
                    sum[d] += word;
                } else {
                    sum[d] += packed_counters<BITS>::get(word, d);
                }
            }
        }
    }
#pragma unroll
    for (u32 d = 0; d < per_word; ++d) part[threadIdx.y][d][threadIdx.x] = sum[d];
    __syncthreads();
    for (u32 d = threadIdx.y; d < per_word; d += 8) {
        u64 total = 0;
        for (int y = 0; y < 8; ++y) total += part[y][d][threadIdx.x];
        u64 bin = first + threadIdx.x * per_word + d;
        if (total && bin < bins) counts[bin] += total;
    }
}

template <int BITS>
__device__ void sum_ranges(const u32* rows, u32 blocks, ranges in, u32 bins, u64* counts) {
    const u32 words = in.span * BITS / 32, at = blockIdx.x * 32;
    if (blockIdx.y >= in.count || at >= words) return;
    sum_words<BITS>(rows + u64(blockIdx.y) * words + at, words - at, blocks / in.count, u64(in.count) * words,
                    u64(blockIdx.y) * in.span + at * (32 / BITS), bins, counts);
}

__device__ inline void sum_groups(const u32* rows, grouping by, const plan& how, u32 bins, u64* counts) {
    const u32 at = blockIdx.x * 32, row = by.room / 4, range = blockIdx.y;
    if (range >= how.ranges || at >= row) return;
    // Which bin group these words belong to.
    __shared__ u32 found;
    const u32 thread = threadIdx.y * 32 + threadIdx.x;
    if (thread == 0) found = dropped;
    __syncthreads();
    for (u32 p = how.first_group[range] + thread; p < how.first_group[range + 1]; p += 256) {
        u32 begin = how.group[p] / 128 * 32;
        if (begin <= at && at < begin + group_words(by.group_bits, how.group[p] & 31)) found = p;
    }
    __syncthreads();
    if (found == dropped) return;
    const u32 width = how.group[found] & 31, past = at - how.group[found] / 128 * 32;
    const u64 first = (u64(found) << by.group_bits) + (past * 32 >> width);
    const u32 block = how.first_block[range], workers = how.first_block[range + 1] - block;
    const u32* from = rows + u64(block) * row + at;
    if (width == 5) sum_words<32>(from, 32, workers, row, first, bins, counts);
    if (width == 3) sum_words<8>(from, 32, workers, row, first, bins, counts);
    if (width == 2) sum_words<4>(from, 32, workers, row, first, bins, counts);
}

// Adds the counters that `blocks` blocks left in `rows`. Grid: as many words as a row can have / 32, as
// many ranges as there can be.
__device__ inline void sum_rows(const u32* rows, const plan* how, u32 blocks, ranges wide, ranges narrow,
                                grouping by, u32 bins, u64* counts) {
    wait_for_earlier();
    const u32 bits = how ? how->bits : 8;
    if (bits == 8) {
        sum_ranges<8>(rows, blocks, wide, bins, counts);
    } else if (bits == 4) {
        sum_ranges<4>(rows, blocks, narrow, bins, counts);
    } else {
        sum_groups(rows, by, *how, bins, counts);
    }
}

// Straight into `counts`: for more bins than shared memory can hold at a useful speed.
struct global_sink {
    // Equal addresses wait for one another in the second-level cache, whichever SM they come from.
    static constexpr bool always_hot = true;
    u64* counts;
    u32 span;
    __device__ u32 local(u32 bin) const { return bin; }
    __device__ u32 word(u32 local) const { return local; }
    __device__ bool takes_turns(u32 local) const { return local < span; }
    template <int N> __device__ void add(const u32 (&local)[N], const bool (&in)[N]) const {
#pragma unroll
        for (int j = 0; j < N; ++j) {
            if (in[j]) add_global(counts, local[j], 1);
        }
    }
    __device__ void add_many(u32 local, u32 count) const { add_global(counts, local, count); }
};

template <class Rule, class T>
__device__ void count_global(const T* samples, u64 n, const Rule& rule, u64* counts) {
    hot_table& hot = *reinterpret_cast<hot_table*>(dynamic_shared);
    const global_sink sink{counts, bins_of(rule)};
    if constexpr (Rule::moves) {
        if (rule.from == -0x7fffffff - 1 && rule.to == 0x7fffffff) {
            const typename Rule::fixed& fixed = rule;
            count_by(samples, n, fixed, sink, hot, blockIdx.x, gridDim.x);
            return;
        }
    }
    count_by(samples, n, rule, sink, hot, blockIdx.x, gridDim.x);
}

// Sums of weights. A counter of 32 bits that wraps books 2^32 in the totals.
template <class Rule, class T>
__device__ void weigh_shared(const T* samples, const u32* weights, u64 n, const Rule& rule,
                             u64* counts) {
    u32* counter = reinterpret_cast<u32*>(dynamic_shared);
    const u32 base = shared_address(counter);
    for (u32 b = threadIdx.x; b < bins_of(rule); b += blockDim.x) counter[b] = 0;
    __syncthreads();
    const u64 step = u64(gridDim.x) * blockDim.x;
    for (u64 i = u64(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += step) {
        u32 weight = weights[i];
        u32 b = rule.bin(static_cast<typename Rule::key>(samples[i]));
        bool in = b < bins_of(rule);
        u32 before = fetch_add(base + b * 4, weight, in);
        if (in && before + weight < before) add_global(counts, b, u64(1) << 32);
    }
    __syncthreads();
    for (u32 b = threadIdx.x; b < bins_of(rule); b += blockDim.x) {
        if (counter[b]) add_global(counts, b, counter[b]);
    }
}

template <class Rule, class T>
__device__ void weigh_global(const T* samples, const u32* weights, u64 n, const Rule& rule,
                             u64* counts) {
    const u64 step = u64(gridDim.x) * blockDim.x;
    for (u64 i = u64(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += step) {
        u32 b = rule.bin(static_cast<typename Rule::key>(samples[i]));
        if (b < bins_of(rule)) add_global(counts, b, weights[i]);
    }
}

}  // namespace histogram
}  // namespace crosswarp

// The kernels for samples of type T and one rule, as written out by src/histogram/cuda/kernels.rs: a source for each way
// of counting, so that only what is used is compiled.
#define HISTOGRAM_KERNEL(name) extern "C" __global__ void __launch_bounds__(cw::histogram::threads) name

#define HISTOGRAM_SHARED(T, Rule, name)                                                                  \
    HISTOGRAM_KERNEL(histogram_shared_##name)(const T* samples, u64 n, Rule rule, u64* counts) {         \
        count_shared(samples, n, rule, counts);                                                          \
    }
#define HISTOGRAM_GLOBAL(T, Rule, name)                                                                  \
    HISTOGRAM_KERNEL(histogram_global_##name)(const T* samples, u64 n, Rule rule, u64* counts) {         \
        count_global(samples, n, rule, counts);                                                          \
    }
#define HISTOGRAM_WEIGH(T, Rule, name)                                                                   \
    HISTOGRAM_KERNEL(histogram_weigh_shared_##name)                                                      \
    (const T* samples, const u32* weights, u64 n, Rule rule, u64* counts) {                              \
        weigh_shared(samples, weights, n, rule, counts);                                                 \
    }                                                                                                    \
    HISTOGRAM_KERNEL(histogram_weigh_global_##name)                                                      \
    (const T* samples, const u32* weights, u64 n, Rule rule, u64* counts) {                              \
        weigh_global(samples, weights, n, rule, counts);                                                 \
    }

// For more bins than `shared` can hold, launched one after the other: `plan` (one block; not for few
// samples, then `how` is null), `packed`, `rows` (32 × 8 threads), which is the same for every type and rule.
#define HISTOGRAM_PLAN(T, Rule, name)                                                                    \
    HISTOGRAM_KERNEL(histogram_plan_##name)                                                              \
    (const T* samples, u64 n, Rule rule, ranges wide, ranges narrow, grouping by, u32 blocks,            \
     plan* how) {                                                                                        \
        choose_plan(samples, n, rule, wide, narrow, by, blocks, how);                                    \
    }
// `packed_fixed` is `packed` by a rule that could move keys and does not.
#define HISTOGRAM_PACKED_FIXED(T, Rule, name) HISTOGRAM_PACKED(T, Rule, fixed_##name)
#define HISTOGRAM_PACKED(T, Rule, name)                                                                  \
    HISTOGRAM_KERNEL(histogram_packed_##name)                                                            \
    (const T* samples, u64 n, Rule rule, u64* counts, ranges wide, ranges narrow, grouping by,           \
     const plan* how, uint4* rows) {                                                                     \
        count_packed(samples, n, rule, counts, wide, narrow, by, how, rows);                             \
    }
#define HISTOGRAM_ROWS                                                                                   \
    extern "C" __global__ void __launch_bounds__(256) histogram_rows(                                    \
        const u32* rows, const plan* how, u32 blocks, ranges wide, ranges narrow, grouping by, u32 bins, \
        u64* counts) {                                                                                   \
        sum_rows(rows, how, blocks, wide, narrow, by, bins, counts);                                     \
    }
