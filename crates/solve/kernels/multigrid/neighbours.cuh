// A point and those around it.
#pragma once
#include "multigrid/transfer.cuh"

namespace crosswarp {

template <class F> struct neighbours {
    F up_west, up, up_east, west, here, east, down_west, down, down_east;
};

// What a step found and left.
template <class F> struct stepped {
    F residual, after;
};

}  // namespace crosswarp
