// What all kernels of planes include.
#pragma once
#include "jacobi/arguments.cuh"
#include "leaf.cuh"

namespace crosswarp {

constexpr int leaf_columns = leaf_lanes;

}  // namespace crosswarp
