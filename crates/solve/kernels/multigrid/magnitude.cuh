// What the threads of a kernel have seen, all together: the largest magnitude, a count.
#pragma once
#include "base.cuh"

namespace crosswarp {

// The bits of a magnitude, which are in the order of magnitudes; what is not finite has larger ones than all that is.
__device__ __forceinline__ u64 magnitude(double value) { return __double_as_longlong(value) & 0x7fffffffffffffffull; }

// Makes words[0] at least the largest of a block's warps, and words[1] not 0 if `bits` of one of their threads is not.
__device__ __forceinline__ void note_largest(u64 largest, u64 bits, u64* words) {
    for (int lanes = 16; lanes > 0; lanes /= 2) largest = max(largest, __shfl_xor_sync(0xffffffffu, largest, lanes));
    const bool some = __any_sync(0xffffffffu, bits != 0);
    if (threadIdx.x % 32 != 0) return;
    // Most warps have nothing to add.
    if (largest > *(volatile u64*)words) atomicMax(words, largest);
    if (some && *(volatile u64*)(words + 1) == 0) atomicMax(words + 1, 1ull);
}

// Adds the counts of a block's threads to a word.
__device__ __forceinline__ void add_counts(u64 count, u64* word) {
    for (int lanes = 16; lanes > 0; lanes /= 2) count += __shfl_xor_sync(0xffffffffu, count, lanes);
    if (threadIdx.x % 32 == 0) atomicAdd(word, count);
}

}  // namespace crosswarp
