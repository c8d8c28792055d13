// Walking over elements whose order does not matter: 16 bytes a thread at a time, several in flight.
#pragma once
#include "reduce_leaf.cuh"

namespace crosswarp {

// Integer types by the names they have in Rust, with the type their sums are formed in, and whether
// they are signed.
template <class T, class Wide, bool is_signed> struct integer_element {
    using storage = T;
    using wide = Wide;
    static constexpr bool is_float = false;
    static constexpr bool has_sign = is_signed;
};
struct element_i8 : integer_element<signed char, i64, true> {};
struct element_i16 : integer_element<short, i64, true> {};
struct element_i32 : integer_element<int, i64, true> {};
struct element_i64 : integer_element<i64, i64, true> {};
struct element_u8 : integer_element<u8, u64, false> {};
struct element_u16 : integer_element<u16, u64, false> {};
struct element_u32 : integer_element<u32, u64, false> {};
struct element_u64 : integer_element<u64, u64, false> {};

// Gives this thread's elements of inputs of n elements to `use(x, y, first)`: arrays of 16 bytes of
// elements, of which the first has the index `first`; and the last, incomplete 16 bytes element by element
// to `rest(x, y, index)`. Each thread goes through the indices upwards. `y` is null if there is one input.
template <class S, bool two, bool aligned, class Use, class Rest>
__device__ inline void walk(const S* x, const S* y, u64 n, Use use, Rest rest) {
    constexpr int width = 16 / sizeof(S);
    constexpr int flight = two ? 4 : 8;
    const u64 vectors = n / width;
    const u64 threads = u64(gridDim.x) * blockDim.x;
    u64 v = u64(blockIdx.x) * blockDim.x + threadIdx.x;
    auto give = [&](uint4 a, uint4 b, u64 at) {
        S p[width], q[width];
        memcpy(p, &a, 16);
        memcpy(q, &b, 16);
        use(p, q, at * width);
    };
    for (; v + (flight - 1) * threads < vectors; v += flight * threads) {
        uint4 a[flight], b[two ? flight : 1];
#pragma unroll
        for (int i = 0; i < flight; ++i) {
            a[i] = load_elements<S, aligned>(x + (v + i * threads) * width);
            if (two) b[i] = load_elements<S, aligned>(y + (v + i * threads) * width);
        }
#pragma unroll
        for (int i = 0; i < flight; ++i) give(a[i], b[two ? i : 0], v + i * threads);
    }
    // What is left: fewer than `flight` vectors, all in flight at once.
    uint4 a[flight - 1], b[two ? flight - 1 : 1];
#pragma unroll
    for (int i = 0; i < flight - 1; ++i) {
        if (v + i * threads >= vectors) continue;
        a[i] = load_elements<S, aligned>(x + (v + i * threads) * width);
        if (two) b[i] = load_elements<S, aligned>(y + (v + i * threads) * width);
    }
#pragma unroll
    for (int i = 0; i < flight - 1; ++i) {
        if (v + i * threads < vectors) give(a[i], b[two ? i : 0], v + i * threads);
    }
    // The last few elements go to the first threads.
    u64 k = vectors * width + (u64(blockIdx.x) * blockDim.x + threadIdx.x);
    if (k < n) rest(x[k], two ? y[k] : x[k], k);
}

}  // namespace crosswarp
