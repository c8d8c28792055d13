// Reductions of many segments of an array: the rows of a matrix, or what offsets say (as in CSR). Leaves are
// counted from a segment's start, so it gives the bits of a reduction of its own.
//
// Three kernels. `short_segments`: a thread for each segment of a few elements, a warp for each of some leaves; what
// is longer goes into a queue. `long_segments`: the leaves of all segments in the queue, cut into equal parts, one
// for each warp; warps that share a segment combine their parts as the blocks of a single reduction do
// (reduce/block_combine.cuh). So neither many tiny segments nor few huge ones leave a part of the GPU idle.
// `short_rows` (reduce/short_rows.cuh): some threads for each of many rows that are short.
//
// BODY, a class, says what is made of a segment:
//     BODY(a)                       the arguments of the launch
//     add(x, y, count, first)       a warp takes in `count` elements at x and y, the first of which is number
//                                   `first` of the segment and begins a leaf
//     finish(x, n)                  the result of the n elements at x, in lane 0; a whole warp calls
//     contribute(slots, owner, me)  a warp hands over what it has for the segment of warp `owner`
//     collect(slots, owner, me)     the last of the warps `owner` to `me` takes in what they have handed over
//     BODY::tiny, is_tiny(a, n)     a thread may reduce up to `tiny` elements alone; whether it should
//     tiny_result(a, x, y, n, bits) gives what it then writes; or false, if `tiny_fails`: the warp is to do it
//     BODY::of_thread               what one of the threads that have a row in common knows of it:
//         take(p, q, slot, i)       takes in its elements with number i; where they are in `slot`, of 16
//         merge<lanes, width>()     puts together what neighbouring `lanes` have, of whose slots, in turn, `width` each are
//                                   neighbours
//         result(a, n, bits)        as `tiny_result`, of all n
#pragma once
#include "reduce/arguments.cuh"
#include "reduce/block_combine.cuh"
#include "reduce/result.cuh"
#include "reduce/warp_leaf.cuh"

namespace crosswarp {

// The state: a word for the queue, and from `segment_slots` on for each warp a slot, in which the warps that
// share a segment which begins with it combine their parts.
//
// The queue's word counts segments from bit 40 on, their leaves in bits 10 to 39, and below the blocks that have
// read it.
constexpr u64 one_queued = 1ull << 40, one_leaf = 1ull << 10;

// Offsets that go down or beyond the array's end are taken back to it.
__device__ inline void segment_bounds(const segment_arguments& a, u64 s, u64& begin, u64& length) {
    begin = a.offsets ? a.offsets[s] : a.columns * s;
    u64 end = a.offsets ? a.offsets[s + 1] : begin + a.columns;
    end = min(end, a.all.n);
    begin = min(begin, end);
    length = end - begin;
}

// The result of the n elements at x, made and written by a whole warp.
template <class Body>
__device__ inline void finish_segment(const segment_arguments& a, Body& body, const typename Body::storage* x, u64 n,
                                      u64 s) {
    const u64 bits = body.finish(x, n);
    if (warp::lane() == 0) put_result(a.all, s, bits);
}

__device__ inline u64 leaves_of(u64 length) { return (length + leaf_elements - 1) / leaf_elements; }

// Puts a segment into the queue; false if that is full, which it is only if offsets go down and segments overlap.
__device__ inline bool enqueue(const segment_arguments& a, u64 s, u64 begin, u64 length) {
    const u64 leaves = leaves_of(length);
    u64 word = load_relaxed(a.all.state);
    for (;;) {
        if (word / one_queued >= a.room || word % one_queued + leaves * one_leaf >= one_queued) return false;
        u64 found = atomicCAS(a.all.state, word, word + one_queued + leaves * one_leaf);
        if (found == word) break;
        word = found;
    }
    a.queue[word / one_queued] = {s, begin, length, word % one_queued / one_leaf};
    return true;
}

template <class Body> __device__ void short_segments(const segment_arguments& a) {
    using S = typename Body::storage;
    constexpr u32 all = 0xffffffffu;
    start_early();
    const S *x = static_cast<const S*>(a.all.x), *y = static_cast<const S*>(a.all.y);
    const int lane = warp::lane();
    const u64 warps = u64(gridDim.x) * (blockDim.x / 32);
    const u64 step = warps * a.together;
    u64 first = (u64(blockIdx.x) * (blockDim.x / 32) + threadIdx.x / 32) * a.together;
    u64 begin_next = 0, length_next = 0;
    auto read_bounds = [&](u64 first) {
        if (lane < int(a.together) && first + lane < a.segments) {
            segment_bounds(a, first + lane, begin_next, length_next);
        }
    };
    read_bounds(first);
    for (; first < a.segments; first += step) {
        const u64 s = first + lane, begin = begin_next, length = length_next;
        bool mine = lane < int(a.together) && s < a.segments;
        // Under way while these segments are worked on.
        read_bounds(first + step);
        if (mine && length <= Body::tiny && Body::is_tiny(a.all, length)) {
            u64 bits;
            if (Body::tiny_result(a.all, x + begin, y + begin, int(length), bits)) {
                put_result(a.all, s, bits);
                mine = false;
            }
        }
        if (mine && leaves_of(length) > a.long_leaves && enqueue(a, s, begin, length)) mine = false;
        // What is left, one after the other by the whole warp.
        for (u32 left = __ballot_sync(all, mine); left; left &= left - 1) {
            const int from = __ffs(left) - 1;
            const u64 at = __shfl_sync(all, begin, from), n = __shfl_sync(all, length, from);
            Body body(a.all);
            body.add(x + at, y + at, n, 0);
            finish_segment(a, body, x + at, n, first + from);
        }
    }
}

// The long segments: read from the queue, or alike.
struct long_list {
    const segment_arguments& a;
    u64 segments, leaves;

