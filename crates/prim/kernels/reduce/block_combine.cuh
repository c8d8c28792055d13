// Block combine: the blocks of a grid add up what each of them has, in one launch.
//
// The state is an array of 64-bit words, zero before the launch and left zero by it; one launch at a
// time uses it. A block adds its limbs, where they are not 0, with plain relaxed atomics: each such
// addition carries 1 in the word's upper 12 bits beside the limb in its lower 52. To the last word
// it adds how many words it touched and that it has come. The last block by index reads the
// state until all blocks have come and as many additions have arrived as they say; then the limbs are
// complete, since each word's count and sum are in one atomic.
//
// So nothing has to arrive in order, and no fence waits for anything: from the last block's addition
// to the sum it takes one trip to the second-level cache and one read, 0.7 µs less than the usual
// fence, counter of finished blocks and read (H200).
//
// Only the last block waits; the others never do. So it holds one place on the GPU at most, and they run in the
// others, in whatever order blocks start: two places are enough, and every GPU has two multiprocessors. (A launch
// that overlaps this one starts no block before all of this one's have started.)
#pragma once
#include "superaccumulator.cuh"
#include "reduce/arguments.cuh"

namespace crosswarp {

constexpr int combine_words = 96;  // of the format with the most limbs

// Where a format's limbs leave room: NaNs and infinities, touched only if there are any, and the last word.
template <class F> constexpr int special_word = 32 * F::per_lane - 2;
template <class F> constexpr int total_word = 32 * F::per_lane - 1;

__device__ inline void add_relaxed(u64* word, u64 value) {
    asm volatile("red.relaxed.gpu.global.add.u64 [%0], %1;" : : "l"(word), "l"(value) : "memory");
}
__device__ inline u64 load_relaxed(const u64* word) {
    u64 value;
    asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
    return value;
}

// Adds a sum to the state. One whole warp calls, with limbs below 2^40 in magnitude.
template <class F> __device__ inline void contribute(const warp_accumulator<F>& sum, u64* state) {
    static_assert(F::warp_limbs <= special_word<F>, "the last words are free");
    constexpr int per = F::per_lane;
    constexpr u64 one = 1ull << 52;
    const int first = per * int(warp::lane());
    u64 word[per];
    int touched = 0;
#pragma unroll
    for (int i = 0; i < per; ++i) {
        word[i] = sum.limb[i] ? u64(sum.limb[i]) + one : 0;
        touched += __popc(__ballot_sync(0xffffffffu, sum.limb[i] != 0));
    }
    // NaNs, infinities of either sign: counted in 12 bits each.
    const u32 special = sum.seen / seen_nan;
    if (special) {
        ++touched;
        u64 counts = (special & 1) | u64(special & 2) << 11 | u64(special & 4) << 22;
#pragma unroll
        for (int i = 0; i < per; ++i) word[i] = first + i == special_word<F> ? one + counts : word[i];
    }
    // Words touched in bits 0 to 23, sums that are not all −0.0 in 24 to 39, sums from 40 on.
    const u64 come = 1ull << 40 | u64(sum.seen & seen_not_neg_zero) << 24 | u64(touched);
    word[per - 1] = first + per - 1 == total_word<F> ? come : word[per - 1];
#pragma unroll
    for (int i = 0; i < per; ++i) {
        if (word[i]) add_relaxed(state + first + i, word[i]);
    }
}

// Waits for `sums` contributions, takes their sum and leaves the state zero. One whole warp calls.
template <class F> __device__ inline void collect(warp_accumulator<F>& sum, u64* state, u64 sums) {
    constexpr u32 all = 0xffffffffu;
    constexpr int per = F::per_lane;
    constexpr u64 half = 1ull << 51;
    const int first = per * int(warp::lane());
    const bool last = first + per - 1 == total_word<F>;
    u64 total, word[per];
    u32 arrived;
    do {
        arrived = 0;
#pragma unroll
        for (int i = 0; i < per; ++i) word[i] = load_relaxed(state + first + i);
#pragma unroll
        for (int i = 0; i < per; ++i) {
            // A negative sum has borrowed from the count.
            u32 count = u32((word[i] + half) >> 52);
            arrived += i == per - 1 && last ? 0 : count;
        }
        total = __shfl_sync(all, word[per - 1], total_word<F> / per);
        arrived = warp_sum(arrived);
    } while (total >> 40 != sums || arrived != (u32(total) & 0xffffff));
    const u64 specials = __shfl_sync(all, word[special_word<F> % per], special_word<F> / per);
#pragma unroll
    for (int i = 0; i < per; ++i) {
        if (word[i]) state[first + i] = 0;
        sum.limb[i] = first + i < F::warp_limbs ? i64(word[i] << 12) >> 12 : 0;
    }
    sum.seen = total >> 24 & 0xffff ? seen_not_neg_zero : 0;
    if (specials) {
        sum.seen |= (specials & 0xfff ? seen_nan : 0) | (specials >> 12 & 0xfff ? seen_infinity : 0) |
                    (specials >> 24 & 0xfff ? seen_neg_infinity : 0);
    }
}

// Adds the sums of all blocks of the grid. One whole warp of each block calls; true in the block that has the
// total.
template <class F> __device__ inline bool combine_blocks(warp_accumulator<F>& sum, u64* state) {
    contribute(sum, state);
    if (blockIdx.x != gridDim.x - 1) return false;
    collect(sum, state, gridDim.x);
    return true;
}

}  // namespace crosswarp
