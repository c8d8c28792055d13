// The kernels of histograms, for one type of samples. All add to `counts`, one u64 a bin.
#pragma once
#include "histogram_hot.cuh"

namespace crosswarp {
namespace histogram {

extern __shared__ uint4 dynamic_shared[];

// One counter of 32 bits a bin and block, in shared memory. Increments of equal counters in a warp are
// merged by the hardware, so no distribution is slow.
template <class Rule, class T>
__device__ void count_shared(const T* samples, u64 n, const Rule& rule, u64* counts) {
    u32* counter = reinterpret_cast<u32*>(dynamic_shared);
    const u32 base = shared_address(counter);
    for (u32 b = threadIdx.x; b < rule.bins; b += blockDim.x) counter[b] = 0;
    __syncthreads();
    const cut<T> parts(samples, n);
    auto add = [&](T sample) {
        u32 b = rule.bin(static_cast<typename Rule::key>(sample));
        increment(base + b * 4, b < rule.bins);
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
    const u32 start = static_cast<u32>(u64(rule.bins) * blockIdx.x / gridDim.x) & ~31u;
    for (u32 k = threadIdx.x; k < rule.bins; k += blockDim.x) {
        u32 b = k + start < rule.bins ? k + start : k + start - rule.bins;
        if (counter[b]) add_global(counts, b, counter[b]);
    }
}

// Digits in shared memory, see `digits`. `ranges` blocks share a tile of the samples: block r counts the
// `span` bins from r · span on. Digits that never overflowed are left in `rows`, for `sum_rows`.
template <int BITS> struct digit_sink {
    static constexpr bool always_hot = false;
    digits<BITS> counters;
    u32 first, span;
    __device__ u32 local(u32 bin) const { return bin - first; }
    __device__ u32 word(u32 local) const { return digits<BITS>::word_offset(local); }
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
    const u32 groups = gridDim.x / ranges;
    if (blockIdx.x >= groups * ranges) return;
    hot_table& hot = *reinterpret_cast<hot_table*>(dynamic_shared);
    uint4* words = dynamic_shared + sizeof(hot_table) / 16;
    const u32 vectors = span * BITS / 128;  // `span` is a multiple of 128
    for (u32 i = threadIdx.x; i < vectors; i += threads) words[i] = make_uint4(0, 0, 0, 0);
    const u32 range = blockIdx.x % ranges;
    const u32 first = range * span;
    const u32 bins = min(span, rule.bins - first);
    const digit_sink<BITS> sink{{shared_address(words), counts + first, bins}, first, bins};
    const u32 group = blockIdx.x / ranges;
    // The barrier after the zeros is in `count_tiles`.
    bool counted = false;
    if constexpr (Rule::moves) {
        // Not to move keys, where that makes no difference, saves two instructions a sample.
        if (rule.from == -0x7fffffff - 1 && rule.to == 0x7fffffff) {
            const typename Rule::fixed& fixed = rule;
            count_tiles(samples, n, fixed, sink, hot, group, groups);
            counted = true;
        }
    }
    if (!counted) count_tiles(samples, n, rule, sink, hot, group, groups);
    __syncthreads();
    for (u32 i = threadIdx.x; i < vectors; i += threads) rows[u64(blockIdx.x) * vectors + i] = words[i];
}

// How many blocks share a tile, and how many bins each of them counts.
struct ranges {
    u32 count, span;
};

// Whether digits of 4 bits would rarely overflow. Of `judged` samples, taken from all over the array, it
// counts the pairs in the same cell of a table indexed by a hash of the bin: as many as chance brings
// together, and those of equal bins, judged² / 2 times the sum of the squares of the bins' shares.
// Cells with many are left out: those bins are hot and go through the table of `count_tiles`; so are
// repetitions of a sample's neighbour. All blocks look at the same samples, so they agree.
constexpr u32 judged = 16384;
constexpr u32 cell_bits = 15;
constexpr u32 hot_cell = 32;

template <class Rule, class T>
__device__ bool is_even(const T* samples, u64 n, const Rule& rule, u32 most_pairs) {
    constexpr u32 size = vector_of<T>::size, vectors = judged / size;
    u32* cell = reinterpret_cast<u32*>(dynamic_shared);
    __shared__ u32 pairs;
    for (u32 i = threadIdx.x; i < 1u << cell_bits; i += threads) cell[i] = 0;
    if (threadIdx.x == 0) pairs = 0;
    __syncthreads();
    const cut<T> parts(samples, n);
    const u64 apart = parts.vectors / vectors;
    for (u32 i = threadIdx.x; i < vectors; i += threads) {
        // Not at equal distances, so that periodic samples do not mislead.
        vector_of<T> v = load_vector(parts.vector(apart * i + i * 0x9e3779b1u % apart));
        u32 before = dropped;
#pragma unroll
        for (int k = 0; k < size; ++k) {
            u32 b = rule.bin(static_cast<typename Rule::key>(v.sample[k]));
            if (b < rule.bins && b != before) atomicAdd(&cell[b * 0x9e3779b1u >> (32 - cell_bits)], 1u);
            before = b;
        }
    }
    __syncthreads();
    u32 mine = 0;
    for (u32 i = threadIdx.x; i < 1u << cell_bits; i += threads) {
        u32 c = cell[i];
        if (c > 1 && c <= hot_cell) mine += c * (c - 1) / 2;
    }
    atomicAdd(&pairs, mine);
    __syncthreads();
    bool even = pairs <= most_pairs;
    __syncthreads();  // the cells become counters
    return even;
}

// Counts with digits of 4 bits in the ranges `narrow` if there are any and the samples are even, else
// with digits of 8 bits in the ranges `wide`. Which is left in `*bits`, for `sum_rows`.
template <class Rule, class T>
__device__ void count_digits(const T* samples, u64 n, const Rule& rule, u64* counts,
                             ranges wide, ranges narrow, u32 most_pairs, uint4* rows, u32* bits) {
    bool even = narrow.count > 0 && is_even(samples, n, rule, most_pairs);
    if (blockIdx.x == 0 && threadIdx.x == 0) *bits = even ? 4 : 8;
    if (even) {
        count_in_ranges<4>(samples, n, rule, counts, narrow.count, narrow.span, rows);
    } else {
        count_in_ranges<8>(samples, n, rule, counts, wide.count, wide.span, rows);
    }
}

// Adds the digits that `blocks` blocks left in `rows`. Block: 32 × 8 threads; grid: as many words as a
// row can have / 32, as many ranges as there can be.
template <int BITS>
__device__ void sum_rows_of(const u32* rows, u32 blocks, ranges in, u32 bins, u64* counts) {
    constexpr u32 per_word = 32 / BITS;
    __shared__ u32 part[8][per_word][33];
    const u32 words = in.span / per_word;
    const u32 word = blockIdx.x * 32 + threadIdx.x;
    if (blockIdx.y >= in.count || blockIdx.x * 32 >= words) return;
    const u32 groups = blocks / in.count;
    const u32* row = rows + u64(blockIdx.y) * words + word;
    u32 sum[per_word] = {};
    if (word < words) {
#pragma unroll 4
        for (u32 g = threadIdx.y; g < groups; g += 8) {
            u32 digits_of = row[u64(g) * in.count * words];
#pragma unroll
            for (u32 d = 0; d < per_word; ++d) sum[d] += digits<BITS>::get(digits_of, d);
        }
    }
#pragma unroll
    for (u32 d = 0; d < per_word; ++d) part[threadIdx.y][d][threadIdx.x] = sum[d];
    __syncthreads();
    for (u32 d = threadIdx.y; d < per_word; d += 8) {
        u64 total = 0;
        for (int y = 0; y < 8; ++y) total += part[y][d][threadIdx.x];
        u64 bin = u64(blockIdx.y) * in.span + word * per_word + d;
        if (total && bin < bins) counts[bin] += total;
    }
}

__device__ inline void sum_rows(const u32* rows, const u32* bits, u32 blocks, ranges wide, ranges narrow,
                                u32 bins, u64* counts) {
    if (*bits == 4) {
        sum_rows_of<4>(rows, blocks, narrow, bins, counts);
    } else {
        sum_rows_of<8>(rows, blocks, wide, bins, counts);
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
    const global_sink sink{counts, rule.bins};
    count_tiles(samples, n, rule, sink, hot, blockIdx.x, gridDim.x);
}

// Sums of weights. A counter of 32 bits that wraps books 2^32 in the totals.
template <class Rule, class T>
__device__ void weigh_shared(const T* samples, const u32* weights, u64 n, const Rule& rule,
                             u64* counts) {
    u32* counter = reinterpret_cast<u32*>(dynamic_shared);
    const u32 base = shared_address(counter);
    for (u32 b = threadIdx.x; b < rule.bins; b += blockDim.x) counter[b] = 0;
    __syncthreads();
    const u64 step = u64(gridDim.x) * blockDim.x;
    for (u64 i = u64(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += step) {
        u32 weight = weights[i];
        u32 b = rule.bin(static_cast<typename Rule::key>(samples[i]));
        bool in = b < rule.bins;
        u32 before = fetch_add(base + b * 4, weight, in);
        if (in && before + weight < before) add_global(counts, b, u64(1) << 32);
    }
    __syncthreads();
    for (u32 b = threadIdx.x; b < rule.bins; b += blockDim.x) {
        if (counter[b]) add_global(counts, b, counter[b]);
    }
}

template <class Rule, class T>
__device__ void weigh_global(const T* samples, const u32* weights, u64 n, const Rule& rule,
                             u64* counts) {
    const u64 step = u64(gridDim.x) * blockDim.x;
    for (u64 i = u64(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += step) {
        u32 b = rule.bin(static_cast<typename Rule::key>(samples[i]));
        if (b < rule.bins) add_global(counts, b, weights[i]);
    }
}

}  // namespace histogram
}  // namespace crosswarp

// The kernels for samples of type T and one rule, as written out by src/cuda/histogram_kernels.rs.
#define HISTOGRAM_KERNEL(name) extern "C" __global__ void __launch_bounds__(1024) name

#define HISTOGRAM_KERNELS(T, Rule, name)                                                                 \
    HISTOGRAM_KERNEL(histogram_shared_##name)(const T* samples, u64 n, Rule rule, u64* counts) {         \
        count_shared(samples, n, rule, counts);                                                          \
    }                                                                                                    \
    HISTOGRAM_KERNEL(histogram_global_##name)(const T* samples, u64 n, Rule rule, u64* counts) {         \
        count_global(samples, n, rule, counts);                                                          \
    }                                                                                                    \
    HISTOGRAM_KERNEL(histogram_weigh_shared_##name)                                                      \
    (const T* samples, const u32* weights, u64 n, Rule rule, u64* counts) {                              \
        weigh_shared(samples, weights, n, rule, counts);                                                 \
    }                                                                                                    \
    HISTOGRAM_KERNEL(histogram_weigh_global_##name)                                                      \
    (const T* samples, const u32* weights, u64 n, Rule rule, u64* counts) {                              \
        weigh_global(samples, weights, n, rule, counts);                                                 \
    }

// Those for more bins than `shared` can hold; `rows` is launched after `digits` with 32 × 8 threads.
#define HISTOGRAM_DIGIT_KERNELS(T, Rule, name)                                                           \
    HISTOGRAM_KERNEL(histogram_digits_##name)                                                            \
    (const T* samples, u64 n, Rule rule, u64* counts, ranges wide, ranges narrow, u32 most_pairs,        \
     uint4* rows, u32* bits) {                                                                           \
        count_digits(samples, n, rule, counts, wide, narrow, most_pairs, rows, bits);                    \
    }                                                                                                    \
    extern "C" __global__ void __launch_bounds__(256) histogram_rows_##name(                             \
        const u32* rows, const u32* bits, u32 blocks, ranges wide, ranges narrow, u32 bins, u64* counts) { \
        sum_rows(rows, bits, blocks, wide, narrow, bins, counts);                                        \
    }
