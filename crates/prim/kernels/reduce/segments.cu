// Reproducible sums of segments of floating-point elements: sum, mean, norm, dot product.
//
// ELEMENT names the element type, TERM what is summed up.
#include "reduce/segments.cuh"
#include "reduce/sum.cuh"
#include "reduce/sum_of_two.cuh"
#include "reduce/short_rows.cuh"

namespace crosswarp {

struct sum_of_segment {
    using E = ELEMENT;
    using F = E::format;
    using T = F::type;
    using storage = E::storage;
    static constexpr bool two = TERM::inputs == 2;

    const reduce_arguments& a;
    // The sum is `known`, and `total` if it is `used`; each is the same in all lanes.
    sum_of_two known;
    warp_accumulator<F> total;
    bool used = false;
    // The value of the only leaf, not yet added, if it is `single`.
    T only = leaf_sum::identity<T>();
    bool single = true;

    explicit __device__ sum_of_segment(const reduce_arguments& a) : a(a) {}

    // Adds the value of a leaf that is not doubtful.
    __device__ void take(T value) {
        // Two such numbers may overflow, and 2^30 that are smaller do not.
        const bool large = sizeof(T) == 8 && !(fabs(double(value)) < 0x1p990);
        const double rest = large ? double(value) : known.add_and_keep(value);
        if (rest != 0) {
            add_exactly(total, rest);
            used = true;
        }
    }
    __device__ void take_unit(const storage* x, const storage* y, u64 u, u64 count, T value) {
        using L = leaf_layout<E>;
        // A leaf without elements is no leaf: its -0.0 says nothing, and is doubtful of squares.
        const bool there = L::leaves == 1 || (u * L::leaves + warp::lane() / L::lanes) * leaf_elements < count;
        // One vote for all leaves: on the usual way there is nothing else to decide.
        if (__any_sync(0xffffffffu, there && is_doubtful<TERM>(value))) {
            // What is NaN stays so.
            if (!(total.seen & seen_nan)) total.merge(redo_leaves<E, TERM>(x, y, u, count, value));
            used = true;
            return;
        }
#pragma unroll
        for (int leaf = 0; leaf < L::leaves; ++leaf) {
            take(L::leaves == 1 ? value : __shfl_sync(0xffffffffu, value, leaf * L::lanes));
        }
    }
    __device__ void add(const storage* x, const storage* y, u64 count, u64) {
        single = count <= leaf_elements;
        const warp_leaves<E, TERM, leaf_sum, false> pass(x, y);
        run_leaves(pass, count, 0, pass.first(0), 1, [&](u64 u, T value) {
            only = value;
            if (!single) take_unit(x, y, u, count, value);
        });
        only = __shfl_sync(0xffffffffu, only, 0);
        if (single && is_doubtful<TERM>(only)) {
            total.merge(redo_leaves<E, TERM>(x, y, u64(0), count, only));
            used = true;
            single = false;
        }
    }
    __device__ u64 finish(const storage*, u64 n) {
        if (single) return leaf_result<F>(only, n, a.finish);
        u64 bits;
        if (!used && quick_result<F>(known, n, a.finish, bits)) return bits;
        add_exactly(total, known);
        // Up to 2^19 leaves leave limbs below 2^52.
        if (n >> 30) total.carry();
        return sum_result<F>(total, n, a.finish);
    }
    __device__ void contribute(u64* slots, u64 owner, u64) {
        if (single) {
            total.add_finite(only);
        } else {
            add_exactly(total, known);
        }
        total.carry();
        crosswarp::contribute(total, slots + segment_slot * owner);
    }
    __device__ void collect(u64* slots, u64 owner, u64 me) {
        crosswarp::collect(total, slots + segment_slot * owner, me - owner + 1);
        used = true;
        single = false;
    }

    static constexpr int tiny = 16;
    static constexpr bool tiny_fails = true;
    static __device__ bool is_tiny(const reduce_arguments&, u64) { return true; }
    struct of_thread {
        T value[row_slots];
        // Whether a sum of squares that is 0 need not be doubted: all elements are, none has a square that is too small. Then
        // `any` has their bits without signs.
        static constexpr bool finds_zeros = TERM::squares && sizeof(T) == 4;
        u32 any = 0;

        __device__ of_thread() {
#pragma unroll
            for (int k = 0; k < row_slots; ++k) value[k] = leaf_sum::identity<T>();
        }
        __device__ void take(storage p, storage q, int slot, u64) {
            const T x = E::widen(p);
            value[slot] = value[slot] + TERM::of(x, two ? E::widen(q) : x);
            if constexpr (finds_zeros) any |= u32(p) << (33 - 8 * sizeof(storage));
        }
        template <int half> __device__ void halve() {
#pragma unroll
            for (int k = 0; k < half; ++k) value[k] = value[k] + value[k + half];
        }
        template <int lanes, int width> __device__ void merge() {
            // Written out: the compiler unrolls a loop over distances too late to keep the values in registers.
            static_assert(row_slots == 16 && width <= 4, "distances of 8 to 1");
            halve<8>();
            halve<4>();
            if (width <= 2) halve<2>();
            if (width <= 1) halve<1>();
#pragma unroll
            for (int distance = lanes / 2; distance > 0; distance /= 2) {
#pragma unroll
                for (int k = 0; k < width; ++k) value[k] = value[k] + __shfl_xor_sync(0xffffffffu, value[k], distance);
                if (finds_zeros) any |= __shfl_xor_sync(0xffffffffu, any, distance);
            }
            if (width > 2) halve<2>();
            if (width > 1) halve<1>();
        }
        __device__ bool result(const reduce_arguments& a, u64 n, u64& bits) const {
            bits = leaf_result<F>(value[0], n, a.finish);
            return n == 0 || !is_doubtful<TERM>(value[0]) || (finds_zeros && !any);
        }
    };
    static __device__ bool tiny_result(const reduce_arguments& a, const storage* x, const storage* y, int n,
                                       u64& bits) {
        static_assert(tiny == row_slots, "a slot for each element");
        of_thread part;
#pragma unroll
        for (int i = 0; i < tiny; ++i) {
            if (i < n) part.take(x[i], two ? y[i] : x[i], i, i);
        }
        part.merge<1, 1>();
        return part.result(a, n, bits);
    }
};

}  // namespace crosswarp

SEGMENT_KERNEL(SUM_BLOCKS) short_segments(cw::segment_arguments a) { cw::short_segments<cw::sum_of_segment>(a); }
// For so many segments that only more warps, which are smaller, can have all at once: 3162 rows of as many f32 take 10.1 µs
// instead of 11.1 on an H200, of f16 6.0 instead of 8.0. (10^4 rows of 10^4 f32 take them 93 µs instead of 89.)
SEGMENT_KERNEL(SUM_BLOCKS + 1) short_segments_small(cw::segment_arguments a) {
    cw::short_segments<cw::sum_of_segment>(a);
}
SHORT_ROWS_KERNEL(cw::sum_of_segment, sizeof(cw::ELEMENT::storage) == 8 ? 3 : 4)
SEGMENT_KERNEL(SUM_BLOCKS) long_segments(cw::segment_arguments a) { cw::long_segments<cw::sum_of_segment>(a); }
