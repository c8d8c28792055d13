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

struct sum_of_column {
    using E = ELEMENT;
    using F = E::format;
    using T = F::type;
    using storage = E::storage;
    using part = T;
    static constexpr bool two = TERM::inputs == 2;

    // Leaf lanes w, w + ways, …, combined: of the halving what lies within them. With 8 ways these are 16 lanes; with
    // fewer there are no rows beyond 16 for each; with more, a thread has fewer lanes and several of their rows in flight.
    static __device__ T walk(const storage* x, const storage* y, u64 step, int w, int ways, int count, u64) {
        T sum[rows_in_flight];
#pragma unroll
        for (int k = 0; k < rows_in_flight; ++k) sum[k] = leaf_sum::identity<T>();
        walk_column<two>(x, y, step, w, ways, count, [&](int left, const storage* p, const storage* q, int) {
            T term[rows_in_flight];
#pragma unroll
            for (int k = 0; k < rows_in_flight; ++k) {
                // What is added in place of a row that is not there changes nothing.
                term[k] = leaf_sum::identity<T>();
                if (k < left) {
                    const T value = E::widen(p[k]);
                    term[k] = TERM::of(value, two ? E::widen(q[k]) : value);
                }
            }
            switch (ways) {
                case 16: add<8>(sum, term); break;
                case 32: add<4>(sum, term); break;
                case 64: add<2>(sum, term); break;
                case 128: add<1>(sum, term); break;
                default: add<16>(sum, term);
            }
        });
#pragma unroll
        for (int half = rows_in_flight / 2; half > 0; half /= 2) {
#pragma unroll
            for (int k = 0; k < half; ++k) sum[k] = sum[k] + sum[k + half];
        }
        return sum[0];
    }

    static __device__ T join(T a, T b) { return a + b; }

    static __device__ void finish(const column_arguments& a, u64 s, const storage* x, const storage* y, bool there,
                                  T found) {
        constexpr u32 all = 0xffffffffu;
        const bool doubtful = there && is_doubtful<TERM>(found);
        if (there && !doubtful) put_result(a.all, s, leaf_result<F>(found, a.all.n, a.all.finish));
        for (u32 left = __ballot_sync(all, doubtful); left; left &= left - 1) {
            const int from = __ffs(left) - 1;
            const auto* p = reinterpret_cast<const storage*>(__shfl_sync(all, reinterpret_cast<u64>(x), from));
            const auto* q = reinterpret_cast<const storage*>(__shfl_sync(all, reinterpret_cast<u64>(y), from));
            warp_accumulator<F> total;
            redo_leaf<E, TERM>(total, p, q, u32(a.all.n), __shfl_sync(all, found, from), a.columns);
            const u64 bits = sum_result<F>(total, a.all.n, a.all.finish);
            const u64 its = __shfl_sync(all, bits, 0);
            if (warp::lane() == from) put_result(a.all, s, its);
        }
    }

    using state = warp_accumulator<F>;

    static __device__ state take(const column_arguments& a, u64 s, const storage* x, const storage* y, u64 first,
                                 u64 step) {
        constexpr u32 all = 0xffffffffu;
        const u64 leaves = parts_of(a);
        state total;
        for (; first < leaves; first += step) {
            const int count = int(min(u64(32), leaves - first));
            T value = leaf_sum::identity<T>();
            if (warp::lane() < count) value = part_of<T>(a, first + warp::lane(), s);
            if (!__any_sync(all, is_doubtful<TERM>(value) && warp::lane() < count)) {
                total.add_lanes(value, count);
                continue;
            }
#pragma unroll 1
            for (int k = 0; k < count; ++k) {
                const T one = __shfl_sync(all, value, k);
                if (!is_doubtful<TERM>(one)) {
                    total.add_finite(one);
                    continue;
                }
                const u64 row = (first + k) * part_rows, at = row * a.columns;
                const u32 rows = u32(min(u64(part_rows), a.all.n - row));
                redo_leaf<E, TERM>(total, x + at, y + at, rows, one, a.columns);
            }
        }
        return total;
    }

    static __device__ void merge(state& total, const state& other) { total.merge(other); }

    static __device__ u64 result(const column_arguments& a, state& total) {
        // As of segments: up to 2^19 leaves leave limbs below 2^52.
        if (a.all.n >> 30) total.carry();
        return sum_result<F>(total, a.all.n, a.all.finish);
    }

  private:
    // Adds the terms of a thread's rows to those of its leaf lanes, of which it has `lanes`, each in the order of its rows.
    template <int lanes> static __device__ void add(T (&sum)[rows_in_flight], const T (&term)[rows_in_flight]) {
#pragma unroll
        for (int k = 0; k < rows_in_flight; ++k) sum[k % lanes] = sum[k % lanes] + term[k];
    }
};

}  // namespace crosswarp

// A thread has two registers for each f64: with more than two blocks on a multiprocessor they do not fit.
COLUMN_KERNELS(cw::sum_of_column, sizeof(cw::sum_of_column::T) == 8 ? 2 : 4)
