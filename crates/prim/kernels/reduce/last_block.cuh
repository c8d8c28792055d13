// The last block to finish combines what all blocks have: for results that atomics cannot add.
#pragma once
#include "reduce/block_combine.cuh"

namespace crosswarp {

// Words of the state behind those of `combine_blocks`: a counter, zero before and after a launch, and from
// word `block_slots` on two words for each block, which keep what they get.
constexpr int block_counter = 98;

struct alignas(16) two_words {
    u64 a, b;
};

// True in the threads of the block that is the last one here, which then sees what all threads of all
// blocks have written. All threads of a block call.
__device__ inline bool is_last_block(u64* state) {
    __shared__ bool last;
    // Orders the block's writes before its count, and below the other blocks' writes after theirs.
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        u32* counter = reinterpret_cast<u32*>(state + block_counter);
        last = atomicAdd(counter, 1) == gridDim.x - 1;
        if (last) *counter = 0;
    }
    __syncthreads();
    if (last) __threadfence();
    return last;
}

// Combines the values of all threads of the grid with `op`, whose identity is `none`. True in thread 0 of
// the block that has the result.
template <class Op> __device__ inline bool combine_grid(two_words& mine, u64* state, two_words none, Op op) {
    __shared__ two_words of_warp[32];
    const int warps = blockDim.x / 32, me = threadIdx.x / 32;
    auto in_block = [&] {
        mine = warp().reduce(mine, op);
        if (warp::lane() == 0) of_warp[me] = mine;
        __syncthreads();
        if (threadIdx.x == 0) {
            for (int w = 1; w < warps; ++w) mine = op(mine, of_warp[w]);
        }
    };
    in_block();
    if (gridDim.x == 1) return threadIdx.x == 0;
    two_words* slots = reinterpret_cast<two_words*>(state + block_slots);
    if (threadIdx.x == 0) slots[blockIdx.x] = mine;
    if (!is_last_block(state)) return false;
    mine = none;
    for (u32 b = threadIdx.x; b < gridDim.x; b += blockDim.x) mine = op(mine, load_volatile(slots + b));
    in_block();
    return threadIdx.x == 0;
}

}  // namespace crosswarp
