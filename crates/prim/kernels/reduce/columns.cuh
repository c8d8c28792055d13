// Reductions of the columns of matrices, as they lie: memory is read once. Leaves are counted from a column's top, so it
// gives the bits of a reduction of its own.
//
// Two kernels. `column_parts`: a block takes `at_once` neighbouring columns, a power of two, and a part of 2048 rows, one
// leaf. Its threads are dealt out over the columns, `ways` for each: a thread has the rows w, w + ways, w + 2 ways, … of
// one, and the block puts together what the threads of a column have. So matrices of few rows, whose columns are reduced
// by one thread each, and of few columns, with up to 128 threads for each, keep all threads and the memory at work. A
// column of one part is done then. `column_totals`: a warp for each column, or a block, adds up its parts.
//
// BODY, a class, says what is made of a column:
//     part                          what is known of a part of a column, in memory
//     BODY::walk(x, y, step, w, ways, count, first)   a thread takes in rows w, w + ways, … of the `count` rows at x and y,
//                                   which are `step` elements apart; the first of them is row `first` of the column
//     BODY::join(a, b)              what threads w and w + n have together, for n of ways / 2, ways / 4, … 1
//     BODY::finish(a, s, x, y, there, found)    a warp writes the results of columns of one part, one in each lane that
//                                   is `there`
//     state                         what a warp knows of a column of several parts
//     BODY::take(a, s, x, y, first, step)       it takes in 32 parts from `first` on, and from first + step, …
//     BODY::merge(state, other)     what another warp knows
//     BODY::result(a, state)        the result, in lane 0
#pragma once
#include "reduce/arguments.cuh"
#include "reduce/result.cuh"
#include "reduce/warp_leaf.cuh"

namespace crosswarp {

constexpr int column_warps = reduce_threads / 32;
constexpr int part_rows = leaf_elements;
// Rows of a thread that are loaded together, so that they are under way at the same time.
constexpr int rows_in_flight = 16;

__device__ inline u64 parts_of(const column_arguments& a) { return (a.all.n + part_rows - 1) / part_rows; }

// The first element of the column of result `s`.
__device__ inline u64 column_at(const column_arguments& a, u64 s) {
    const u64 matrix = s / a.columns;
    return matrix * a.columns * a.all.n + (s - matrix * a.columns);
}

// Gives rows w, w + ways, …, of `count` rows to `use(left, x, y, row)`, `rows_in_flight` at a time: how many there are, if
// less, their elements, and the number of the first.
template <bool two, class S, class Use>
__device__ inline void walk_column(const S* x, const S* y, u64 step, int w, int ways, int count, Use use) {
    x += w * step, y += w * step;
    const u64 apart = ways * step;
    const int stride = rows_in_flight * ways, bits = __ffs(ways) - 1;
#pragma unroll 1
    for (int row = w; row < count; row += stride, x += stride * step, y += stride * step) {
        S p[rows_in_flight], q[rows_in_flight];
        const int left = (count - row + ways - 1) >> bits;
#pragma unroll
        for (int k = 0; k < rows_in_flight; ++k) {
            if (k < left) {
                p[k] = __ldg(x + k * apart);
                if (two) q[k] = __ldg(y + k * apart);
            }
        }
        use(left, p, two ? q : p, row);
    }
}

template <class Body> __device__ void column_parts(const column_arguments& a) {
    using S = typename Body::storage;
    using part = typename Body::part;
    // Bytes, so that nothing is constructed.
    __shared__ __align__(16) unsigned char bytes[reduce_threads * sizeof(part)];
    part* of_thread = reinterpret_cast<part*>(bytes);
    start_early();
    const int at_once = int(a.at_once), ways = reduce_threads / at_once;
    const int me = threadIdx.x, w = me / at_once, column = me % at_once;
    const u64 groups = (a.results + at_once - 1) / at_once;
    // Neighbouring blocks have neighbouring columns of the same rows.
    const u64 piece = blockIdx.x / groups, s = (blockIdx.x - piece * groups) * at_once + column;
    const u64 first = piece * part_rows;
    const int count = int(min(u64(part_rows), a.all.n - first));
    const bool there = s < a.results;
    const u64 at = column_at(a, there ? s : 0) + first * a.columns;
    const S *x = static_cast<const S*>(a.all.x) + at, *y = static_cast<const S*>(a.all.y) + at;
    of_thread[me] = Body::walk(x, y, a.columns, w, ways, there ? count : 0, first);
#pragma unroll 1
    for (int half = ways / 2; half > 0; half /= 2) {
        // Before: what is read was written by others, in the round before. Within a round nobody writes what another reads.
        __syncthreads();
        if (w < half) of_thread[me] = Body::join(of_thread[me], of_thread[me + half * at_once]);
    }
    // Whole warps go on; one that has fewer columns than lanes has others' threads in the rest.
    if (me >= max(at_once, 32)) return;
    const bool mine = there && w == 0;
    const part found = of_thread[me];
    if (a.all.n <= part_rows) {
        Body::finish(a, s, x, y, mine, found);
    } else if (mine) {
        static_cast<part*>(a.parts)[piece * a.results + s] = found;
    }
}

template <class Body> __device__ void column_totals(const column_arguments& a) {
    using S = typename Body::storage;
    using state = typename Body::state;
    __shared__ __align__(16) unsigned char bytes[reduce_threads * sizeof(state)];
    state* of_thread = reinterpret_cast<state*>(bytes);
    start_early();
    const int me = threadIdx.x, warps = int(a.warps);
    const u64 s = u64(blockIdx.x) * (column_warps / warps) + me / 32 / warps;
    // With more than one warp for a column a block has one column.
    if (s >= a.results) return;
    const int w = me / 32 % warps;
    const u64 at = column_at(a, s);
    const S *x = static_cast<const S*>(a.all.x) + at, *y = static_cast<const S*>(a.all.y) + at;
    state mine = Body::take(a, s, x, y, 32 * w, 32 * warps);
    if (warps > 1) {
        of_thread[me] = mine;
        // What the first warp reads was written by the others.
        __syncthreads();
        if (w) return;
#pragma unroll 1
        for (int other = 1; other < warps; ++other) Body::merge(mine, of_thread[me + 32 * other]);
    }
    const u64 bits = Body::result(a, mine);
    if (warp::lane() == 0) put_result(a.all, s, bits);
}

// Part `part` of the column of result `s`.
template <class Part> __device__ inline Part part_of(const column_arguments& a, u64 part, u64 s) {
    return static_cast<const Part*>(a.parts)[part * a.results + s];
}

}  // namespace crosswarp

#define COLUMN_KERNELS(BODY, blocks)                                                                     \
    extern "C" __global__ void __launch_bounds__(cw::reduce_threads, blocks) column_parts(cw::column_arguments a) { \
        cw::column_parts<BODY>(a);                                                                       \
    }                                                                                                    \
    extern "C" __global__ void __launch_bounds__(cw::reduce_threads) column_totals(cw::column_arguments a) { \
        cw::column_totals<BODY>(a);                                                                      \
    }
