// Minimum and maximum: elements as keys, and where the least key is.
//
// MAXIMUM is 0 or 1. Elements become keys, unsigned integers of which the smallest is that of the
// extremum; NaN comes before everything, −0 before +0 (for the maximum after). The search remembers 16
// bytes, in which the index is looked up at the end. (`min_op` and `max_op` of base.cuh order values alike, but return
// the NaN that they were given, where a key has none: any NaN becomes the canonical one here.)
#pragma once
#include "reduce/last_block.cuh"
#include "reduce/result.cuh"
#include "reduce/vector_load.cuh"

namespace crosswarp {

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

// The first of the least keys that a thread has met.
template <class E> struct extremum_search {
    using S = typename E::storage;
    using Keys = keys<E, is_float_element<E>>;
    using K = typename Keys::K;
    static constexpr u64 nowhere = ~0ull;

    K best = K(~K(0));
    u64 where = nowhere;

    // The index is that of the element or of the first of 16 bytes of them. A thread goes through the indices
    // upwards, so the first of equals stays; the first of all counts even if its key is the largest there is.
    __device__ void offer(K key, u64 at) {
        if (key < best || where == nowhere) {
            best = key;
            where = at;
        }
    }
    __device__ void offer_vector(const S* x, u64 at) {
        K least = Keys::key(x[0]);
#pragma unroll
        for (int i = 1; i < int(16 / sizeof(S)); ++i) {
            K key = Keys::key(x[i]);
            least = key < least ? key : least;
        }
        offer(least, at);
    }
    __device__ two_words found() const { return {best, where}; }
    static __device__ two_words none() { return {~0ull, nowhere}; }
};

// Of two findings the first.
struct first_op {
    __device__ two_words operator()(two_words p, two_words q) const {
        return q.a < p.a || (q.a == p.a && q.b < p.b) ? q : p;
    }
};

// Where what was found among n elements at x is: the index is that of the first of 16 bytes of them.
template <class E> __device__ inline u64 exact_index(two_words found, const typename E::storage* x, u64 n) {
    using Keys = typename extremum_search<E>::Keys;
    u64 index = found.b;
    while (n && Keys::key(x[index]) != typename Keys::K(found.a)) ++index;
    return index;
}

// The bits of the result, an element or an index. One thread calls.
template <class E>
__device__ inline u64 extremum_result(two_words found, const typename E::storage* x, u64 n, u64 kind) {
    using Keys = typename extremum_search<E>::Keys;
    if (n == 0) return no_value;
    return kind == finish_value ? Keys::bits(typename Keys::K(found.a)) : exact_index<E>(found, x, n);
}

// Writes the result of what was found among n elements at x. One thread calls.
template <class E>
__device__ inline void finish_extremum(two_words found, const void* at, u64 n, const reduce_arguments& a) {
    using Keys = typename extremum_search<E>::Keys;
    using K = typename Keys::K;
    const auto* x = static_cast<const typename E::storage*>(at);
    if (a.finish == finish_value || a.finish == finish_index) {
        put_result(a, 0, extremum_result<E>(found, x, n, a.finish));
    } else {
        const u64 index = exact_index<E>(found, x, n);
        a.out[0] = n != 0;
        a.out[1] = n ? index : 0;
        a.out[2] = n ? Keys::bits(K(found.a)) : 0;
    }
}

}  // namespace crosswarp
