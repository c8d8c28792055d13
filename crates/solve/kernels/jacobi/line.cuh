// What all kernels of lines include.
#pragma once
#include "superaccumulator.cuh"
#include "jacobi/arguments.cuh"
#include "jacobi/plane.cuh"

namespace crosswarp {

constexpr int leaf_points = leaf_elements;

}  // namespace crosswarp
