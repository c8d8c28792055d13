// Reductions of the columns of matrices, as they lie: memory is read once. Leaves are counted from a column's top, so it
// gives the bits of a reduction of its own.
//
// A kernel, `reduce_columns`, does one of three things; another one, `reduce_columns_at_once`, the first and the third; and
// `reduce_wide_columns` the first, of sums of wide matrices.
//
// `do_parts`: a block takes parts of neighbouring columns, and goes down them by tiles of `ways` rows. A part has 2048 rows,
// one leaf; where there are no leaves, so few that as many blocks as can be resident have some. A thread has `vector`
// neighbouring elements of each tile, which it loads at once; so it has rows w, w + ways, w + 2 ways, … of `vector` columns,
// and the block puts together what its threads have of a column. Of wide matrices a tile has `at_once` columns. Of narrow
// ones it has whole rows, so that memory is read from end to end, and threads may begin in one row and end in the next; a
// block takes `side` parts. A column of one part is done then.
//
// `do_few`: of few rows a thread has all that `few` neighbouring columns have, and a warp goes from columns to columns.
//
// `do_totals`: `lanes` threads add up the parts of a column: in a launch of their own, or, where that takes longer than the
// rest, in the last block that has written parts of these columns.
//
// BODY, a class, is what a thread knows of its columns, and says what is made of them:
//     leaves                        whether a part is a leaf
//     widest, flight                elements that a thread loads at once, at most, and that it has under way
//     missing_x, missing_y          what stands for elements of rows that are not there
//     BODY(there)                   of a thread that has so many elements
//     turns                         in how many turns, 1 or 2, it takes in what it has under way
//     take<from>(p, q, first)       takes in `flight` / `turns` elements of either input, `vector` of a row; the first is
//                                   number `first` of the thread, which is `from` modulo `flight`
//     halve(vector)                 leaves what is known of each of `vector` columns
//     part, slot(c, …)              what is known of a part of a column, in memory; that of column c of the thread
//     BODY::join(a, b)              what ways w and w + n have together, for n of ways / 2, ways / 4, … 1
//     few                           `few_columns`
//     BODY::of_few(p, q, c)         the same of a column of `few_rows` rows at most: of each there are `few` elements
//     total                         what a thread knows of parts of a column: `take(part)`, `merge(total)`
//     BODY::quick(a, known, bits)   the result of a part that is a whole column, or of a total; or false:
//     BODY::slow(a, s, known, together)   a warp makes the result, in all lanes; or all of a block does, which has
//                                   `slow_bytes` of memory at `together` for each thread. `never_slow`: there is none.
#pragma once
#include "reduce/arguments.cuh"
#include "reduce/result.cuh"
#include "reduce/warp_leaf.cuh"

