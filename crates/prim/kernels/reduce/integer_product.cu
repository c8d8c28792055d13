// Products of integers, modulo 2^64. ELEMENT names the element type.
#include "reduce/last_block.cuh"
#include "reduce/result.cuh"
#include "reduce/vector_load.cuh"

#ifndef ELEMENT
#define ELEMENT element_i32
#endif

namespace crosswarp {

__device__ inline void product(const reduce_arguments& a) {
    using S = ELEMENT::storage;
    start_early();
    const u64 n = element_count(a);
    two_words mine = {1, 0};
    walk<false, S>(
        are_aligned<false>(a.x, nullptr), static_cast<const S*>(a.x), nullptr, n,
        [&](const S* x, const S*, u64) {
#pragma unroll
            for (int i = 0; i < int(16 / sizeof(S)); ++i) mine.a *= u64(i64(x[i]));
        },
        [&](S x, S, u64) { mine.a *= u64(i64(x)); });
    auto multiply = [](two_words p, two_words q) { return two_words{p.a * q.a, 0}; };
    if (combine_grid(mine, a.state, {1, 0}, multiply)) put_result(a, 0, mine.a);
}

}  // namespace crosswarp

extern "C" __global__ void __launch_bounds__(cw::reduce_threads, 4) reduce(cw::reduce_arguments a) {
    cw::product(a);
}
