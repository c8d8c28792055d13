// The kernel of a pass of several sweeps: every warp a strip.
#pragma once
#include "wavefront.cuh"

namespace crosswarp {

// How a band is cut: into strips of `rows` rows, `edge_rows` where a strip holds the fixed column at the
// left or right end, which makes its chain of dependent operations longer. Multiples of 16.
struct strips {
    i32 rows, edge_rows;
};

// Blocks have `Warps` warps. The strips of inner columns come first, side by side, then those at the ends.
template <class F, int T, int K, int Warps, bool Fixed, bool Source>
__device__ __forceinline__ void pass(const band<F>& g, strips cut, int depth) {
    using shape = wavefront_shape<F, T, K>;
    __shared__ typename shape::scratch scratch[Warps];
    u32 across = (g.nx + shape::own - 1) / shape::own;
    u32 ends = across < 2 ? across : 2, inner = across - ends;
    u32 own = g.own_end - g.own_start;
    u32 inner_strips = inner * ((own + cut.rows - 1) / cut.rows);
    u32 strip = blockIdx.x * Warps + threadIdx.x / 32;
    u32 column, row;
    int rows;
    if (strip < inner_strips) {
        column = 1 + strip % inner;
        row = strip / inner;
        rows = cut.rows;
    } else {
        strip -= inner_strips;
        column = strip % ends * (across - 1);
        row = strip / ends;
        rows = cut.edge_rows;
    }
    if ((u64)row * rows >= own) return;
    int y0 = g.own_start + (int)row * rows;
    wavefront<F, T, K, Fixed, Source> front(g, scratch[threadIdx.x / 32], column * shape::own, y0,
                                            min(y0 + rows, g.own_end), depth);
    front.run();
}

}  // namespace crosswarp