namespace crosswarp {

constexpr int column_warps = reduce_threads / 32;
// Elements of a row that a thread loads at once, at most.
template <class S> constexpr int widest_load = sizeof(S) == 8 ? 2 : 4;
// Parts of a column that a thread has under way in `do_totals`; of extrema 32 registers.
template <class Part> constexpr int parts_in_flight = sizeof(Part) == 16 ? 8 : 4;
// Rows up to which a thread has all of its columns.
constexpr int few_rows = 16;
// Columns of them that are `bytes` wide together, at most four: of a row they are loaded at once.
template <class S, int bytes> constexpr int few_columns =
    sizeof(S) == 1 ? 4 : sizeof(S) >= bytes ? 1 : bytes / int(sizeof(S));

template <class Body> __device__ inline u64 part_rows(const column_arguments& a) {
    return Body::leaves ? leaf_elements : a.part_rows;
}
template <class Body> __device__ inline u32 parts_of(const column_arguments& a) {
    return u32((a.all.n + part_rows<Body>(a) - 1) / part_rows<Body>(a));
}

// The first element of the column of result `s`.
__device__ inline u64 column_at(const column_arguments& a, u64 s) {
    if (a.results == a.columns) return s;
    const u64 matrix = s / a.columns;
    return matrix * a.columns * a.all.n + (s - matrix * a.columns);
}

// Part `part` of the column of result `s`.
template <class Part> __device__ inline Part part_of(const column_arguments& a, u64 part, u64 s) {
    return static_cast<const Part*>(a.parts)[part * a.results + s];
}

// Makes and writes the results of columns that have no quick way, one in each lane that is `there`.
template <class Body, class Known>
__device__ inline void slow_columns(const column_arguments& a, u64 s, bool there, const Known& known,
                                    unsigned char* together) {
    // Of those that have no slow way the compiler knows that there are none.
    u32 left = Body::never_slow ? 0 : __ballot_sync(0xffffffffu, there);
    for (; left; left &= left - 1) {
        const int from = __ffs(left) - 1;
        auto of_lane = [=](u32 word) { return __shfl_sync(0xffffffffu, word, from); };
        const u64 column = by_words(s, of_lane);
        const u64 bits = Body::slow(a, column, by_words(known, of_lane), together);
        if (threadIdx.x % (together ? reduce_threads : 32) == 0) put_result(a.all, column, bits);
    }
}

// Writes the results of columns, one in each lane that is `there`. One whole warp calls; or all of a block, of the same
// column: `together`, the block's memory.
template <class Body, class Known>
__device__ inline void finish_columns(const column_arguments& a, u64 s, bool there, const Known& known,
                                      unsigned char* together) {
    const bool writes = !together || threadIdx.x < 32;
    u64 bits;
    const bool quick = Body::quick(a, known, bits);
    if (there && quick && writes) put_result(a.all, s, bits);
    slow_columns<Body>(a, s, there && !quick, known, together);
}

// `vector` elements of each of rows that are `apart` bytes apart, of which `left` are there. Steps over the rows.
template <int vector, int count, class S>
__device__ inline void load_rows(S (&p)[count], const char*& from, u64 apart, int left) {
    using load = typename load_of_bytes<vector * sizeof(S)>::type;
#pragma unroll
    for (int k = 0; k < count / vector; ++k, from += apart) {
        if (k < left) {
            const load v = __ldg(reinterpret_cast<const load*>(from));
            memcpy(&p[k * vector], &v, sizeof(v));
        }
    }
}
// The same of single elements, by as few registers as that takes: with an address of each at a time, of 1e4 × 1e4 f64 the
// loads waited for one another, 312 µs instead of 268.
template <int count, class S>
__device__ inline void load_singly(S (&p)[count], const char*& from, u64 apart, int left) {
    const u32 there = (2u << min(left - 1, 31)) - 1;
#pragma unroll
    for (int k = 0; k < count; ++k, from += apart) {
        // Not computed ahead.
        asm("" : "+l"(from));
        if (there >> k & 1) p[k] = __ldg(reinterpret_cast<const S*>(from));
    }
}

// Where a thread of `do_parts` stands.
struct column_place {
    u64 at;          // its first element
    u64 row;         // the first row of its part
    u32 left;        // how many rows of its own are there
    u32 way, column; // of the first of its elements, in a tile
    u32 side;        // of the block's parts, if there are several
};

template <class Body> struct column_kernel {
    using S = typename Body::storage;
    using part = typename Body::part;
    using total = typename Body::total;

    const column_arguments& a;
    // Bytes, so that nothing is constructed.
    unsigned char* shared;
    const u32 me = threadIdx.x, parts = parts_of<Body>(a), narrow = a.side;

    static constexpr int turn = Body::flight / Body::turns;

    // Loads what is taken in at a time, of rows of which `left` are there, and steps over them.
    static __device__ void load(S (&p)[turn], S missing, const char*& from, u64 apart, int left, u32 vector) {
#pragma unroll
        for (int e = 0; e < turn; ++e) p[e] = missing;
        if (vector == 1) {
            load_singly(p, from, apart, left);
        } else if (vector == 2) {
            load_rows<2>(p, from, apart, left);
        } else {
            load_rows<widest_load<S>>(p, from, apart, left);
        }
    }

    template <int from> static __device__ void take_in(Body& body, const S (&p)[turn], const S (&q)[turn], u32 first) {
        body.template take<from>(p, Body::two ? q : p, first);
    }

    // Goes down a part of columns.
    __device__ Body walk(const column_place& mine, u32 vector, u32 ways) const {
        Body body(mine.left * vector);
        const char* x = static_cast<const char*>(a.all.x) + mine.at * sizeof(S);
        const char* y = static_cast<const char*>(a.all.y) + mine.at * sizeof(S);
        // So that it is not multiplied anew for each row.
        u64 apart = ways * a.columns * sizeof(S);
        asm volatile("" : "+l"(apart));
        const int rows = turn / vector;
        S p[Body::turns][turn], q[Body::turns][turn];
        if constexpr (Body::turns == 1) {
#pragma unroll 1
            for (int row = 0; row < int(mine.left); row += rows) {
                load(p[0], Body::missing_x, x, apart, int(mine.left) - row, vector);
                if (Body::two) load(q[0], Body::missing_y, y, apart, int(mine.left) - row, vector);
                take_in<0>(body, p[0], q[0], row * vector);
            }
        } else {
            // While what one turn has loaded is taken in, the other's is under way.
#pragma unroll 1
            for (int row = -2 * rows; row < int(mine.left); row += 2 * rows) {
#pragma unroll
                for (int half = 0; half < 2; ++half) {
                    const int taken = row + half * rows, left = int(mine.left) - taken - 2 * rows;
                    if (taken >= 0 && taken < int(mine.left)) {
                        if (half == 0) take_in<0>(body, p[0], q[0], taken * vector);
                        if (half == 1) take_in<turn>(body, p[1], q[1], taken * vector);
                    }
                    if (left > 0) {
                        load(p[half], Body::missing_x, x, apart, left, vector);
                        if (Body::two) load(q[half], Body::missing_y, y, apart, left, vector);
                    }
                }
            }
        }
        body.halve(vector);
        return body;
    }

    // All rows of a thread's columns, if they are few: the first is that of result `s`, if it is there.
    template <int vector> __device__ void load_few(S (&p)[Body::few * few_rows], const void* from, u64 at, int rows) const {
        using load = typename load_of_bytes<vector * sizeof(S)>::type;
        const S* x = static_cast<const S*>(from) + at;
#pragma unroll
        for (int row = 0; row < few_rows; ++row, x += a.columns) {
            if (row < rows) {
                const load v = __ldg(reinterpret_cast<const load*>(x));
                memcpy(&p[row * Body::few], &v, sizeof(v));
            }
        }
    }
    static __device__ void forget_few(S (&p)[Body::few * few_rows], S (&q)[Body::few * few_rows]) {
#pragma unroll
        for (int e = 0; e < Body::few * few_rows; ++e) p[e] = Body::missing_x, q[e] = Body::missing_y;
    }
    __device__ void load_few(S (&p)[Body::few * few_rows], S (&q)[Body::few * few_rows], u64 s) const {
        const int rows = s < a.results ? int(a.all.n) : 0;
        const u64 at = column_at(a, s);
        forget_few(p, q);
        if (Body::few > 1 && a.few > 1) {
            load_few<Body::few>(p, a.all.x, at, rows);
            if (Body::two) load_few<Body::few>(q, a.all.y, at, rows);
        } else {
            load_few<1>(p, a.all.x, at, rows);
            if (Body::two) load_few<1>(q, a.all.y, at, rows);
        }
    }

    // Columns of few rows: a warp goes from columns to columns, and has the next ones' elements under way while it makes
    // results.
    __device__ void do_few() const {
        const u32 vector = a.few, lane = warp::lane(), columns = 32 * vector;
        part* of_column = reinterpret_cast<part*>(shared) + me / 32 * columns;
        S p[Body::few * few_rows], q[Body::few * few_rows];
        const u64 step = u64(gridDim.x) * column_warps * columns;
        u64 next = (u64(blockIdx.x) * column_warps + me / 32) * columns;
        // Whether there is something to make results of.
        bool begun = false;
#pragma unroll 1
        for (;;) {
            const u64 s = next - step;
            if (begun) {
                if (s >= a.results) return;
#pragma unroll
                for (int c = 0; c < Body::few; ++c) {
                    if (c < vector) of_column[lane * vector + c] = Body::of_few(p, Body::two ? q : p, c);
                }
            }
            load_few(p, q, next + lane * vector);
            next += step;
            if (!begun) {
                begun = true;
                continue;
            }
            // What is read was written by other lanes.
            __syncwarp();
            // A bit for each column that has no quick way.
            u32 failed = 0;
#pragma unroll 1
            for (u32 k = 0; k < vector && s + 32 * k + lane < a.results; ++k) {
                u64 bits;
                if (Body::quick(a, of_column[32 * k + lane], bits)) {
                    put_result(a.all, s + 32 * k + lane, bits);
                } else {
                    failed |= 1 << k;
                }
            }
            if (!Body::never_slow && __any_sync(0xffffffffu, failed)) {
                // No call would leave the elements under way in registers: they are loaded again.
                forget_few(p, q);
                next -= step;
                begun = false;
#pragma unroll 1
                for (u32 k = 0; k < vector; ++k) {
                    const u32 column = 32 * k + lane;
                    slow_columns<Body>(a, s + column, failed >> k & 1, of_column[column], nullptr);
                }
            }
            // What other lanes have read is written anew.
            __syncwarp();
        }
    }

    __device__ void do_parts() const {
        part* of_way = reinterpret_cast<part*>(shared);
        const u32 columns = a.at_once, all = narrow ? a.side * columns : columns;
        // Neighbouring blocks have neighbouring columns of the same rows; of wide matrices, these parts, which may be more
        // than a grid has blocks along one of these axes.
        const u32 piece_of_block = blockIdx.z * gridDim.y + blockIdx.y;
        const u64 s_of_block = u64(blockIdx.x) * columns;
        put_ways(of_way, all, piece_of_block, s_of_block);
        // What is read was written by others.
        __syncthreads();
#pragma unroll 1
        for (u32 k = me; k < (all + 31) / 32 * 32; k += blockDim.x) {
            u64 s = s_of_block + k;
            u32 piece = piece_of_block;
            bool there = k < all;
            if (narrow) {
                const u32 side = k / columns, tile = blockIdx.x * narrow + side, matrix = tile / parts;
                there = there && tile < a.tiles;
                piece = tile - matrix * parts;
                s = u64(matrix) * columns + (k - side * columns);
            }
            there = there && s < a.results && piece < parts;
            const part found = of_way[there ? k : 0];
            if (parts == 1) {
                finish_columns<Body>(a, s, there, found, nullptr);
            } else if (there) {
                static_cast<part*>(a.parts)[piece * a.results + s] = found;
            }
        }
    }

    // Puts what is known of the block's columns in memory, of each in its first way.
    __device__ void put_ways(part* of_way, u32 all, u32 piece_of_block, u64 s_of_block) const {
        const u32 columns = a.at_once;
        // The end of the last narrow matrix need not be as well aligned.
        const u32 vector = blockIdx.x + 1 == gridDim.x ? a.last_vector : a.vector;
        const u32 ways = narrow ? 8 * vector : a.ways;

        column_place mine;
        mine.at = 0, mine.left = 0;
        mine.side = narrow ? me / (8 * columns) : 0;
        const u32 slot = (me - mine.side * 8 * columns) * vector;
        mine.way = slot / columns, mine.column = slot - mine.way * columns;
        if (narrow) {
            const u32 tile = blockIdx.x * narrow + mine.side, matrix = tile / parts;
            mine.row = u64(tile - matrix * parts) * part_rows<Body>(a);
            if (mine.side < narrow && tile < a.tiles) {
                const u32 length = u32(min(part_rows<Body>(a), a.all.n - mine.row)) * columns;
                if (slot < length) mine.left = (length - slot + ways * columns - 1) / (ways * columns);
                mine.at = (matrix * a.all.n + mine.row) * columns + slot;
            }
        } else {
            mine.row = u64(piece_of_block) * part_rows<Body>(a);
            const u64 s = s_of_block + mine.column;
            if (s < a.results && mine.row + mine.way < a.all.n) {
                const u32 count = u32(min(part_rows<Body>(a), a.all.n - mine.row));
                if (mine.way < count) mine.left = (count - mine.way + ways - 1) / ways;
                mine.at = column_at(a, s) + (mine.row + mine.way) * a.columns;
            }
        }

        const Body body = walk(mine, vector, ways);
#pragma unroll
        for (u32 c = 0; c < widest_load<S>; ++c) {
            if (c < vector && mine.side < max(narrow, 1u)) {
                of_way[mine.way * all + mine.side * columns + mine.column] =
                    body.slot(c, vector, mine.row + mine.way, ways);
            }
            // Of a narrow matrix the next element may be in the next row.
            if (++mine.column == columns) mine.column = 0, ++mine.way;
        }
#pragma unroll 1
        for (u32 way = ways / 2; way > 0; way /= 2) {
            const u32 half = way * all;
            // Before: what is read was written by others, in the round before. Within a round nobody writes what another
            // reads.
            __syncthreads();
#pragma unroll 1
            for (u32 k = me; k < half; k += blockDim.x) of_way[k] = Body::join(of_way[k], of_way[k + half]);
        }
    }

    static __device__ void merge_lanes(total& mine, u32 lanes) {
#pragma unroll 1
        for (u32 distance = lanes / 2; distance > 0; distance /= 2) {
            mine.merge(by_words(mine, [=](u32 word) { return __shfl_xor_sync(0xffffffffu, word, distance); }));
        }
    }

    // Whether this block is the last one that has written parts of its columns, and then sees those of the others. It leaves
    // the counter zero.
    __device__ bool has_all_parts() const {
        __shared__ bool last;
        // Races prevented: as in `is_last_block`.
        __threadfence();
        __syncthreads();
        if (me == 0) {
            u32* counter = reinterpret_cast<u32*>(a.all.state) + (narrow ? 0 : blockIdx.x);
            const u32 blocks = narrow ? gridDim.x : gridDim.y * gridDim.z;
            last = atomicAdd(counter, 1) == blocks - 1;
            if (last) *counter = 0;
        }
        __syncthreads();
        if (last) __threadfence();
        return last;
    }

    // Of columns from `first` to `end`; if more than a warp adds up one of them, of this alone.
    __device__ void do_totals(u64 first, u64 end) const {
#pragma unroll 1
        for (; first < end; first += blockDim.x / a.lanes) totals_at(first, end);
    }

    __device__ void totals_at(u64 first_column, u64 end) const {
        total* of_warp = reinterpret_cast<total*>(shared);
        const u32 lanes = a.lanes;
        const u64 s = first_column + me / lanes;
        const bool there = s < end;
        total mine;
        constexpr u32 in_flight = parts_in_flight<part>;
#pragma unroll 1
        for (u32 first = me % lanes; there && first < parts; first += in_flight * lanes) {
            part p[in_flight];
#pragma unroll
            for (u32 i = 0; i < in_flight; ++i) {
                if (first + i * lanes < parts) p[i] = part_of<part>(a, first + i * lanes, s);
            }
#pragma unroll
            for (u32 i = 0; i < in_flight; ++i) {
                if (first + i * lanes < parts) mine.take(p[i], first + i * lanes);
            }
        }
        merge_lanes(mine, min(lanes, 32u));
        if (lanes > 32) {
            // A block has one column.
            if (me % 32 == 0) of_warp[me / 32] = mine;
            // What all warps read was written by each of them.
            __syncthreads();
            mine = me % 32 < column_warps ? of_warp[me % 32] : total();
            merge_lanes(mine, column_warps);
        }
        finish_columns<Body>(a, s, there && me % min(lanes, 32u) == 0, mine, lanes > 32 ? shared : nullptr);
    }
};

// The columns whose parts a block has written, if it is the last one that has. Not inlined: parts would have fewer registers.
template <class Body> __device__ __noinline__ void totals_of_last_block(const column_arguments& a) {
    const column_kernel<Body> kernel = {a, nullptr};
    if (!kernel.has_all_parts()) return;
    const u64 count = a.side ? a.results : a.at_once, first = a.side ? 0 : blockIdx.x * count;
    kernel.do_totals(first, min(first + count, a.results));
}

// Parts alone.
template <class Body> __device__ void reduce_parts(const column_arguments& a) {
    __shared__ __align__(16) unsigned char
        shared[reduce_threads * widest_load<typename Body::storage> * sizeof(typename Body::part)];
    start_early();
    column_kernel<Body>{a, shared}.do_parts();
}

// `at_once`: parts, and totals by the last block that has some; else one of the three.
template <class Body, bool at_once> __device__ void reduce_columns(const column_arguments& a) {
    constexpr size_t of_ways = widest_load<typename Body::storage> * sizeof(typename Body::part);
    __shared__ __align__(16) unsigned char
        shared[reduce_threads * (of_ways > Body::slow_bytes ? of_ways : Body::slow_bytes)];
    start_early();
    const column_kernel<Body> kernel = {a, shared};
    if constexpr (at_once) {
        kernel.do_parts();
        totals_of_last_block<Body>(a);
    } else if (a.lanes) {
        const u64 columns = reduce_threads / a.lanes, first = blockIdx.x * columns;
        kernel.do_totals(first, min(first + columns, a.results));
    } else if (a.few) {
        kernel.do_few();
    } else {
        kernel.do_parts();
    }
}

}  // namespace crosswarp

// Of each, one kernel for all, so that what is slow is compiled once. Two: what the one calls would take 3 % of the other's
// time.
#define COLUMN_KERNEL(BODY, blocks)                                                                                   \
    extern "C" __global__ void __launch_bounds__(cw::reduce_threads, blocks)                                          \
        reduce_columns(const __grid_constant__ cw::column_arguments a) {                                              \
        cw::reduce_columns<BODY, false>(a);                                                                           \
    }                                                                                                                 \
    extern "C" __global__ void __launch_bounds__(cw::reduce_threads, blocks)                                          \
        reduce_columns_at_once(const __grid_constant__ cw::column_arguments a) {                                      \
        cw::reduce_columns<BODY, true>(a);                                                                            \
    }
