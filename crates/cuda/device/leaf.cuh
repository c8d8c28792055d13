// The leaf of a reproducible sum: its shape, and the one order in which its 128 sums are combined.
//
// A leaf is 16 rows of 128 elements: of an array 2048 consecutive ones by global index, of a grid 16 rows by 128
// columns of global coordinates. Leaf lane k takes the elements of column k in the order of rows, from −0.0 on. Then
// the leaf lanes are combined by halving: lane k takes in lane k + 64, then of the remaining 64 lane k takes in
// k + 32, and so on down to one. `leaf.rs` of crosswarp-prim is the contract; here are the same additions for the
// ways in which the threads of a warp hold leaf lanes.
//
// Halving by columns bounds the error as pairwise summation does (Higham, "The accuracy of floating point summation",
// 1993), and the order is one that 128 lanes of a vector unit and the threads of a warp can both keep.
//
// Who calls: every lane of a whole warp. The result is valid in every thread that holds a part of the leaf. Memory
// ordering: none, these are shuffles. Cost: log2 of the threads of a leaf steps, one after the other. Addition
// commutes, so that both partners of a shuffle get the same bits. The bits of a leaf are those of its shape: whoever
// cuts an array elsewhere gets others. Leaves are added up exactly (superaccumulator.cuh), so the order of leaves and
// the shape of the launch mean nothing.
#pragma once
#include "sum_layout.cuh"

namespace crosswarp {

constexpr int leaf_elements = leaf_rows * leaf_lanes;

struct leaf_sum {
    template <class T> static __device__ T identity() { return T(-0.0); }
    template <class T> __device__ T operator()(T a, T b) const { return a + b; }
};
struct leaf_product {
    template <class T> static __device__ T identity() { return T(1); }
    template <class T> __device__ T operator()(T a, T b) const { return a * b; }
};

// `Lanes` neighbouring threads hold `Width` neighbouring leaf lanes each, the last Lanes × Width that are left by
// halving (all 128, or fewer). The value, in each of these threads.
//
// All of a thread's sums travel side by side: this takes more shuffles than handing over half of them at each step, but
// fewer steps one after the other.
template <int Width, int Lanes, class T, int Size, class Op = leaf_sum>
__device__ __forceinline__ T halve_side_by_side(T (&x)[Size], Op op = Op()) {
    static_assert(Size >= Width, "the first Width are what is left");
#pragma unroll
    for (int distance = Lanes / 2; distance > 0; distance /= 2) {
#pragma unroll
        for (int c = 0; c < Width; ++c) x[c] = op(x[c], __shfl_xor_sync(0xffffffffu, x[c], distance));
    }
#pragma unroll
    for (int half = Width / 2; half > 0; half /= 2) {
#pragma unroll
        for (int c = 0; c < half; ++c) x[c] = op(x[c], x[c + half]);
    }
    return x[0];
}

// Thread l of a warp holds the leaf lanes l, l + 32, l + 64 and l + 96. The value, in every thread.
template <class T, class Op = leaf_sum>
__device__ __forceinline__ T halve_quarters(T x0, T x32, T x64, T x96, Op op = Op()) {
    T total = op(op(x0, x64), op(x32, x96));
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) {
        total = op(total, __shfl_xor_sync(0xffffffffu, total, distance));
    }
    return total;
}

// 128 / W neighbouring threads hold W neighbouring leaf lanes each. The value, in each of these threads; `lane`: this
// thread's number in the warp.
//
// Distances of 64 … W leaf lanes come first, between threads, each of which then keeps half of its sums while there is
// more than one; then those below W, which by then lie in different threads. The fewest shuffles there can be.
template <class T, int W> __device__ __forceinline__ T halve_handing_over(T (&sum)[W], int lane) {
    constexpr u32 all = 0xffffffffu;
    constexpr int lanes = leaf_lanes / W;
    int bit = lanes / 2;
#pragma unroll
    for (int n = W / 2; n >= 1; n /= 2, bit /= 2) {
        bool upper = lane & bit;
#pragma unroll
        for (int c = 0; c < n; ++c) {
            T keep = upper ? sum[c + n] : sum[c], give = upper ? sum[c] : sum[c + n];
            sum[c] = keep + __shfl_xor_sync(all, give, bit);
        }
    }
    T total = sum[0];
#pragma unroll
    for (; bit >= 1; bit /= 2) total = total + __shfl_xor_sync(all, total, bit);
    bit = lanes / 2;
#pragma unroll
    for (int n = W; n > 1; n /= 2, bit /= 2) total = total + __shfl_xor_sync(all, total, bit);
    return total;
}

}  // namespace crosswarp
