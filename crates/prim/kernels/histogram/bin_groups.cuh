// Counters whose width follows the samples: bins are in groups of equal size, and the counters of a group all
// have 4, 8 or 32 bits, by how many of the examined samples it had (sampling.cuh).
//
// Where few samples are expected in a bin, 4 bits hardly ever overflow; where many are, whole words never
// do. So samples that crowd in some region of the bins, as those of most distributions do, cost little more
// than even ones: reading the group's entry in shared memory. Groups are cut into ranges that take the same room,
// each counted by as many blocks as its samples are worth.
#pragma once
#include "histogram/sampling.cuh"

namespace crosswarp {
namespace histogram {

// A group's counters have 2^width bits and begin at `address`, a multiple of 128. In the low 5 bits is what
// a bin's number is to be shifted by, in the high ones what a full word is, to be a full counter.
__device__ inline u32 group_entry(u32 address, u32 width) { return (32 - (1u << width)) << 27 | address | width; }

// N words, which a function that is not inlined takes in registers.
template <int N> struct several {
    u32 of[N];
    __device__ explicit several(const u32 (&words)[N]) {
#pragma unroll
        for (int j = 0; j < N; ++j) of[j] = words[j];
    }
    __device__ u32 operator[](int j) const { return of[j]; }
};

// Counters of the groups of one range. `local` numbers are relative to the range's first bin. If Merging,
// words of 32 bits are incremented by an instruction of their own, of which the hardware merges equal ones in
// a warp: 470 instead of 380 · 10⁹ samples/s where one bin of 65536 has 6 % (one H200), but where none is so
// hot 480 instead of 550.
//
// If Apart, full counters are looked after in a function of their own: less code, which compiles sooner, where a load
// has many samples.
template <bool Merging, bool Apart> struct mixed_width_sink {
    static constexpr bool always_hot = false;
    // In shared memory, a `group_entry` for each group.
    u32 table;
    u32 group_bits;
    u32 first, span;
    u64* totals;  // of bin `first`

    static __device__ u32 address(u32 entry) { return entry & 0x07ffff80; }
    static __device__ u32 full(u32 entry) { return ~0u >> (entry >> 27); }
    // Whether the counter that begins at `bit` was full.
    static __device__ bool was_full(u32 before, u32 bit, u32 entry) {
        return (~__funnelshift_r(before, before, bit) & full(entry)) == 0;
    }

    struct place {
        u32 entry, address, bit;  // the word's address; the first bit's number, modulo 32
    };
    __device__ u32 in_group(u32 local) const { return local & ((1u << group_bits) - 1); }
    __device__ place place_of(u32 local, bool in) const {
        u32 entry = 0;
        if (in) entry = load_shared(table + (local >> group_bits) * 4);
        u32 bit = __funnelshift_l(0, in_group(local), entry);
        return {entry, address(entry) + bit / 32 * 4, bit};
    }
    __device__ u32 local(u32 bin) const { return bin - first; }
    __device__ u32 word(u32 local) const { return place_of(local, local < span).address; }
    __device__ bool takes_turns(u32 local) const {
        return Merging ? place_of(local, local < span).entry & 2 : local < span;
    }

    template <int N> __device__ void add(const u32 (&local)[N], const bool (&in)[N]) const {
        place at[N];
        u32 before[N];
#pragma unroll
        for (int j = 0; j < N; ++j) at[j] = place_of(local[j], in[j]);
#pragma unroll
        for (int j = 0; j < N; ++j) {
            // Which of the two tell the low bits of 5, 2 and 3; of what is not counted here they are 0.
            if (Merging) increment(at[j].address, at[j].entry & 4);
            u32 in_packed = Merging ? at[j].entry & 2 : static_cast<u32>(in[j]);
            before[j] = fetch_add(at[j].address, __funnelshift_l(1, 1, at[j].bit), in_packed);
        }
        auto is_full = [&](int j) { return was_full(before[j], at[j].bit, at[j].entry); };
        bool carried = false;
#pragma unroll
        // What was not added to reads as 0.
        for (int j = 0; j < N; ++j) carried |= is_full(j);
        if (!carried) return;
        if constexpr (Apart) {
            u32 entry[N];
#pragma unroll
            for (int j = 0; j < N; ++j) entry[j] = at[j].entry;
            settle_full(several<N>(entry), several<N>(local), several<N>(before));
        } else {
#pragma unroll
            for (int j = 0; j < N; ++j) {
                if (is_full(j)) settle(at[j].entry, local[j], before[j]);
            }
        }
    }
    // Settles those of N counters that were full before 1 was added to them.
    template <int N>
    __device__ __noinline__ void settle_full(several<N> entry, several<N> local, several<N> before) const {
#pragma unroll
        for (int j = 0; j < N; ++j) {
            u32 bit = __funnelshift_l(0, in_group(local[j]), entry[j]);
            if (was_full(before[j], bit, entry[j])) settle(entry[j], local[j], before[j]);
        }
    }
    template <int BITS> __device__ packed_counters<BITS> counters_of(u32 entry, u32 local) const {
        u32 group = local - in_group(local);
        return {address(entry), totals + group, span - group};
    }
    // Words of 32 bits do not come to that: a launch has fewer samples.
    __device__ __noinline__ void settle(u32 entry, u32 local, u32 before) const {
        if (entry & 1) {
            counters_of<8>(entry, local).settle(in_group(local), before, 1);
        } else {
            counters_of<4>(entry, local).settle(in_group(local), before, 1);
        }
    }
    __device__ void add_many(u32 local, u32 count) const {
        u32 entry = place_of(local, true).entry;
        if ((entry & 31) == 3 && count <= packed_counters<8>::full) {
            counters_of<8>(entry, local).add_many(in_group(local), count);
        } else {
            add_global(totals, local, count);
        }
    }
};

// Counts with a width for each bin group. Block b of range r leaves its counters in row b of `rows`.
template <class Rule, class T>
__device__ void count_in_groups(const T* samples, u64 n, const Rule& rule, u64* counts, grouping by,
                               const plan& how, uint4* rows) {
    u32 range = 0;
    while (blockIdx.x >= how.first_block[range + 1]) ++range;
    const u32 worker = blockIdx.x - how.first_block[range];
    const u32 workers = how.first_block[range + 1] - how.first_block[range];
    const u32 first_group = how.first_group[range], groups = how.first_group[range + 1] - first_group;
    hot_table& hot = *reinterpret_cast<hot_table*>(dynamic_shared);
    u32* table = reinterpret_cast<u32*>(dynamic_shared + sizeof(hot_table) / 16);
    uint4* words = dynamic_shared + (sizeof(hot_table) + most_groups * 4) / 16;
    const u32 vectors = by.room / 16;
    if (threadIdx.x < groups) {
        u32 group = how.group[first_group + threadIdx.x];
        table[threadIdx.x] = group_entry(shared_address(words) + (group & ~31u), group & 31);
    }
    const u32 first = first_group << by.group_bits;
    const u32 span = min(groups << by.group_bits, bins_of(rule) - first);
    constexpr bool apart = vector_of<T>::size > 4;
    if (how.merging) {
        const mixed_width_sink<true, apart> sink{shared_address(table), by.group_bits, first, span, counts + first};
        count_by(samples, n, rule, sink, hot, worker, workers);
    } else {
        const mixed_width_sink<false, apart> sink{shared_address(table), by.group_bits, first, span, counts + first};
        count_by(samples, n, rule, sink, hot, worker, workers);
    }
    __syncthreads();
    for (u32 i = threadIdx.x; i < vectors; i += threads) rows[u64(blockIdx.x) * vectors + i] = words[i];
}

}  // namespace histogram
}  // namespace crosswarp