    __device__ long_segment get(u64 k) const {
        if (a.queue) return a.queue[k];
        long_segment one;
        one.segment = k;
        segment_bounds(a, k, one.begin, one.length);
        one.leaves_before = k * leaves_of(a.columns);
        return one;
    }

    // The last segment with at most `leaf` leaves before it. One whole warp calls.
    __device__ u64 find(u64 leaf) const {
        if (!a.queue) return leaf / leaves_of(a.columns);
        // In each step the lanes read 32 places that cut the range into parts.
        u64 low = 0, high = segments;
        while (high - low > 1) {
            u64 step = (high - low + 31) / 32, at = low + warp::lane() * step;
            bool before = at < high && a.queue[at].leaves_before <= leaf;
            // `low` always is, and those that are come first.
            u32 count = __popc(__ballot_sync(0xffffffffu, before));
            low += (count - 1) * step;
            high = min(low + step, high);
        }
        return low;
    }
};

template <class Body> __device__ void long_segments(const segment_arguments& a) {
    using S = typename Body::storage;
    __shared__ u64 queued_for_all;
    u32 block = blockIdx.x;
    start_early();
    long_list list = {a, a.segments, 0};
    if (a.queue) {
        if (threadIdx.x == 0) {
            queued_for_all = atomicAdd(a.all.state, 1);
            // The last reader leaves the word zero for the next launch.
            if (queued_for_all % one_leaf == gridDim.x - 1) *a.all.state = 0;
        }
        __syncthreads();
        list.segments = queued_for_all / one_queued;
        list.leaves = queued_for_all % one_queued / one_leaf;
        // How many blocks have started before this one.
        block = queued_for_all % one_leaf;
    } else {
        long_segment last = list.get(a.segments - 1);
        list.leaves = last.leaves_before + leaves_of(last.length);
    }

    // Parts go to warps in the order in which their blocks have started, so that who waits waits for blocks that run or
    // have run. Without a queue that is the order of their index: all blocks are resident at once (the host asks for no
    // more), so each starts sooner or later, whatever the order.
    const u64 leaves = list.leaves;
    const u64 per_block = min(u64(blockDim.x / 32), (leaves + gridDim.x - 1) / gridDim.x);
    const u64 parts = min(gridDim.x * per_block, leaves);
    const u64 me = block * per_block + threadIdx.x / 32;
    if (threadIdx.x / 32 >= per_block || me >= parts) return;
    const u64 from = leaves * me / parts, to = leaves * (me + 1) / parts;
    const S *x = static_cast<const S*>(a.all.x), *y = static_cast<const S*>(a.all.y);
    u64* slots = a.all.state + segment_slots;
    // The part that has leaf `leaf`.
    auto owner = [&](u64 leaf) { return ((leaf + 1) * parts - 1) / leaves; };

    u64 unfinished = ~0ull;  // a segment that began with an earlier warp and ends here
    u64 k = list.find(from);
    for (u64 at = from; at < to; ++k) {
        const long_segment one = list.get(k);
        const u64 end = one.leaves_before + leaves_of(one.length);
        const u64 skip = (at - one.leaves_before) * leaf_elements;
        const u64 stop = min(to, end);
        const u64 count = min((stop - one.leaves_before) * leaf_elements, one.length) - skip;
        Body body(a.all);
        body.add(x + one.begin + skip, y + one.begin + skip, count, skip);
        if (skip == 0 && stop == end) {
            finish_segment(a, body, x + one.begin, one.length, one.segment);
        } else {
            body.contribute(slots, owner(one.leaves_before), me);
            if (stop == end) unfinished = k;
        }
        at = stop;
    }
    if (unfinished == ~0ull) return;
    // At the very end, when the others are likely to be done.
    const long_segment one = list.get(unfinished);
    Body body(a.all);
    body.collect(slots, owner(one.leaves_before), me);
    finish_segment(a, body, x + one.begin, one.length, one.segment);
}

}  // namespace crosswarp

#define SEGMENT_KERNEL(blocks) extern "C" __global__ void __launch_bounds__(cw::reduce_threads, blocks)
