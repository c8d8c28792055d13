// Reproducible sums of segments of floating-point elements: sum, mean, norm, dot product.
//
// ELEMENT names the element type, TERM what is summed up.
#include "reduce/segments.cuh"
#include "reduce/sum.cuh"
#include "reduce/sum_of_two.cuh"

namespace crosswarp {

struct sum_of_segment {
    using E = ELEMENT;
    using F = E::format;
    using T = F::type;
    using storage = E::storage;

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
    static __device__ bool is_tiny(const reduce_arguments&, u64) { return true; }
    static __device__ bool tiny_result(const reduce_arguments& a, const storage* x, const storage* y, int n,
                                       u64& bits) {
        T value[tiny];
#pragma unroll
        for (int i = 0; i < tiny; ++i) {
            value[i] = leaf_sum::identity<T>();
            if (i >= n) continue;
            T p = E::widen(x[i]);
            value[i] = TERM::of(p, TERM::inputs == 2 ? E::widen(y[i]) : p);
        }
        // Written out: the compiler unrolls a loop over distances too late to keep the values in registers.
        static_assert(tiny == 16, "distances of 8 to 1");
#pragma unroll
        for (int i = 0; i < 8; ++i) value[i] = value[i] + value[i + 8];
#pragma unroll
        for (int i = 0; i < 4; ++i) value[i] = value[i] + value[i + 4];
        value[0] = (value[0] + value[2]) + (value[1] + value[3]);
        bits = leaf_result<F>(value[0], n, a.finish);
        return n == 0 || !is_doubtful<TERM>(value[0]);
    }
};

}  // namespace crosswarp

SEGMENT_KERNEL(SUM_BLOCKS) short_segments(cw::segment_arguments a) { cw::short_segments<cw::sum_of_segment>(a); }
SEGMENT_KERNEL(SUM_BLOCKS) long_segments(cw::segment_arguments a) { cw::long_segments<cw::sum_of_segment>(a); }
