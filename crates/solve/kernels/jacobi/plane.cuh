// A PE's band of a 2-D grid on the device, as the kernels see it. The host side is `engine::cuda::band::Band`.
#pragma once
#include "leaf.cuh"

namespace crosswarp {

// Rows and columns carry their numbers in the whole grid. Every array has `pitch` elements per row and
// `pad` columns before column 0; row `first` is the first that is stored. The padding, and the rows
// beyond `own`, are halos.
template <class F> struct band {
    const F* before;  // address of row `first`, column 0
    F* after;
    const u8* fixed;  // cells that keep their value: byte not 0; null if none
    const F* source;  // h²·f; null if none
    u64* words;       // one superaccumulator per sweep
    i64 pitch;
    i32 nx, ny;
    i32 first;
    i32 own_start, own_end;
    i32 wrap_x, wrap_y;  // whether the outermost columns and rows are ghosts instead of fixed

    __device__ i64 at(i32 x, i32 y) const { return (i64)(y - first) * pitch + x; }
};

constexpr int leaf_columns = leaf_lanes;
// Columns of padding before column 0 and, at least, behind the last tile.
constexpr int pad = 16;

}  // namespace crosswarp
