// Counters in shared memory: words of 32 bits, and words of several small counters.
#pragma once
#include "block.cuh"

namespace crosswarp {
namespace histogram {

__device__ inline u32 shared_address(const void* p) {
    return static_cast<u32>(__cvta_generic_to_shared(p));
}

// Adds 1 to the shared word at `address` if `in` is not 0. The hardware merges equal addresses of a warp.
__device__ inline void increment(u32 address, u32 in) {
    asm volatile(
        "{ .reg .pred p; setp.ne.u32 p, %1, 0; @p red.shared.add.u32 [%0], 1; }"
        :: "r"(address), "r"(in) : "memory");
}

// Adds to the shared word at `address` if `in` is not 0; the word before, or 0.
__device__ inline u32 fetch_add(u32 address, u32 value, u32 in) {
    u32 before = 0;
    asm volatile(
        "{ .reg .pred p; setp.ne.u32 p, %2, 0; @p atom.shared.add.u32 %0, [%1], %3; }"
        : "+r"(before) : "r"(address), "r"(in), "r"(value) : "memory");
    return before;
}

__device__ inline u32 load_shared(u32 address) {
    u32 value;
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(value) : "r"(address) : "memory");
    return value;
}

__device__ inline void add_global(u64* counts, u64 bin, u64 value) {
    asm volatile("red.global.add.u64 [%0], %1;" :: "l"(counts + bin), "l"(value) : "memory");
}

// Counters of BITS bits, several to a word, in shared memory.
//
// A word is a number whose digits are the counters. Adding to a counter that is full carries into its
// neighbour, as in any number; whoever adds sees the word before and so knows which carries it has
// caused. It adds a full counter's worth to the totals for each counter that was left by a carry, and takes
// the carries back out of the counters they arrived in, with another addition of which the same is true. So at any
// time the true count of a bin is its total, plus its counter, minus carries that are about to be taken back, in
// whatever order the block's threads come: no locks, no limit on how many add at once.
template <int BITS> struct packed_counters {
    static constexpr u32 per_word = 32 / BITS;
    static constexpr u32 full = (1u << BITS) - 1;

    u32 address;   // of the words, in shared memory
    u64* totals;   // of the first counter's bin
    u32 bins;      // counters that stand for bins; those after them stay 0

    static __device__ u32 word_offset(u32 counter) {
        return BITS == 8 ? counter & ~3u : (counter / per_word) * 4;
    }
    // Shifts take their amount modulo 32, which is what picks the counter.
    static __device__ u32 left(u32 value, u32 counter) {
        u32 shifted;
        asm("shf.l.wrap.b32 %0, %1, %1, %2;" : "=r"(shifted) : "r"(value), "r"(counter * BITS));
        return shifted;
    }
    static __device__ u32 get(u32 word, u32 counter) {
        u32 shifted;
        asm("shf.r.wrap.b32 %0, %1, %1, %2;" : "=r"(shifted) : "r"(word), "r"(counter * BITS));
        return shifted & full;
    }

    // Adds 1 to each of N counters that is `in`.
    template <int N> __device__ void add(const u32 (&counter)[N], const bool (&in)[N]) const {
        u32 before[N];
#pragma unroll
        for (int j = 0; j < N; ++j) {
            before[j] = fetch_add(address + word_offset(counter[j]), left(1, counter[j]), in[j]);
        }
        bool carried = false;
#pragma unroll
        // A counter that was not added to reads as 0.
        for (int j = 0; j < N; ++j) carried |= get(before[j], counter[j]) == full;
        if (carried) {
#pragma unroll
            for (int j = 0; j < N; ++j) {
                if (get(before[j], counter[j]) == full) settle(counter[j], before[j], 1);
            }
        }
    }

    // Adds `value`, at most `full`, to a counter.
    __device__ void add_many(u32 counter, u32 value) const {
        u32 before = fetch_add(address + word_offset(counter), left(value, counter), true);
        if (get(before, counter) + value > full) settle(counter, before, value);
    }

    // After `value` has been added to `counter` of a word that was `before`.
    __device__ __noinline__ void settle(u32 counter, u32 before, u32 value) const {
        u32 first = counter & ~(per_word - 1);
        u32 change = left(value, counter);
        for (bool adding = true;; adding = !adding) {
            u32 carry = 0, back = 0;
            for (u32 k = 0; k < per_word; ++k) {
                u32 old = get(before, k), part = get(change, k) + carry;
                carry = adding ? old + part > full : old < part;
                if (!carry) continue;
                u64 worth = u64(full) + 1;
                if (first + k < bins) add_global(totals, first + k, adding ? worth : 0 - worth);
                if (k + 1 < per_word) back += 1u << (BITS * (k + 1));
            }
            if (back == 0) return;
            change = back;
            u32 word = address + word_offset(first);
            before = fetch_add(word, adding ? 0 - change : change, true);
        }
    }
};

}  // namespace histogram
}  // namespace crosswarp
