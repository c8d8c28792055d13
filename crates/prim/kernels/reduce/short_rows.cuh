// Reductions of many rows of up to some hundred elements: 1, 2, 4 or 8 neighbouring threads have a row, so that a warp has
// several. With a warp for each row (`short_segments`), 10^6 of them take 0.5 ms on an H200, however short they are.
#pragma once
#include "reduce/segments.cuh"

namespace crosswarp {

// Elements of either input that a thread has under way: leaf lanes of a row, of which 8 threads have all.
constexpr int row_slots = 16;

// `width` neighbouring elements by one load, from an address that is a multiple of their bytes.
template <int width, class S> __device__ inline void load_together(S* to, const S* from) {
    using load = typename load_of_bytes<width * sizeof(S)>::type;
    const load v = __ldg(reinterpret_cast<const load*>(from));
    memcpy(to, &v, sizeof(v));
}

// Rows of a block that their threads can't reduce: warps do that in the end. A call where rows are found to be such would
// cost the loop over rows registers.
struct rows_left {
    static constexpr u32 room = 256;
    u64 row[room];
    u32 count;

    __device__ void add(u64 one) {
        const u32 at = atomicAdd(&count, 1);
        if (at < room) row[at] = one;
    }
};

// Reduces a row by a whole warp.
template <class Body> __device__ inline void reduce_by_warp(const segment_arguments& a, u64 row) {
    using S = typename Body::storage;
    const u64 at = row * a.columns;
    const S *x = static_cast<const S*>(a.all.x) + at, *y = static_cast<const S*>(a.all.y) + at;
    Body body(a.all);
    body.add(x, y, a.columns, 0);
    finish_segment(a, body, x, a.columns, row);
}

// `lanes` threads for a row, which load elements `width` at a time: each row begins at a multiple of that, and has one. They
// have an element in each slot; 8 threads, as they have all leaf lanes, may have several.
template <class Body, int lanes, int width>
__device__ inline void reduce_short_rows(const segment_arguments& a, rows_left& left) {
    using S = typename Body::storage;
    constexpr int loads = row_slots / width, stride = lanes * width, rows = 32 / lanes;
    const int n = int(a.columns), lane = warp::lane(), mine = lane % lanes;
    const u64 step = u64(gridDim.x) * blockDim.x / 32 * rows;
#pragma unroll 1
    for (u64 first = (u64(blockIdx.x) * blockDim.x + threadIdx.x) / 32 * rows; first < a.segments; first += step) {
        const u64 row = first + lane / lanes;
        const S *x = static_cast<const S*>(a.all.x) + row * n, *y = static_cast<const S*>(a.all.y) + row * n;
        const int there = row < a.segments ? n : 0;
        typename Body::of_thread part;
#pragma unroll 1
        for (int at = mine * width; lanes == 8 ? at < there : at == mine * width; at += row_slots * lanes) {
            // Without values the compiler would keep those of the loop's last turn.
            S p[row_slots] = {}, q[row_slots] = {};
#pragma unroll
            for (int k = 0; k < loads; ++k) {
                if (at + k * stride >= there) continue;
                load_together<width>(p + k * width, x + at + k * stride);
                if (Body::two) load_together<width>(q + k * width, y + at + k * stride);
            }
#pragma unroll
            for (int k = 0; k < row_slots; ++k) {
                const int number = at + k / width * stride + k % width;
                if (number < there) part.take(p[k], Body::two ? q[k] : p[k], k, number);
            }
        }
        part.template merge<lanes, width>();
        u64 bits;
        const bool found = part.result(a.all, n, bits);
        if (there && mine == 0) {
            if (found) {
                put_result(a.all, row, bits);
            } else {
                left.add(row);
            }
        }
    }
}

template <class Body> __device__ void short_rows(const segment_arguments& a) {
    __shared__ rows_left left;
    constexpr int size = sizeof(typename Body::storage), widest = size == 8 ? 2 : 4;
    if (threadIdx.x == 0) left.count = 0;
    // Before: the count is zero when rows are added.
    __syncthreads();
    start_early();
    const u64 places = reinterpret_cast<u64>(a.all.x) | (Body::two ? reinterpret_cast<u64>(a.all.y) : 0);
    const u64 multiple = a.columns | places / size;
    const bool wide = multiple % widest == 0;
    const u32 lanes = a.columns <= row_slots ? 1 : a.columns <= 2 * row_slots ? 2 : a.columns <= 4 * row_slots ? 4 : 8;
    if (lanes == 8) {
        wide ? reduce_short_rows<Body, 8, widest>(a, left) : reduce_short_rows<Body, 8, 1>(a, left);
    } else if (lanes == 4) {
        wide ? reduce_short_rows<Body, 4, widest>(a, left) : reduce_short_rows<Body, 4, 1>(a, left);
    } else if (lanes == 2) {
        wide ? reduce_short_rows<Body, 2, widest>(a, left) : reduce_short_rows<Body, 2, 1>(a, left);
    } else if (wide) {
        reduce_short_rows<Body, 1, widest>(a, left);
    } else if (multiple % 2 == 0) {
        reduce_short_rows<Body, 1, 2>(a, left);
    } else {
        reduce_short_rows<Body, 1, 1>(a, left);
    }
    if constexpr (Body::tiny_fails) {
        // What is read was written by all threads.
        __syncthreads();
        const u32 warps = blockDim.x / 32, me = threadIdx.x / 32;
        if (left.count <= left.room) {
#pragma unroll 1
            for (u32 k = me; k < left.count; k += warps) reduce_by_warp<Body>(a, left.row[k]);
        } else {
            // All of the block's rows: those that have results get the same once more.
            const u64 rows = blockDim.x / lanes;
#pragma unroll 1
            for (u64 first = blockIdx.x * rows; first < a.segments; first += gridDim.x * rows) {
                const u64 end = min(first + rows, a.segments);
#pragma unroll 1
                for (u64 row = first + me; row < end; row += warps) reduce_by_warp<Body>(a, row);
            }
        }
    }
}

}  // namespace crosswarp

#define SHORT_ROWS_KERNEL(BODY, blocks)                                                                               \
    extern "C" __global__ void __launch_bounds__(cw::reduce_threads, blocks)                                          \
        short_rows(const __grid_constant__ cw::segment_arguments a) {                                                 \
        cw::short_rows<BODY>(a);                                                                                      \
    }
