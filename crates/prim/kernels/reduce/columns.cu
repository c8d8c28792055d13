// Reproducible sums of columns of floating-point elements: sum, mean, norm, dot product.
//
// ELEMENT names the element type, TERM what is summed up.
#include "reduce/columns.cuh"
#include "reduce/doubtful_leaf.cuh"

#ifndef ELEMENT
#define ELEMENT element_f32
#define TERM value_term
#endif

namespace crosswarp {

// a + b, and what rounding took away (Knuth's two-sum).
__device__ inline double two_sum(double a, double b, double& error) {
    const double sum = a + b, of_b = sum - a;
    error = (a - (sum - of_b)) + (b - of_b);
    return sum;
}

// A sum as two numbers, exact unless something was `lost`: then it takes a superaccumulator.
struct sum_of_two {
    double high = -0.0, low = 0;
    bool lost = false;

    __device__ void add(double a, double b) {
        double error, second, rest;
        high = two_sum(high, a, error);
        low = two_sum(low, b, rest);
        low = two_sum(low, error, second);
        // NaN, too, if it overflows.
        lost = lost || rest != 0 || second != 0;
    }
};

struct sum_of_column {
    using E = ELEMENT;
    using F = E::format;
    using T = F::type;
    using storage = E::storage;
    using part = T;
    static constexpr bool two = TERM::inputs == 2;
    static constexpr bool never_slow = false;
    static constexpr int flight = two || sizeof(storage) == 8 ? 16 : 32;
    // The term is −0.0, or a square of +0.0: which changes nothing, for rows that are there have no other.
    static constexpr storage missing_x = storage(1) << (8 * sizeof(storage) - 1);
    static constexpr storage missing_y = storage(1) << (8 * sizeof(storage) - 4);
    static constexpr int sums = 16;
    // On a multiprocessor. A thread has two registers for each f64, and a second input's elements, or terms that are not
    // elements: with more they do not fit.
    static constexpr int blocks = sizeof(T) == 8 ? 2 : two || cw::TERM::squares ? 3 : 4;

    // Of 8 `vector` ways a thread has 16 / `vector` leaf lanes of `vector` columns, and adds each in the order of its
    // rows. With other numbers of ways, each row of the column is in a leaf lane of its own: then the first addition to a
    // sum is one of the halving.
    T sum[sums];

    __device__ explicit sum_of_column(u32) {
#pragma unroll
        for (int k = 0; k < sums; ++k) sum[k] = leaf_sum::identity<T>();
    }

    __device__ void take(const storage (&p)[flight], const storage (&q)[flight], u32) {
#pragma unroll
        for (int e = 0; e < flight; ++e) {
            const T value = E::widen(p[e]);
            sum[e % sums] = sum[e % sums] + TERM::of(value, two ? E::widen(q[e]) : value);
        }
    }

    __device__ void halve(u32 vector) {
        halve_once<8>();
        halve_once<4>();
        if (widest_load<storage> == 2 || vector <= 2) halve_once<2>();
        if (vector == 1) halve_once<1>();
    }

    __device__ T slot(int c, u32, u64, u32) const { return sum[c]; }
    static __device__ T join(T a, T b) { return a + b; }

    static __device__ bool quick(const column_arguments& a, T found, u64& bits) {
        if (is_doubtful<TERM>(found)) return false;
        bits = leaf_result<F>(found, a.all.n, a.all.finish);
        return true;
    }

    struct total : sum_of_two {
        __device__ void take(T value) {
            lost = lost || is_doubtful<TERM>(value);
            add(value, 0);
        }
        __device__ void merge(const total& other) {
            lost = lost || other.lost;
            add(other.high, other.low);
        }
    };

    static __device__ bool quick(const column_arguments& a, total sum, u64& bits) {
        if (sum.lost) return false;
        // The nearest to the whole. The sign of a sum that is 0 stays.
        double rest = 0;
        if (sum.low != 0) sum.high = two_sum(sum.high, sum.low, rest);
        double result = sum.high;
        if (a.all.finish == finish_norm) {
            result = sqrt(result);
        } else {
            if (a.all.finish == finish_mean) {
                if (rest != 0) return false;
                result = result / double(a.all.n);
            }
            // In the middle between two f32 it matters what was rounded before.
            const u64 cut = __double_as_longlong(result) & 0x1fffffff;
            const bool exact = a.all.finish == finish_mean ? result == 0 : rest == 0;
            if (sizeof(T) == 4 && !exact && cut == 0x10000000) return false;
            // As are more digits of numbers that are not normal.
            const double size = result < 0 ? -result : result;
            if (sizeof(T) == 4 && !exact && size < 0x1p-126) return false;
        }
        bits = F::to_bits(T(result));
        return true;
    }

    static __device__ u64 slow(const column_arguments& a, u64 s, T found) {
        const u64 at = column_at(a, s);
        return slow(a, static_cast<const storage*>(a.all.x) + at, static_cast<const storage*>(a.all.y) + at, s, found);
    }
    static __device__ u64 slow(const column_arguments& a, u64 s, const total&) { return slow(a, s, T()); }

  private:
    template <int half> __device__ void halve_once() {
#pragma unroll
        for (int k = 0; k < half; ++k) sum[k] = sum[k] + sum[k + half];
    }

    // The result of a column of one part, which is `found`, or of several.
    static __device__ __noinline__ u64 slow(const column_arguments& a, const storage* x, const storage* y, u64 s, T found) {
        constexpr u32 all = 0xffffffffu;
        const u64 leaves = parts_of(a);
        warp_accumulator<F> total;
#pragma unroll 1
        for (u64 first = 0; first < leaves; first += 32) {
            const int count = int(min(u64(32), leaves - first));
            T value = found;
            if (leaves > 1 && warp::lane() < count) value = part_of<T>(a, first + warp::lane(), s);
#pragma unroll 1
            for (int k = 0; k < count; ++k) {
                const T one = __shfl_sync(all, value, k);
                if (!is_doubtful<TERM>(one)) {
                    total.add_finite(one);
                    continue;
                }
                const u64 row = (first + k) * part_rows, from = row * a.columns;
                const u32 rows = u32(min(u64(part_rows), a.all.n - row));
                redo_leaf<E, TERM>(total, x + from, y + from, rows, one, a.columns);
            }
        }
        // As of segments: up to 2^19 leaves leave limbs below 2^52.
        if (a.all.n >> 30) total.carry();
        return sum_result<F>(total, a.all.n, a.all.finish);
    }
};

}  // namespace crosswarp

COLUMN_KERNEL(cw::sum_of_column, cw::sum_of_column::blocks)
