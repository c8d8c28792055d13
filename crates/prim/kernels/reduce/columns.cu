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

    // Leaf lanes w, w + 8, …, combined: of the halving what lies within them.
    static __device__ T walk(const storage* x, const storage* y, u64 step, int w, int count, u64) {
        T sum[16];
#pragma unroll
        for (int k = 0; k < 16; ++k) sum[k] = leaf_sum::identity<T>();
        walk_column<two>(x, y, step, w, count, [&](int k, storage p, storage q, int) {
            const T value = E::widen(p);
            sum[k] = sum[k] + TERM::of(value, two ? E::widen(q) : value);
        });
#pragma unroll
        for (int half = 8; half > 0; half /= 2) {
#pragma unroll
            for (int k = 0; k < half; ++k) sum[k] = sum[k] + sum[k + half];
        }
        return sum[0];
    }

    // The rest of the halving: distances of 4, 2 and 1.
    static __device__ T join(const T (&of_warp)[column_warps][columns_at_once]) {
        T sum[column_warps];
#pragma unroll
        for (int w = 0; w < column_warps; ++w) sum[w] = of_warp[w][warp::lane()];
#pragma unroll
        for (int half = column_warps / 2; half > 0; half /= 2) {
#pragma unroll
            for (int w = 0; w < half; ++w) sum[w] = sum[w] + sum[w + half];
        }
        return sum[0];
    }

    static __device__ void finish(const column_arguments& a, u64 s, const storage* x, const storage* y, bool there,
                                  T found) {
        constexpr u32 all = 0xffffffffu;
        const bool doubtful = there && is_doubtful<TERM>(found);
        if (there && !doubtful) put_result(a, s, leaf_result<F>(found, a.all.n, a.all.finish));
        for (u32 left = __ballot_sync(all, doubtful); left; left &= left - 1) {
            const int from = __ffs(left) - 1;
            const auto* p = reinterpret_cast<const storage*>(__shfl_sync(all, reinterpret_cast<u64>(x), from));
            const auto* q = reinterpret_cast<const storage*>(__shfl_sync(all, reinterpret_cast<u64>(y), from));
            warp_accumulator<F> total;
            redo_leaf<E, TERM>(total, p, q, u32(a.all.n), __shfl_sync(all, found, from), a.columns);
            const u64 bits = sum_result<F>(total, a.all.n, a.all.finish);
            const u64 its = __shfl_sync(all, bits, 0);
            if (warp::lane() == from) put_result(a, s, its);
        }
    }

    static __device__ u64 total(const column_arguments& a, u64 s, const storage* x, const storage* y) {
        constexpr u32 all = 0xffffffffu;
        const u64 leaves = parts_of(a);
        warp_accumulator<F> total;
        for (u64 first = 0; first < leaves; first += 32) {
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
        // As of segments: up to 2^19 leaves leave limbs below 2^52.
        if (a.all.n >> 30) total.carry();
        return sum_result<F>(total, a.all.n, a.all.finish);
    }
};

}  // namespace crosswarp

COLUMN_KERNELS(cw::sum_of_column, 4)
