// Products of floating-point elements: leaves as in a sum, then leaves of the array of leaf products, and
// so on until one value is left. ELEMENT names the element type.
//
// The products of the first level lie in memory, in order; the last block to finish makes the others.
#include "reduce/last_block.cuh"
#include "reduce/result.cuh"
#include "reduce/warp_leaf.cuh"

#ifndef ELEMENT
#define ELEMENT element_f32
#endif

namespace crosswarp {

// The product of a leaf of values that this launch has written, as bits in 64-bit words; one warp.
template <class F> __device__ inline typename F::type product_of_words(const u64* words, u64 count) {
    using T = typename F::type;
    T x[4] = {1, 1, 1, 1};
    for (int row = 0; row < leaf_rows; ++row) {
#pragma unroll
        for (int c = 0; c < 4; ++c) {
            u64 k = row * leaf_lanes + 32 * c + warp::lane();
            if (k < count) x[c] = x[c] * F::from_bits(load_volatile(words + k));
        }
    }
    return halve_quarters(x[0], x[1], x[2], x[3], leaf_product());
}

// `a.y`: with `finish_words` null, and the leaves' products are the result; else room for the products of
// all levels.
__device__ inline void product(const reduce_arguments& a) {
    using E = ELEMENT;
    using F = E::format;
    using L = leaf_layout<E>;
    start_early();
    const u64 n = element_count(a);
    const int warps = blockDim.x / 32, me = threadIdx.x / 32, lane = warp::lane();
    u64* level = a.finish == finish_words ? a.out : static_cast<u64*>(const_cast<void*>(a.y));
    u64 count = (n + leaf_elements - 1) / leaf_elements;

    const warp_leaves<E, value_term, leaf_product, false> pass(a.x, nullptr);
    const u64 from = u64(me) * gridDim.x + blockIdx.x;
    run_leaves(pass, n, from, pass.first(from), u64(warps) * gridDim.x, [&](u64 u, typename F::type value) {
        u64 leaf = u * L::leaves + lane / L::lanes;
        if (lane % L::lanes == 0 && leaf < count) level[leaf] = F::to_bits(value);
    });
    if (a.finish == finish_words || !is_last_block(a.state)) return;
    while (count > 1) {
        u64* next = level + count;
        u64 leaves = (count + leaf_elements - 1) / leaf_elements;
        for (u64 leaf = me; leaf < leaves; leaf += warps) {
            u64 left = count - leaf * leaf_elements;
            auto value = product_of_words<F>(level + leaf * leaf_elements, left);
            if (lane == 0) next[leaf] = F::to_bits(value);
        }
        __syncthreads();
        level = next;
        count = leaves;
    }
    if (threadIdx.x == 0) {
        auto value = count ? F::from_bits(load_volatile(level)) : leaf_product::identity<typename F::type>();
        put_result(a, 0, value != value ? F::nan : u64(F::to_bits(value)));
    }
}

}  // namespace crosswarp

#define BLOCKS (sizeof(cw::ELEMENT::storage) == 8 ? 1 : 2)
extern "C" __global__ void __launch_bounds__(cw::reduce_threads, BLOCKS) reduce(cw::reduce_arguments a) {
    cw::product(a);
}
