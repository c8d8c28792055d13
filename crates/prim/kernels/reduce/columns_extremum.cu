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

    static __device__ part walk(const storage* x, const storage* y, u64 step, int w, int ways, int count, u64 first) {
        Search search;
        walk_column<false>(x, y, step, w, ways, count, [&](int left, const storage* p, const storage*, int row) {
#pragma unroll
            for (int k = 0; k < rows_in_flight; ++k) {
                if (k < left) search.offer(Search::Keys::key(p[k]), first + row + ways * k);
            }
        });
        return search.found();
    }
    static __device__ part join(const part& a, const part& b) { return first_op()(a, b); }
    static __device__ void finish(const column_arguments& a, u64 s, const storage*, const storage*, bool there,
                                  const part& found) {
        if (there) put_result(a.all, s, bits(a, found));
    }
    using state = part;
    static __device__ state take(const column_arguments& a, u64 s, const storage*, const storage*, u64 first, u64 step) {
        state found = Search::none();
        for (u64 k = first + warp::lane(); k < parts_of(a); k += step) found = first_op()(found, part_of<part>(a, k, s));
        return found;
    }
    static __device__ void merge(state& found, const state& other) { found = first_op()(found, other); }
    static __device__ u64 result(const column_arguments& a, const state& found) {
        return bits(a, warp().reduce(found, first_op()));
    }

  private:
    static __device__ u64 bits(const column_arguments& a, const part& found) {
        return a.all.finish == finish_value ? Search::Keys::bits(typename Search::Keys::K(found.a)) : found.b;
    }
};

}  // namespace crosswarp

COLUMN_KERNELS(cw::extremum_of_column, 4)
