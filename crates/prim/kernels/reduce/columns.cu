// Reproducible sums of columns of floating-point elements: sum, mean, norm, dot product.
//
// ELEMENT names the element type, TERM what is summed up.
#include "reduce/columns.cuh"
#include "reduce/doubtful_leaf.cuh"
#include "reduce/sum_of_two.cuh"

#ifndef ELEMENT
#define ELEMENT element_f32
#define TERM value_term
#endif

namespace crosswarp {

// All but what a thread sums up.
struct sums_of_columns {
    using E = ELEMENT;
    using F = E::format;
    using T = F::type;
    using storage = E::storage;
    using part = T;
    static constexpr bool leaves = true;
    static constexpr bool two = TERM::inputs == 2;
    static constexpr bool never_slow = false;
    static constexpr size_t slow_bytes = sizeof(warp_accumulator<F>);
    static constexpr int turns = 2, few = few_columns<storage, two ? 4 : sizeof(storage) == 8 ? 16 : 8>;
    static constexpr int flight = two || sizeof(storage) == 8 ? 16 : 32;
    // The term is −0.0, or a square of +0.0: which changes nothing, for rows that are there have no other.
    static constexpr storage missing_x = storage(1) << (8 * sizeof(storage) - 1);
    static constexpr storage missing_y = storage(1) << (8 * sizeof(storage) - 4);
    // On a multiprocessor: with more, what a thread has does not fit, and it waits for its own memory. (With 4 of f32, 1e4 ×
    // 1e4 took 159 µs instead of 145.)
    static constexpr int blocks = sizeof(T) == 8 ? 2 : 3;
    // Of wide matrices a thread has twice the sums of f32: then neighbouring threads have 64 elements of a row, and not 32,
    // of which those of a row that begins anywhere lie in two lines. (1e4 × 1e4 f16 57 µs instead of 63 on an H200.)
    static constexpr int wide_sums = sizeof(T) == 4 && !two ? 32 : 16;
    static constexpr int wide_blocks = sizeof(storage) == 4 && !two ? 2 : blocks;

    static __device__ part of_few(const storage (&p)[few * few_rows], const storage (&q)[few * few_rows], int c) {
        T value[few_rows];
#pragma unroll
        for (int row = 0; row < few_rows; ++row) {
            const T x = E::widen(p[row * few + c]);
            value[row] = TERM::of(x, two ? E::widen(q[row * few + c]) : x);
        }
        static_assert(few_rows == 16, "the last steps of halving");
        halve_once<8>(value);
        halve_once<4>(value);
        halve_once<2>(value);
        halve_once<1>(value);
        return value[0];
    }

    static __device__ T join(T a, T b) { return a + b; }

    static __device__ bool quick(const column_arguments& a, T found, u64& bits) {
        if (is_doubtful<TERM>(found)) return false;
        bits = leaf_result<F>(found, a.all.n, a.all.finish);
        return true;
    }

    // The sum of parts that are not doubtful. Those that are lie from `first` to `end`, among others.
    struct total : sum_of_two {
        u32 first = ~0u, end = 0;

        __device__ void take(T value, u32 piece) {
            const bool doubtful = is_doubtful<TERM>(value);
            if (doubtful) first = min(first, piece), end = max(end, piece + 1);
            add(doubtful ? -0.0 : double(value));
        }
        __device__ void merge(const total& other) {
            first = min(first, other.first), end = max(end, other.end);
            sum_of_two::merge(other);
        }
    };

    static __device__ bool quick(const column_arguments& a, total sum, u64& bits) {
        return sum.first >= sum.end && quick_result<F>(sum, a.all.n, a.all.finish, bits);
    }

    static __device__ u64 slow(const column_arguments& a, u64 s, T found, unsigned char*) {
        total known;
        known.high = found;
        known.lost = true;
        return slow(a, s, known, nullptr);
    }
    // The result of a column of one part, which is `known.high`, or of several. What is not in `known`, if it is not lost,
    // is added exactly.
    static __device__ __noinline__ u64 slow(const column_arguments& a, u64 s, total known, unsigned char* together) {
        constexpr u32 all = 0xffffffffu;
        const u64 at = column_at(a, s);
        const storage *x = static_cast<const storage*>(a.all.x) + at, *y = static_cast<const storage*>(a.all.y) + at;
        const u32 parts = parts_of<sums_of_columns>(a), me = threadIdx.x;
        const u32 warps = together ? column_warps : 1, my_warp = together ? me / 32 : 0;
        warp_accumulator<F> sum;
        if (known.lost) {
            known.first = 0, known.end = parts;
        } else if (my_warp == 0) {
            add_exactly(sum, known);
        }
#pragma unroll 1
        for (u32 first = known.first; first < known.end; first += 32 * warps) {
            const u32 piece = first + my_warp + warps * warp::lane();
            T value = T(known.high);
            if (parts > 1 && piece < known.end) value = part_of<T>(a, piece, s);
            u32 left = __ballot_sync(all, piece < known.end && (known.lost || is_doubtful<TERM>(value)));
            // With a NaN no other changes anything.
#pragma unroll 1
            for (; left && !(sum.seen & seen_nan); left &= left - 1) {
                const int from = __ffs(left) - 1;
                const T one = __shfl_sync(all, value, from);
                if (!is_doubtful<TERM>(one)) {
                    sum.add_finite(one);
                    continue;
                }
                const u64 row = u64(first + my_warp + warps * from) * leaf_elements, skipped = row * a.columns;
                const u32 rows = u32(min(u64(leaf_elements), a.all.n - row));
                if (add_special(sum, x + skipped, y + skipped, rows, a.columns)) continue;
                redo_leaf<E, TERM>(sum, x + skipped, y + skipped, rows, one, a.columns);
            }
        }
        // As of segments: up to 2^19 leaves leave limbs below 2^52.
        if (a.all.n >> 30) sum.carry();
        if (together) {
            auto* of_thread = reinterpret_cast<warp_accumulator<F>*>(together);
            // Before: all have read the total that lay there.
            __syncthreads();
            of_thread[me] = sum;
            // What the first warp reads was written by the others.
            __syncthreads();
#pragma unroll 1
            for (u32 k = me + 32; me < 32 && k < reduce_threads; k += 32) sum.merge(of_thread[k]);
        }
        return __shfl_sync(all, sum_result<F>(sum, a.all.n, a.all.finish), 0);
    }

