// Minimum and maximum, and the lowest index at which they occur.
//
// ELEMENT names the element type; MAXIMUM is 0 or 1. Elements become keys, unsigned integers that are the
// smaller, the more an element is what is looked for; NaN comes before everything, −0 before +0 (for the
// maximum after). The search remembers 16 bytes, in which the index is looked up at the end.
#include "reduce_finish.cuh"
#include "reduce_ticket.cuh"
#include "reduce_vectors.cuh"

#ifndef ELEMENT
#define ELEMENT element_f32
#define MAXIMUM 0
#endif

namespace crosswarp {

constexpr int extremum_threads = 256;

// The floats' layout: bits of the pattern for infinity, and of the canonical NaN.
template <class E> struct pattern;
template <> struct pattern<element_f16> { static constexpr u64 infinity = 0x7c00, nan = 0x7e00; };
template <> struct pattern<element_bf16> { static constexpr u64 infinity = 0x7f80, nan = 0x7fc0; };
template <> struct pattern<element_f32> { static constexpr u64 infinity = format32::infinity, nan = format32::nan; };
template <> struct pattern<element_f64> { static constexpr u64 infinity = format64::infinity, nan = format64::nan; };

template <class T> struct unsigned_of { using type = T; };
template <> struct unsigned_of<signed char> { using type = u8; };
template <> struct unsigned_of<short> { using type = u16; };
template <> struct unsigned_of<int> { using type = u32; };
template <> struct unsigned_of<i64> { using type = u64; };

template <class E, bool is_float> struct keys;

template <class E> struct keys<E, false> {
    using S = typename E::storage;
    using K = typename unsigned_of<S>::type;
    static constexpr K flip = (E::has_sign ? K(1) << (8 * sizeof(K) - 1) : 0) ^ (MAXIMUM ? K(~K(0)) : 0);
    static __device__ K key(S x) { return K(x) ^ flip; }
    static __device__ u64 bits(K key) { return K(key ^ flip); }
};

template <class E> struct keys<E, true> {
    using K = typename E::storage;
    static constexpr K sign = K(1) << (8 * sizeof(K) - 1);
    // As signed integers, ordered as the values are: −0 is −1.
    static __device__ K key(K x) {
        K ordered = x & sign ? ~x : x | sign;
        if (MAXIMUM) ordered = ~ordered;
        return K(x & ~sign) > K(pattern<E>::infinity) ? K(0) : ordered;
    }
    static __device__ u64 bits(K key) {
        if (key == 0) return pattern<E>::nan;
        K ordered = MAXIMUM ? ~key : key;
        return K(ordered & sign ? ordered ^ sign : ~ordered);
    }
};

template <class T> constexpr bool is_float_element = false;
template <> constexpr bool is_float_element<element_f16> = true;
template <> constexpr bool is_float_element<element_bf16> = true;
template <> constexpr bool is_float_element<element_f32> = true;
template <> constexpr bool is_float_element<element_f64> = true;

template <bool aligned> __device__ void extremum(const reduce_arguments& a) {
    using E = ELEMENT;
    using S = E::storage;
    using Keys = keys<E, is_float_element<E>>;
    using K = typename Keys::K;
    constexpr u64 nowhere = ~0ull;
    constexpr int width = 16 / sizeof(S);

    start_early();
    const u64 n = element_count(a);
    const S* x = static_cast<const S*>(a.x);
    K best = K(~K(0));
    u64 where = nowhere;
    auto offer = [&](K key, u64 at) {
        // A thread goes through the indices upwards, so the first of equals stays; the first of all
        // counts even if its key is the largest there is.
        if (key < best || where == nowhere) {
            best = key;
            where = at;
        }
    };
    walk<S, false, aligned>(
        x, nullptr, n,
        [&](const S* v, const S*, u64 at) {
            K least = Keys::key(v[0]);
#pragma unroll
            for (int i = 1; i < width; ++i) {
                K key = Keys::key(v[i]);
                least = key < least ? key : least;
            }
            offer(least, at);
        },
        [&](S v, S, u64 at) { offer(Keys::key(v), at); });
    two_words mine = {best, where};
    auto first = [](two_words p, two_words q) { return q.a < p.a || (q.a == p.a && q.b < p.b) ? q : p; };
    if (!combine_grid(mine, a.state, {~0ull, nowhere}, first)) return;

    if (a.finish == finish_value) {
        *a.out = n ? Keys::bits(K(mine.a)) : no_value;
        return;
    }
    u64 index = mine.b;
    while (n && Keys::key(x[index]) != K(mine.a)) ++index;
    if (a.finish == finish_index) {
        *a.out = n ? index : no_value;
    } else {
        a.out[0] = n != 0;
        a.out[1] = n ? index : 0;
        a.out[2] = n ? Keys::bits(K(mine.a)) : 0;
    }
}

}  // namespace crosswarp

extern "C" __global__ void __launch_bounds__(cw::extremum_threads, 4) reduce(cw::reduce_arguments a) {
    cw::extremum<true>(a);
}
extern "C" __global__ void __launch_bounds__(cw::extremum_threads, 4) reduce_unaligned(cw::reduce_arguments a) {
    cw::extremum<false>(a);
}
