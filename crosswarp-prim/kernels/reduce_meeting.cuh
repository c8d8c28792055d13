// How the blocks of a grid add up what each of them has, in one launch.
//
// The state is an array of 64-bit words, zero before the launch and left zero by it; one launch at a
// time uses it. A block adds its limbs, where they are not 0, with plain relaxed atomics: each such
// addition carries 1 in the word's upper 12 bits beside the limb in its lower 52. To the word `total`
// it adds how many words it touched and that it has come. The last block by index looks on until all
// blocks have come and as many additions have arrived as they say; then the limbs are complete, since
// each word's count and sum travel in one atomic.
//
// So nothing has to arrive in order, and no fence waits for anything: from the last block's addition
// to the sum it takes one trip to the second-level cache and one look, 0.7 µs less than the usual
// fence, ticket and read (H200).
//
// Only the last block waits, and only for blocks of lower index, which are running or have run when it
// starts: the hardware starts blocks in the order of their index.
#pragma once
#include "reduce_spread.cuh"

namespace crosswarp {

constexpr int meeting_blocks = 2047;  // a word counts fewer than 2^11 additions
constexpr int meeting_total = 96;     // the word behind the limbs of any format
constexpr int meeting_special = 97;   // NaNs and infinities; touched only if there are any
constexpr int meeting_words = 98;

__device__ inline void add_relaxed(u64* word, u64 value) {
    asm volatile("red.relaxed.gpu.global.add.u64 [%0], %1;" : : "l"(word), "l"(value) : "memory");
}
__device__ inline u64 load_relaxed(const u64* word) {
    u64 value;
    asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
    return value;
}

// Adds the sums of all blocks. One whole warp of each block calls, with limbs below 2^40 in magnitude;
// true in the block that has the total.
template <class F> __device__ inline bool meet(spread<F>& sum, u64* state) {
    constexpr u32 all = 0xffffffffu;
    constexpr u64 one = 1ull << 52;
    int lane = warp::lane();
    u32 blocks = gridDim.x;
    int touched = 0;
#pragma unroll
    for (int i = 0; i < F::per_lane; ++i) {
        if (sum.limb[i]) add_relaxed(state + F::per_lane * lane + i, u64(sum.limb[i]) + one);
        touched += __popc(__ballot_sync(all, sum.limb[i] != 0));
    }
    u32 special = sum.seen & ~u32(seen_not_neg_zero);
    if (lane == 0) {
        if (special) {
            u64 nan = special & seen_nan ? 1 : 0, positive = special & seen_infinity ? 1 << 12 : 0;
            u64 negative = special & seen_neg_infinity ? 1 << 24 : 0;
            add_relaxed(state + meeting_special, one | nan | positive | negative);
        }
        // Words touched in bits 0 to 23, blocks that are not all −0.0 in 24 to 39, blocks from 40 on.
        u64 value = touched + (special != 0);
        add_relaxed(state + meeting_total, 1ull << 40 | u64(sum.seen & seen_not_neg_zero) << 24 | value);
    }
    if (blockIdx.x != blocks - 1) return false;

    u64 total, word[F::per_lane], specials;
    u32 arrived;
    do {
        // The total last: it is needed for the comparison only.
        specials = load_relaxed(state + meeting_special);
        arrived = lane == 0 ? u32(specials >> 52) : 0;
#pragma unroll
        for (int i = 0; i < F::per_lane; ++i) {
            word[i] = load_relaxed(state + F::per_lane * lane + i);
            // A negative sum has borrowed from the count.
            arrived += u32((word[i] + (one >> 1)) >> 52);
        }
        total = load_relaxed(state + meeting_total);
        arrived = warp_sum(arrived);
    } while (total >> 40 != blocks || arrived != (u32(total) & 0xffffff));
#pragma unroll
    for (int i = 0; i < F::per_lane; ++i) {
        sum.limb[i] = i64(word[i] << 12) >> 12;
        if (word[i]) state[F::per_lane * lane + i] = 0;
    }
    if (lane == 0) {
        state[meeting_total] = 0;
        if (specials) state[meeting_special] = 0;
    }
    sum.seen = (total >> 24 & 0xffff ? seen_not_neg_zero : 0) | (specials & 0xfff ? seen_nan : 0) |
               (specials >> 12 & 0xfff ? seen_infinity : 0) | (specials >> 24 & 0xfff ? seen_neg_infinity : 0);
    return true;
}

}  // namespace crosswarp