    template <int half, int count> static __device__ void halve_once(T (&sum)[count]) {
#pragma unroll
        for (int k = 0; k < half; ++k) sum[k] = sum[k] + sum[k + half];
    }

  private:
    // If some terms of a leaf are infinite or NaN, what they make of a sum, and true: no other changes it then. Of f64,
    // where adding all terms exactly takes long.
    static __device__ bool add_special(warp_accumulator<F>& sum, const storage* x, const storage* y, u32 rows, u64 step) {
        if (sizeof(T) == 4) return false;
        u32 seen = 0;
#pragma unroll 4
        for (u32 k = warp::lane(); k < rows; k += 32) {
            const T p = E::widen(__ldg(x + k * step));
            seen |= chunks_of<F>(TERM::of(p, two ? E::widen(__ldg(y + k * step)) : p)).seen;
        }
        for (u32 bit = seen_nan; bit <= seen_neg_infinity; bit *= 2) {
            if (__any_sync(0xffffffffu, seen & bit)) sum.seen |= bit | seen_not_neg_zero;
        }
        return sum.seen & (seen_nan | seen_infinity | seen_neg_infinity);
    }
};

// With `sums` sums in a thread.
template <int sums> struct sum_of_column : sums_of_columns {
    // Of 128 `vector` / `sums` ways a thread has `sums` / `vector` leaf lanes of `vector` columns, and adds each in the
    // order of its rows. With other numbers of ways, each row of the column is in a leaf lane of its own: then the first
    // addition to a sum is one of the halving.
    T sum[sums];

    __device__ explicit sum_of_column(u32) {
#pragma unroll
        for (int k = 0; k < sums; ++k) sum[k] = leaf_sum::identity<T>();
    }

    template <int from>
    __device__ void take(const storage (&p)[flight / turns], const storage (&q)[flight / turns], u32) {
#pragma unroll
        for (int e = 0; e < flight / turns; ++e) {
            T& its = sum[(from + e) % sums];
            const T value = E::widen(p[e]);
            its = its + TERM::of(value, two ? E::widen(q[e]) : value);
        }
    }

    __device__ void halve(u32 vector) {
        if constexpr (sums >= 32) halve_once<16>(sum);
        if constexpr (sums >= 16) halve_once<8>(sum);
        halve_once<4>(sum);
        if (widest_load<storage> == 2 || vector <= 2) halve_once<2>(sum);
        if (vector == 1) halve_once<1>(sum);
    }

    __device__ T slot(int c, u32, u64, u32) const { return sum[c]; }
};

using sum_of_wide_column = sum_of_column<sums_of_columns::wide_sums>;
static_assert(sums_of_columns::flight % sums_of_columns::wide_sums == 0, "a turn's first element is in a known sum");

}  // namespace crosswarp

COLUMN_KERNEL(cw::sum_of_column<16>, cw::sums_of_columns::blocks)

// Parts of wide matrices of more rows than a leaf has lanes. Alone: beside the rest, what threads have does not fit. (1e4 ×
// 1e4 f32 took 105 µs instead of 102 on an H200.)
extern "C" __global__ void __launch_bounds__(cw::reduce_threads, cw::sums_of_columns::wide_blocks)
    reduce_wide_columns(const __grid_constant__ cw::column_arguments a) {
    cw::reduce_parts<cw::sum_of_wide_column>(a);
}

// Of f64, parts of so few tiles that multiprocessors would be idle, and totals: tiles have half the columns. (2048 × 2048 took
// 7.4 µs instead of 10.8 on an H200, 3162 × 3162 26.5 instead of 29.5; f32 gains less, or loses.)
extern "C" __global__ void __launch_bounds__(cw::reduce_threads, cw::sums_of_columns::blocks)
    reduce_half_tiles(const __grid_constant__ cw::column_arguments a) {
    if constexpr (sizeof(cw::ELEMENT::storage) == 8) {
        cw::reduce_parts<cw::sum_of_column<8>>(a);
        if (a.lanes) cw::totals_of_last_block<cw::sum_of_column<8>>(a);
    }
}
