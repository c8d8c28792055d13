// What all kernels of planes include.
#pragma once
#include "jacobi/arguments.cuh"
#include "leaf.cuh"

namespace crosswarp {

constexpr int leaf_columns = leaf_lanes;
// Columns of padding before column 0 and, at least, behind the last tile.
constexpr int pad = 16;

}  // namespace crosswarp
