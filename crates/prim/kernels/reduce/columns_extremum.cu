// Minima and maxima of columns, and in which row they are. ELEMENT names the element type; MAXIMUM is 0 or 1.
#ifndef ELEMENT
#define ELEMENT element_f32
#define MAXIMUM 0
#endif
#include "reduce/columns.cuh"
#include "reduce/extremum.cuh"

namespace crosswarp {

// The element of which no other comes after: infinity, or the largest or smallest integer.
template <class E> __device__ constexpr typename E::storage last_element() {
    using S = typename E::storage;
    if constexpr (is_float_element<E>) return S(pattern<E>::infinity | (MAXIMUM ? keys<E, true>::sign : 0));
    else return S(keys<E, false>::flip ^ typename keys<E, false>::K(~0ull));
}

struct extremum_of_column {
    using E = ELEMENT;
    using storage = E::storage;
    using part = two_words;
    using Keys = keys<E, is_float_element<E>>;
    using K = Keys::K;
    static constexpr bool leaves = false;
    static constexpr bool two = false;
    static constexpr bool never_slow = true;
    static constexpr size_t slow_bytes = 0;
    static constexpr int turns = 1, few = few_columns<storage, 8>;
    static constexpr int flight = sizeof(storage) == 8 ? 16 : 32;
    static constexpr storage missing_x = last_element<E>(), missing_y = 0;
    static constexpr int slots = widest_load<storage>;
    static constexpr u32 nowhere = ~0u;

    // The first of the least keys of every `slots`-th element of the thread, and which of its elements it is.
    K best[slots];
    u32 where[slots];

    // With a key as large as any, the first element there is.
    explicit __device__ extremum_of_column(u32 there) {
#pragma unroll
        for (int c = 0; c < slots; ++c) best[c] = Keys::key(missing_x), where[c] = c < there ? c : nowhere;
    }
    template <int> __device__ void take(const storage (&p)[flight], const storage (&)[flight], u32 first) {
#pragma unroll
        for (int e = 0; e < flight; ++e) {
            const K key = Keys::key(p[e]);
            const int c = e % slots;
            if (key < best[c]) best[c] = key, where[c] = first + e;
        }
    }
    __device__ void halve(u32 vector) {
#pragma unroll
        for (int half = slots / 2; half > 0; half /= 2) {
            if (half < int(vector)) continue;
#pragma unroll
            for (int c = 0; c < half; ++c) {
                const K key = best[c + half];
                const u32 at = where[c + half];
                if (key < best[c] || (key == best[c] && at < where[c])) best[c] = key, where[c] = at;
            }
        }
    }
    __device__ part slot(int c, u32 vector, u64 row, u32 ways) const {
        return {u64(best[c]), where[c] == nowhere ? ~0ull : row + u64(where[c] >> (__ffs(vector) - 1)) * ways};
    }
    static __device__ part of_few(const storage (&p)[few * few_rows], const storage (&)[few * few_rows], int c) {
        K best = Keys::key(p[c]);
        u32 where = 0;
#pragma unroll
        for (int row = 1; row < few_rows; ++row) {
            const K key = Keys::key(p[row * few + c]);
            if (key < best) best = key, where = row;
        }
        return {u64(best), where};
    }
    static __device__ part join(const part& a, const part& b) { return first_op()(a, b); }

    struct total : two_words {
        __device__ total() : two_words(extremum_search<E>::none()) {}
        __device__ void take(const part& other, u32 = 0) { static_cast<two_words&>(*this) = first_op()(*this, other); }
        __device__ void merge(const total& other) { take(other); }
    };
    static __device__ bool quick(const column_arguments& a, const part& found, u64& bits) {
        bits = a.all.finish == finish_value ? Keys::bits(K(found.a)) : found.b;
        return true;
    }
    static __device__ u64 slow(const column_arguments&, u64, const part&, unsigned char*) { return 0; }
};

}  // namespace crosswarp

COLUMN_KERNEL(cw::extremum_of_column, 4)
