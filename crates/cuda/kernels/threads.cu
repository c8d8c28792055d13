// Each lane of a grid reports its index, block, warp and lane, in the order in which they arrive.
#include "warp.cuh"

// One report; the host reads the same layout.
struct Report {
    cw::u32 index;  // of the thread in the whole grid
    cw::u32 block;
    cw::u32 warp;  // within the block
    cw::u32 lane;  // within the warp
};

// `reports` holds one entry per thread of the grid, `arrived` starts at 0. One-dimensional grid and
// block. Warps take their places in the list as they arrive, so blocks and warps come in any order;
// the lanes of a warp take theirs together, in order.
extern "C" __global__ void threads(Report* reports, cw::u32* arrived) {
    const cw::u32 warp = threadIdx.x / 32;
    const cw::u32 lane = threadIdx.x % 32;
    // The block's last warp may be partial: its lanes are counted, not assumed.
    const cw::warp lanes;
    cw::u32 first = 0;
    if (lane == 0) first = atomicAdd(arrived, lanes.size());
    first = lanes.broadcast(first, 0);
    reports[first + lane] = {blockIdx.x * blockDim.x + threadIdx.x, blockIdx.x, warp, lane};
}
