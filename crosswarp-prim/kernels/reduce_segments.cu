// Reproducible sums of many segments of an array: the rows of a matrix, or what offsets say (as in CSR). The
// leaves of a segment are counted from its start, so it gives the bits of a reduction of its own.
#include "reduce_sum.cuh"

namespace crosswarp {

// The same structure in Rust: `cuda::reduce::segments::SegmentArguments`.
struct segment_arguments {
    reduce_arguments all;  // n: elements of the array; state: `segment_state` words for each segment
    const u64* offsets;    // segment s is elements offsets[s] to offsets[s + 1]; or null:
    u64 columns;           // it is elements columns * s to columns * (s + 1)
    u64 segments;
};

constexpr int segment_state = 128;

// The reduction of segment s alone. Offsets that go down or beyond the array's end are taken back to it.
__device__ inline reduce_arguments of_segment(const segment_arguments& a, u64 s) {
    constexpr int size = sizeof(ELEMENT::storage);
    u64 begin = a.offsets ? a.offsets[s] : a.columns * s;
    u64 end = a.offsets ? a.offsets[s + 1] : begin + a.columns;
    end = end < a.all.n ? end : a.all.n;
    begin = begin < end ? begin : end;
    reduce_arguments one = a.all;
    one.x = static_cast<const char*>(one.x) + begin * size;
    one.y = static_cast<const char*>(one.y) + begin * size;
    one.n = end - begin;
    one.count = nullptr;
    one.state += segment_state * s;
    one.out += s;
    return one;
}

// A warp for each segment.
template <bool aligned> __device__ void narrow_segments(const segment_arguments& a) {
    using E = ELEMENT;
    start_early();
    const u64 warps = u64(gridDim.x) * (blockDim.x / 32);
    for (u64 s = u64(blockIdx.x) * (blockDim.x / 32) + threadIdx.x / 32; s < a.segments; s += warps) {
        const reduce_arguments one = of_segment(a, s);
        const leaf_pass<E, TERM, leaf_sum, aligned> pass(one.x, one.y);
        spread<E::format> total;
        pass.run(one.n, 0, 1, [&](u64, E::format::type value) { add_leaves<E>(total, value); });
        total.carry();
        finish<E::format>(total, one.n, one);
    }
}

// A row of blocks for each segment.
template <bool aligned> __device__ void wide_segments(const segment_arguments& a) {
    start_early();
    sum<aligned>(of_segment(a, blockIdx.y));
}

}  // namespace crosswarp

#define KERNEL extern "C" __global__ void __launch_bounds__(cw::sum_threads, SUM_BLOCKS)
KERNEL narrow(cw::segment_arguments a) { cw::narrow_segments<true>(a); }
KERNEL narrow_unaligned(cw::segment_arguments a) { cw::narrow_segments<false>(a); }
KERNEL wide(cw::segment_arguments a) { cw::wide_segments<true>(a); }
KERNEL wide_unaligned(cw::segment_arguments a) { cw::wide_segments<false>(a); }
