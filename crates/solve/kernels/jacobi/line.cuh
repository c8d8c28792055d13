// A PE's part of the line on the device, as the kernels see it. The host side is
// `engine::cuda::line::passes::Segment`.
#pragma once
#include "superaccumulator.cuh"
#include "jacobi/plane.cuh"

namespace crosswarp {

template <class F> struct segment {
    const F* before;  // address of point `own_start`; halos left and right of the own points
    F* after;
    u64* words;  // one superaccumulator per sweep
    i64 points;
    i64 own_start, own_end;
};

constexpr int leaf_points = leaf_elements;

}  // namespace crosswarp
