// Minimum and maximum, and the lowest index at which they occur. ELEMENT names the element type; MAXIMUM is 0
// or 1.
#ifndef ELEMENT
#define ELEMENT element_f32
#define MAXIMUM 0
#endif
#include "reduce/extremum.cuh"

namespace crosswarp {

__device__ inline void extremum(const reduce_arguments& a) {
    using E = ELEMENT;
    using S = E::storage;
    using Search = extremum_search<E>;

    start_early<false, S>(a, first_unit() * walk_unit_bytes<false>);
    const u64 n = element_count(a);
    Search search;
    walk<false, S>(
        are_aligned<false>(a.x, nullptr), static_cast<const S*>(a.x), nullptr, n,
        [&](const S* v, const S*, u64 at) { search.offer_vector(v, at); },
        [&](S v, S, u64 at) { search.offer(Search::Keys::key(v), at); });
    two_words mine = search.found();
    if (combine_grid(mine, a.state, Search::none(), first_op())) finish_extremum<E>(mine, a.x, n, a);
}

}  // namespace crosswarp

extern "C" __global__ void __launch_bounds__(cw::reduce_threads, 2) reduce(cw::reduce_arguments a) {
    cw::extremum(a);
}
