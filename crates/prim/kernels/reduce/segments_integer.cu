// Sums of segments of integers: sum, mean, norm, dot product. ELEMENT names the element type, TERM what is summed
// up.
#include "reduce/integer.cuh"
#include "reduce/segments.cuh"
#include "reduce/short_rows.cuh"

#ifndef ELEMENT
#define ELEMENT element_i32
#define TERM value_term
#endif

namespace crosswarp {

struct integers_of_segment {
    using E = ELEMENT;
    using storage = E::storage;
    static constexpr bool two = TERM::inputs == 2;

    const reduce_arguments& a;
    warp_accumulator<format192> total;

    explicit __device__ integers_of_segment(const reduce_arguments& a) : a(a) {}

    __device__ void add(const storage* x, const storage* y, u64 count, u64) {
        integer_sum<E, TERM> mine;
        warp_walk<storage, two>(
            x, y, count, [&](const storage* p, const storage* q, u64) { mine.add_vector(p, q); },
            [&](storage p, storage q, u64) { mine.add(p, q); });
        add_threads(total, mine);
    }
    __device__ u64 finish(const storage*, u64 n) {
        u64 word[3];
        return integer_result(total, n, a.finish, word);
    }
    __device__ void contribute(u64* slots, u64 owner, u64) {
        crosswarp::contribute(total, slots + segment_slot * owner);
    }
    __device__ void collect(u64* slots, u64 owner, u64 me) {
        crosswarp::collect(total, slots + segment_slot * owner, me - owner + 1);
    }

    static constexpr int tiny = 32;
    static constexpr bool tiny_fails = false;
    // Means and norms of so few are quotients and roots of exact doubles only if elements are narrow.
    static __device__ bool is_tiny(const reduce_arguments& a, u64 n) {
        return a.finish == finish_value || (sizeof(storage) <= 2 && n > 0);
    }
    struct of_thread {
        integer_sum<E, TERM> mine;
        // Once merged, modulo 2^64.
        u64 sum;

        __device__ void take(storage p, storage q, int, u64) { mine.add(p, q); }
        template <int lanes, int> __device__ void merge() {
            sum = mine.total().word[0];
#pragma unroll
            for (int distance = lanes / 2; distance > 0; distance /= 2) {
                sum += __shfl_xor_sync(0xffffffffu, sum, distance);
            }
        }
        __device__ bool result(const reduce_arguments& a, u64 n, u64& bits) const {
            const double value = double(i64(sum));
            bits = a.finish == finish_value ? sum
                                            : __double_as_longlong(a.finish == finish_mean ? value / n : sqrt(value));
            return true;
        }
    };
    static __device__ bool tiny_result(const reduce_arguments& a, const storage* x, const storage* y, int n,
                                       u64& bits) {
        of_thread part;
        for (int i = 0; i < n; ++i) part.take(x[i], two ? y[i] : x[i], 0, i);
        part.merge<1, 1>();
        return part.result(a, n, bits);
    }
};

}  // namespace crosswarp

// A third block has no room for what is under way of 8-byte elements: sums of 10^4 rows of 10^4 i64 205 µs instead of 185.
SEGMENT_KERNEL(sizeof(cw::ELEMENT::storage) == 8 ? 2 : 3) short_segments(cw::segment_arguments a) {
    cw::short_segments<cw::integers_of_segment>(a);
}
SHORT_ROWS_KERNEL(cw::integers_of_segment, sizeof(cw::ELEMENT::storage) == 8 ? 3 : 5)
SEGMENT_KERNEL(2) long_segments(cw::segment_arguments a) { cw::long_segments<cw::integers_of_segment>(a); }
