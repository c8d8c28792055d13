// Exact sums over PEs: the same bits however the values lie on PEs. See exact_sum.cuh for what is promised.
//
//     cw::exact_accumulator<double> total;      // … add, and cw::exact_combine(b, total)
//     if (cw::exact_combine<cw::block>(total, words)) *out = total.value();
//
// `words` is symmetric: `exact_sum_words` words on every PE, ready on all of them, of any content.
#pragma once
#include "exact_sum.cuh"
#include "pe/collective.cuh"

namespace crosswarp {

// The sums of all PEs of the team, in every warp of the scope on each. Who calls: a scope of every PE of the team
// (`warp`, `block`, `grid_threads`; no single thread), all warps of which have the same sum, which is that of the
// scope: `exact_combine` it there before. False if the wait was given up; the sum is then undefined. Memory ordering
// and cost are those of `sum` of `exact_sum_words` words, which add up as integers.
template <class Scope = warp, class T>
__device__ inline bool exact_combine(exact_accumulator<T>& total, u64* words, const team& t = world(),
                                     const Scope& scope = Scope()) {
    // Everyone has read what lay there before.
    scope.sync();
    if (scope.rank() < 32) {
        total.carry();
        total.to_words([=](int i, u64 word) { words[i] = word; });
        // Words that no lane has.
        constexpr int limbs = 32 * float_format<T>::per_lane;
        for (int i = limbs + scope.rank(); i < exact_sum_words - trackers; i += 32) words[i] = 0;
    }
    scope.sync();
    const bool came_about = sum<Scope>(words, words, exact_sum_words, t, scope);
    total.from_words([=](int i) { return load_volatile(words + i); });
    return came_about;
}

}  // namespace crosswarp
