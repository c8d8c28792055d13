// The kernel of a pass of several sweeps: every warp group a strip.
#pragma once
#include "jacobi/arguments.cuh"
#include "jacobi/temporal/wavefront.cuh"

namespace crosswarp {

#if defined(__CUDA_ARCH__)
// Shared memory that a block can have, at least, in KiB.
constexpr int shared_kib = __CUDA_ARCH__ == 750                                                              ? 64
                           : __CUDA_ARCH__ == 800 || (__CUDA_ARCH__ >= 900 && __CUDA_ARCH__ < 1200) ? 163
                                                                                                              : 96;
#else
constexpr int shared_kib = 64;
#endif

template <class F, int T, int K, int Warps>
constexpr bool has_room = sizeof(typename wavefront_shape<F, T, K>::template scratch<Warps>) <= shared_kib * 1024;
// Warps of a block: 8 own more whole leaves than twice 4 do, but need twice the shared memory.
template <class F, int T, int K>
constexpr int pass_warps = has_room<F, T, K, 8> ? 8 : has_room<F, T, K, 4> ? 4 : 2;

template <class F, int T, int K, bool Fixed, bool Source>
__device__ __forceinline__ void pass(const band<F>& g, const strips& cut, int depth) {
    constexpr int block_warps = pass_warps<F, T, K>;
    static_assert(has_room<F, T, K, block_warps>, "a block's shared memory");
    extern __shared__ uint4 shared[];
    auto& scratch = *(typename wavefront_shape<F, T, K>::template scratch<block_warps>*)shared;
    // By a shuffle, so that the compiler knows it to be the same in all lanes. Otherwise it guards every shuffle that
    // follows against lanes that have diverged: a tenth more instructions in a step, and nearly twice the code.
    const int warp = __shfl_sync(0xffffffffu, threadIdx.x / 32, 0);
    int kind = 0;
#pragma unroll
    for (int i = 1; i < strip_kinds; ++i) kind += (i32)blockIdx.x >= cut.of[i].first_block;
    const strips_of& of = cut.of[kind];
    if (threadIdx.x * of.warps < block_warps) scratch.left[threadIdx.x].init(32 * of.warps);
    // Nobody arrives before.
    __syncthreads();
    const int in_block = warp / of.warps;
    const int number = ((i32)blockIdx.x - of.first_block) * (block_warps / of.warps) + in_block;
    const i64 row = (i64)(number / of.across) * of.rows;
    if (row >= of.end - of.start) return;
    const int y0 = of.start + (int)row;
    const strip at = {in_block * of.warps, warp % of.warps, of.warps, of.x + number % of.across * of.step,
                      y0, min(y0 + of.rows, of.end)};
    wavefront<F, T, K, block_warps, Fixed, Source>(g, scratch, at, depth).run();
    if ((i32)blockIdx.x < cut.counted_blocks) {
        // Release, after the whole warp's stores: who sees the count sees the rows. The exchange runs beside this
        // kernel and must not send what was there before.
        __syncwarp();
        if (threadIdx.x % 32 == 0) asm volatile("red.release.gpu.global.add.u64 [%0], 1;" ::"l"(cut.made) : "memory");
    }
}

// A kernel of passes of up to T sweeps, K columns a lane, so many warps an SM.
#define CROSSWARP_PASS(name, F, T, K, sm_warps, fixed, source)                          \
    extern "C" __global__ void                                                          \
    __launch_bounds__(32 * cw::pass_warps<F, T, K>, sm_warps / cw::pass_warps<F, T, K>) \
        name(cw::band<F> g, const __grid_constant__ cw::strips cut, int depth) {        \
        cw::pass<F, T, K, fixed, source>(g, cut, depth);                                \
    }

}  // namespace crosswarp
