// Sums of integers, exactly: sum, mean, norm, and the dot product modulo 2^64.
//
// ELEMENT names the element type, TERM what is summed up.
#include "reduce/integer.cuh"

#ifndef ELEMENT
#define ELEMENT element_i32
#define TERM value_term
#endif

namespace crosswarp {

__device__ inline void sum(const reduce_arguments& a) {
    using E = ELEMENT;
    using S = E::storage;
    constexpr int limbs = format192::limbs;
    __shared__ i64 of_warp[reduce_threads / 32][limbs];

    // Whether a warp's sum is the result; computed here, while the launch waits.
    u32 direct = gridDim.x == 1 && a.finish == finish_value;
    u32 aligned = are_aligned<TERM::inputs == 2>(a.x, a.y);
    asm volatile("" : "+r"(direct), "+r"(aligned));
    start_early<TERM::inputs == 2, S>(a, first_unit() * walk_unit_bytes<TERM::inputs == 2>);
    const u64 n = element_count(a);
    const int warps = blockDim.x / 32, me = threadIdx.x / 32, lane = warp::lane();
    integer_sum<E, TERM> mine;
    walk<TERM::inputs == 2>(
        aligned, static_cast<const S*>(a.x), static_cast<const S*>(a.y), n,
        [&](const S* x, const S* y, u64) { mine.add_vector(x, y); },
        [&](S x, S y, u64) { mine.add(x, y); });

    warp_accumulator<format192> total;
    if (mine.narrow) {
        i64 sum = warp_sum_narrow(i64(mine.total().word[0]));
        if (warps > 1) {
            if (lane == 0) of_warp[me][0] = sum;
            __syncthreads();
            if (me) return;
            sum = warp_sum_narrow(lane < warps ? of_warp[lane][0] : 0);
        }
        if (direct) {
            if (lane == 0) put_result(a, 0, u64(sum));
            return;
        }
        add_narrow(total, sum);
    } else {
        add_wide(total, mine.total());
        if (warps > 1) {
            if (lane < limbs) of_warp[me][lane] = total.limb[0];
            __syncthreads();
            if (me) return;
            for (int w = 1; w < warps; ++w) total.limb[0] += lane < limbs ? of_warp[w][lane] : 0;
        }
    }
    __syncwarp();
    if (gridDim.x > 1 && !combine_blocks(total, a.state)) return;

    finish_integer(total, n, a);
}

}  // namespace crosswarp

// With two blocks per SM the compiler keeps the loads before their use; asked for more it would save registers,
// which took 2^12 elements from 1.1 to 1.5 µs.
extern "C" __global__ void __launch_bounds__(cw::reduce_threads, 2) reduce(cw::reduce_arguments a) {
    cw::sum(a);
}
