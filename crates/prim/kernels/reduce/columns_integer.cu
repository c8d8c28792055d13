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
    static constexpr bool two = TERM::inputs == 2;

    static __device__ part walk(const storage* x, const storage* y, u64 step, int w, int ways, int count, u64) {
        integer_sum<E, TERM> mine;
        walk_column<two>(x, y, step, w, ways, count, [&](int left, const storage* p, const storage* q, int) {
#pragma unroll
            for (int k = 0; k < rows_in_flight; ++k) {
                if (k < left) mine.add(p[k], q[k]);
            }
        });
        return mine.total();
    }
    static __device__ part join(part a, const part& b) {
        add(a, b);
        return a;
    }
    static __device__ void finish(const column_arguments& a, u64 s, const storage*, const storage*, bool there,
                                  const part& found) {
        if (a.all.finish == finish_value) {
            if (there) put_result(a.all, s, found.word[0]);
            return;
        }
        for (u32 left = __ballot_sync(0xffffffffu, there); left; left &= left - 1) {
            const int from = __ffs(left) - 1;
            const u64 bits = of_lanes(a, warp::lane() == from ? found : part());
            const u64 mine = __shfl_sync(0xffffffffu, bits, 0);
            if (warp::lane() == from) put_result(a.all, s, mine);
        }
    }
    using state = part;
    static __device__ state take(const column_arguments& a, u64 s, const storage*, const storage*, u64 first, u64 step) {
        state mine;
        for (u64 k = first + warp::lane(); k < parts_of(a); k += step) add(mine, part_of<part>(a, k, s));
        return mine;
    }
    static __device__ void merge(state& mine, const state& other) { add(mine, other); }
    static __device__ u64 result(const column_arguments& a, const state& mine) { return of_lanes(a, mine); }

  private:
    static __device__ void add(part& to, const part& other) { to.add(other.word[0], other.word[1], other.word[2]); }
    // Of what all lanes have together.
    static __device__ u64 of_lanes(const column_arguments& a, const part& mine) {
        warp_accumulator<format192> total;
        add_wide(total, mine);
        u64 word[3];
        return integer_result(total, a.all.n, a.all.finish, word);
    }
};

}  // namespace crosswarp

COLUMN_KERNELS(cw::integers_of_column, 4)
