// Minima and maxima of segments, and where in the segment they are. ELEMENT names the element type; MAXIMUM is 0
// or 1.
#ifndef ELEMENT
#define ELEMENT element_f32
#define MAXIMUM 0
#endif
#include "reduce/extremum.cuh"
#include "reduce/segments.cuh"
#include "reduce/short_rows.cuh"

namespace crosswarp {

// What a warp exchanges a key as.
template <int bytes> struct unsigned_of_bytes { using type = u32; };
template <> struct unsigned_of_bytes<8> { using type = u64; };

struct extremum_of_segment {
    using E = ELEMENT;
    using storage = E::storage;
    using Search = extremum_search<E>;
    static constexpr bool two = false;

    const reduce_arguments& a;
    two_words found = Search::none();

    explicit __device__ extremum_of_segment(const reduce_arguments& a) : a(a) {}

    __device__ void add(const storage* x, const storage*, u64 count, u64 first) {
        Search search;
        warp_walk<storage, false>(
            x, x, count, [&](const storage* p, const storage*, u64 at) { search.offer_vector(p, first + at); },
            [&](storage p, storage, u64 at) { search.offer(Search::Keys::key(p), first + at); });
        found = warp().reduce(search.found(), first_op());
    }
    __device__ u64 finish(const storage* x, u64 n) {
        return warp::lane() == 0 ? extremum_result<E>(found, x, n, a.finish) : 0;
    }

    // A slot holds, behind a sum's words: what its warp found of the segment that begins with it, of one that
    // began earlier, and how many have come for the former.
    static constexpr int begun = 112, continued = 114, come = 116;
    static __device__ two_words* place(u64* slots, u64 owner, u64 part) {
        return reinterpret_cast<two_words*>(slots + segment_slot * part + (part == owner ? begun : continued));
    }
    __device__ void contribute(u64* slots, u64 owner, u64 me) {
        if (warp::lane()) return;
        *place(slots, owner, me) = found;
        // What was found is there before it is counted.
        __threadfence();
        add_relaxed(slots + segment_slot * owner + come, 1);
    }
    __device__ void collect(u64* slots, u64 owner, u64 me) {
        u64* count = slots + segment_slot * owner + come;
        while (load_relaxed(count) != me - owner + 1) {}
        // What is read below is read after the count.
        __threadfence();
        for (u64 part = owner + warp::lane(); part <= me; part += 32) {
            found = first_op()(found, load_volatile(place(slots, owner, part)));
        }
        found = warp().reduce(found, first_op());
        if (warp::lane() == 0) *count = 0;
    }

    static constexpr int tiny = 32;
    static constexpr bool tiny_fails = false;
    static __device__ bool is_tiny(const reduce_arguments&, u64) { return true; }
    struct of_thread {
        using K = Search::K;
        static constexpr u32 nowhere = ~0u;
        K best = K(~K(0));
        u32 where = nowhere;

        // As in `extremum_search`.
        __device__ void take(storage p, storage, int, u32 i) {
            const K key = Search::Keys::key(p);
            if (key < best || where == nowhere) best = key, where = i;
        }
        template <int lanes, int> __device__ void merge() {
            using word = unsigned_of_bytes<sizeof(K)>::type;
#pragma unroll
            for (int distance = lanes / 2; distance > 0; distance /= 2) {
                const K its = K(__shfl_xor_sync(0xffffffffu, word(best), distance));
                const u32 there = __shfl_xor_sync(0xffffffffu, where, distance);
                if (its < best || (its == best && there < where)) best = its, where = there;
            }
        }
        __device__ bool result(const reduce_arguments& a, u64 n, u64& bits) const {
            bits = n == 0 ? no_value : a.finish == finish_index ? where : Search::Keys::bits(best);
            return true;
        }
    };
    static __device__ bool tiny_result(const reduce_arguments& a, const storage* x, const storage*, int n, u64& bits) {
        of_thread part;
        for (int i = 0; i < n; ++i) part.take(x[i], x[i], 0, i);
        return part.result(a, n, bits);
    }
};

}  // namespace crosswarp

// A third block has room but of 8-byte elements: argmax of rows of 10^4 f32 105 µs instead of 114, of i64 200 instead of 196.
SEGMENT_KERNEL(sizeof(cw::ELEMENT::storage) == 8 ? 2 : 3) short_segments(cw::segment_arguments a) {
    cw::short_segments<cw::extremum_of_segment>(a);
}
SHORT_ROWS_KERNEL(cw::extremum_of_segment, sizeof(cw::ELEMENT::storage) == 8 ? 3 : 5)
SEGMENT_KERNEL(2) long_segments(cw::segment_arguments a) { cw::long_segments<cw::extremum_of_segment>(a); }
