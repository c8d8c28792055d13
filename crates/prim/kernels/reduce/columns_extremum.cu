// Minima and maxima of columns, and in which row they are. ELEMENT names the element type; MAXIMUM is 0 or 1.
#ifndef ELEMENT
#define ELEMENT element_f32
#define MAXIMUM 0
#endif
#include "reduce/columns.cuh"
#include "reduce/extremum.cuh"

namespace crosswarp {

struct extremum_of_column {
    using E = ELEMENT;
    using storage = E::storage;
    using part = two_words;
    using Search = extremum_search<E>;

    static __device__ part walk(const storage* x, const storage* y, u64 step, int w, int count, u64 first) {
        Search search;
        walk_column<false>(x, y, step, w, count, [&](int, storage p, storage, int row) {
            search.offer(Search::Keys::key(p), first + row);
        });
        return search.found();
    }
    static __device__ part join(const part (&of_warp)[column_warps][columns_at_once]) {
        part found = of_warp[0][warp::lane()];
#pragma unroll
        for (int w = 1; w < column_warps; ++w) found = first_op()(found, of_warp[w][warp::lane()]);
        return found;
    }
    static __device__ void finish(const column_arguments& a, u64 s, const storage*, const storage*, bool there,
                                  const part& found) {
        if (there) put_result(a, s, result(a, found));
    }
    static __device__ u64 total(const column_arguments& a, u64 s, const storage*, const storage*) {
        part found = Search::none();
        for (u64 k = warp::lane(); k < parts_of(a); k += 32) found = first_op()(found, part_of<part>(a, k, s));
        return result(a, warp().reduce(found, first_op()));
    }

  private:
    static __device__ u64 result(const column_arguments& a, const part& found) {
        return a.all.finish == finish_value ? Search::Keys::bits(typename Search::Keys::K(found.a)) : found.b;
    }
};

}  // namespace crosswarp

COLUMN_KERNELS(cw::extremum_of_column, 4)
