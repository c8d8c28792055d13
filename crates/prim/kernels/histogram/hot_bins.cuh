// Counting in runs of tiles, with a side table for the bins that are hot just now.
//
// Adding to one word from many lanes of a warp takes one turn per lane (only adding the constant 1 to a
// whole word is merged by the hardware). Where samples repeat, in a skewed distribution or in sorted
// data, that is what limits. So each warp counts once a tile how many of its lanes share a word; if many
// do, the block counts its next run of tiles through a table of `slots` whole words, each lent to the
// bin of one of 1024 samples of that run: the more frequent a bin, the surer it has one, and increments
// of the table are merged. Nobody has to know the distribution; a block that sees no repetition goes on
// without the table. (One H200, 2^27 i32 in 65536 bins, 10⁹ samples/s without and with it: all equal 160
// and 510, sorted 178 and 508, half of them equal 233 and 449.)
#pragma once
#include "histogram/arguments.cuh"
#include "histogram/bins.cuh"
#include "histogram/packed_counters.cuh"

namespace crosswarp {
namespace histogram {

// Counters of bin groups begin at multiples of 128 bytes.
extern __shared__ __align__(128) uint4 dynamic_shared[];

// With this a launch may begin while the one before in its stream is still running (programmatic
// dependent launch): what comes before `wait` overlaps with it, what comes after sees all of it.
__device__ inline void wait_for_earlier() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
__device__ inline void let_next_begin() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

// Lanes with the same word from which on the table pays.
constexpr int repeated = 5;
// Tiles of a run; 1 for arrays too short to give every worker several runs (blocks that share a tile are one worker).
constexpr u32 long_run = 4;
// Vectors of a thread in a tile, all in flight at once. (Loading the next tile while one is counted gained
// nothing: it is instructions that limit.)
constexpr int in_tile = 4;

// What counts in the end. `sink`:
//     u32 local(u32 bin)            the bin's number here; not below `span` if it is not counted here
//     u32 span
//     u32 word(u32 local)           bins of the same word get in each other's way
//     bool takes_turns(u32 local)   whether it is counted here, and equal ones not merged
//     void add<N>(local, in)        adds 1 to each that is `in`
//     void add_many(local, count)
//     always_hot                    whether the table is always worth its while
template <class Rule, class T, class Sink>
__device__ void count_tiles(const T* samples, u64 n, const Rule& rule, const Sink& sink,
                            hot_table& hot, u32 worker, u32 workers) {
    constexpr int size = vector_of<T>::size;
    constexpr int step = size < 4 ? size : 4;
    const u32 thread = threadIdx.x;
    const u32 hot_bin = shared_address(hot.bin), hot_count = shared_address(hot.count);
    const cut<T> parts(samples, n);
    // Bins that share a slot in one block do not in another.
    const u32 spread = 0x9e3779b1u + (blockIdx.x << 8);

    hot.bin[thread] = dropped;
    hot.count[thread] = 0;
    __syncthreads();

    auto local_of = [&](T sample) {
        return sink.local(rule.bin(static_cast<typename Rule::key>(sample)));
    };
    auto slot_of = [&](u32 local) { return (local * spread >> 22) * 4; };
    auto add_vector = [&](const vector_of<T>& v, bool through_table) {
#pragma unroll
        for (int k = 0; k < size; k += step) {
            u32 local[step];
            bool in[step];
#pragma unroll
            for (int j = 0; j < step; ++j) {
                local[j] = local_of(v.sample[k + j]);
                in[j] = local[j] < sink.span;
            }
            if (through_table) {
#pragma unroll
                for (int j = 0; j < step; ++j) {
                    u32 slot = slot_of(local[j]);
                    bool hit = in[j] && load_shared(hot_bin + slot) == local[j];
                    increment(hot_count + slot, hit);
                    in[j] = in[j] && !hit;
                }
            }
            sink.add(local, in);
        }
    };
    // Whether many lanes of this warp are about to add to the word of its first lane that adds.
    auto repeats = [&](u32 local) {
        bool in = sink.takes_turns(local);
        u32 lanes = __ballot_sync(~0u, in);
        u32 word = sink.word(local);
        u32 first = __shfl_sync(~0u, word, __ffs(lanes) - 1);
        return __popc(__ballot_sync(~0u, in && word == first)) >= repeated;
    };

    constexpr u64 tile = u64(threads) * in_tile;  // vectors
    const u64 tiles = parts.vectors / tile;
    const u32 run = tiles >= u64(workers) * long_run * 4 ? long_run : 1;
    const u64 stride = u64(workers) * run;
    // The bin of one of 1024 samples spread over the run that begins with a tile.
    auto candidate_of = [&](u64 first) {
        u64 i = first * tile + u64(thread) * run * in_tile;
        return i < parts.vectors ? local_of(*parts.vector(i)) : dropped;
    };

    u32 candidate = candidate_of(u64(worker) * run);
    bool through_table = __syncthreads_or(sink.always_hot || repeats(candidate));
    for (u64 first = u64(worker) * run; first < tiles; first += stride) {
        if (through_table) {
            if (sink.takes_turns(candidate)) atomicExch(&hot.bin[slot_of(candidate) / 4], candidate);
            __syncthreads();
        }
        bool seen = sink.always_hot;
        for (u64 t = first; t < min(first + run, tiles); ++t) {
            vector_of<T> v[in_tile];
#pragma unroll
            for (int k = 0; k < in_tile; ++k) {
                v[k] = load_vector(parts.vector(t * tile + k * threads + thread));
            }
            seen |= repeats(local_of(v[0].sample[0]));
            if (through_table) {
#pragma unroll
                for (int k = 0; k < in_tile; ++k) add_vector(v[k], true);
            } else {
#pragma unroll
                for (int k = 0; k < in_tile; ++k) add_vector(v[k], false);
            }
        }
        bool wanted = __syncthreads_or(seen);
        if (wanted) candidate = candidate_of(first + stride);
        if (through_table) {
            // The table is emptied before its slots are lent again.
            u32 count = hot.count[thread];
            if (count) {
                sink.add_many(hot.bin[thread], count);
                hot.count[thread] = 0;
            }
            __syncthreads();
        }
        through_table = wanted;
    }
    // What is left of whole tiles, vector by vector, by the worker whose turn it is; then single samples.
    if (tiles / run % workers == worker) {
#pragma unroll 1
        for (u64 i = tiles * tile + thread; i < parts.vectors; i += threads) {
            add_vector(load_vector(parts.vector(i)), false);
        }
        if (thread < parts.loose()) {
            u32 local[1] = {local_of(parts.loose_sample(thread))};
            bool in[1] = {local[0] < sink.span};
            sink.add(local, in);
        }
    }
}

// The same by a rule that is called where it is long.
template <class Rule, class T, class Sink>
__device__ void count_by(const T* samples, u64 n, const Rule& rule, const Sink& sink, hot_table& hot, u32 worker,
                         u32 workers) {
    if constexpr (Rule::has_tables) {
        const called_rule<Rule> apart{rule};
        count_tiles(samples, n, apart, sink, hot, worker, workers);
    } else {
        count_tiles(samples, n, rule, sink, hot, worker, workers);
    }
}

}  // namespace histogram
}  // namespace crosswarp
