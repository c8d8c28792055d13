// The exact sum of floating-point elements: each one goes into a superaccumulator, so that not even the
// order of the elements matters. ELEMENT names the element type.
//
// Every thread has a superaccumulator of its own in shared memory, laid out so that the threads of a warp
// never meet in a bank.
#include "reduce/block_combine.cuh"
#include "reduce/result.cuh"
#include "reduce/vector_load.cuh"

#ifndef ELEMENT
#define ELEMENT element_f32
#endif

namespace crosswarp {

// 20 KB of shared memory a block for f32, 34 KB for f64.
constexpr int exact_threads = sizeof(ELEMENT::storage) == 8 ? exact_f64_threads : reduce_threads;

__device__ inline void exact_sum(const reduce_arguments& a) {
    using E = ELEMENT;
    using S = E::storage;
    using F = E::format;
    constexpr int per = F::per_lane;
    __shared__ i64 limb[F::limbs][exact_threads];
    __shared__ i64 of_block[32 * per];

    start_early();
    const u64 n = element_count(a);
    const int t = threadIdx.x, warps = blockDim.x / 32, me = t / 32, lane = warp::lane();
    for (int k = 0; k < F::limbs; ++k) limb[k][t] = 0;
    for (int k = t; k < 32 * per; k += blockDim.x) of_block[k] = 0;
    u32 seen = 0;
    // At most 2^31 elements a thread, each below 2^32 in a limb: no limb overflows.
    auto add = [&](S element) {
        chunks c = chunks_of<F>(E::widen(element));
        seen |= c.seen;
#pragma unroll
        for (int i = 0; i < (F::precision > 32 ? 3 : 2); ++i) {
            i64& at = limb[c.limb + i][t];
            at += c.negative ? -i64(c.chunk[i]) : i64(c.chunk[i]);
        }
    };
    walk<false, S>(
        are_aligned<false>(a.x, nullptr), static_cast<const S*>(a.x), nullptr, n,
        [&](const S* x, const S*, u64) {
#pragma unroll
            for (int i = 0; i < int(16 / sizeof(S)); ++i) add(x[i]);
        },
        [&](S x, S, u64) { add(x); });
    u32 all_seen = 0;
#pragma unroll
    for (u32 bit = seen_not_neg_zero; bit <= seen_neg_infinity; bit *= 2) {
        if (__syncthreads_or(seen & bit)) all_seen |= bit;
    }

    // Each warp adds up some of the limbs.
    for (int k = me; k < F::limbs; k += warps) {
        i64 sum = 0;
        for (int other = lane; other < int(blockDim.x); other += 32) sum += limb[k][other];
        sum = warp().sum(sum);
        if (lane == 0) of_block[F::warp_below + k] = sum;
    }
    __syncthreads();
    if (me) return;
    warp_accumulator<F> total;
    total.seen = all_seen;
#pragma unroll
    for (int i = 0; i < per; ++i) total.limb[i] = of_block[per * lane + i];
    total.carry();
    if (gridDim.x > 1 && !combine_blocks(total, a.state)) return;
    finish<F>(total, n, a);
}

}  // namespace crosswarp

extern "C" __global__ void __launch_bounds__(cw::exact_threads) reduce(cw::reduce_arguments a) {
    cw::exact_sum(a);
}
