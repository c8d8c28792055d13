// Sums of columns of integers: sum, mean, norm, dot product. ELEMENT names the element type, TERM what is summed up.
#include "reduce/columns.cuh"
#include "reduce/integer.cuh"

#ifndef ELEMENT
#define ELEMENT element_i32
#define TERM value_term
#endif

namespace crosswarp {

struct integers_of_column {
    using E = ELEMENT;
    using storage = E::storage;
    using part = total192;
    static constexpr bool leaves = false;
    static constexpr bool two = TERM::inputs == 2;
    static constexpr bool never_slow = false;
    static constexpr size_t slow_bytes = 0;
    // Bytes under way are few enough to have them without a pause.
    static constexpr int turns = sizeof(storage) == 1 ? 2 : 1, few = few_columns<storage, two ? 4 : 8>;
    static constexpr int flight = two || sizeof(storage) == 8 ? 16 : 32;
    static constexpr storage missing_x = 0, missing_y = 0;
    static constexpr int slots = widest_load<storage>;
    // On a multiprocessor: with more, what a thread has does not fit.
    static constexpr int blocks = sizeof(storage) == 8 ? (two ? 2 : 3) : sizeof(storage) > 1 || two || cw::TERM::squares ? 3 : 4;

    // Of every `slots`-th element of the thread.
    integer_sum<E, TERM> sum[slots];
    part found[slots];

    explicit __device__ integers_of_column(u32) {}

    template <int>
    __device__ void take(const storage (&p)[flight / turns], const storage (&q)[flight / turns], u32) {
#pragma unroll
        for (int e = 0; e < flight / turns; ++e) sum[e % slots].add(p[e], q[e]);
    }
    __device__ void halve(u32 vector) {
#pragma unroll
        for (int c = 0; c < slots; ++c) found[c] = sum[c].total();
#pragma unroll
        for (int half = slots / 2; half > 0; half /= 2) {
            if (half < int(vector)) continue;
#pragma unroll
            for (int c = 0; c < half; ++c) found[c] = join(found[c], found[c + half]);
        }
    }
    __device__ part slot(int c, u32, u64, u32) const { return found[c]; }
    static __device__ part of_few(const storage (&p)[few * few_rows], const storage (&q)[few * few_rows], int c) {
        integer_sum<E, TERM> sum;
#pragma unroll
        for (int row = 0; row < few_rows; ++row) sum.add(p[row * few + c], q[row * few + c]);
        return sum.total();
    }
    static __device__ part join(part a, const part& b) {
        a.add(b.word[0], b.word[1], b.word[2]);
        return a;
    }

    struct total : total192 {
        __device__ void take(const part& other, u32 = 0) { add(other.word[0], other.word[1], other.word[2]); }
        __device__ void merge(const total& other) { take(other); }
    };
    static __device__ bool quick(const column_arguments& a, const part& sum, u64& bits) {
        const u64 low = sum.word[0];
        bits = low;
        if (a.all.finish == finish_value) return true;
        // What an f64 holds, and a division or root of it rounds once.
        const u64 sign = i64(low) < 0 ? ~0ull : 0, size = i64(low) < 0 ? -low : low;
        const double value = double(i64(low));
        bits = __double_as_longlong(a.all.finish == finish_mean ? value / double(a.all.n) : sqrt(value));
        return sum.word[1] == sign && sum.word[2] == sign && size >> 53 == 0;
    }
    // Of one number, which all lanes have, and all warps that are called.
    static __device__ __noinline__ u64 slow(const column_arguments& a, u64, part sum, unsigned char*) {
        warp_accumulator<format192> total;
        add_wide(total, warp::lane() == 0 ? sum : part());
        u64 word[3];
        return integer_result(total, a.all.n, a.all.finish, word);
    }
};

}  // namespace crosswarp

COLUMN_KERNEL(cw::integers_of_column, cw::integers_of_column::blocks)
