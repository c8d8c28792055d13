// Exact sums at every level: the sum of all values as if without rounding, rounded once to nearest even.
//
//     cw::exact_accumulator<double> total;                           // of a whole warp
//     for (u64 i = first; i < n; i += step)                          // all lanes, as many times
//         total.add(i + lane < n ? x[i + lane] : -0.0);
//     cw::exact_combine(cw::block(), total);                         // now the block's, in every warp of it
//     double sum = total.value();                                    // the same in every thread
//
// or, of one value per thread, `double sum = cw::exact_sum(cw::block(), x)`.
//
// Which sum has which promise:
//
// | sum | same bits for |
// | `sum`, `reduce` of a warp, block, cluster or grid | the same values in the same launch shape, each time |
// | `sum`, `reduce` of PEs | the same values on the same PEs: they are combined in rank order |
// | `exact_sum`, `exact_combine` at each level | the same values: any order, any launch shape, any number of PEs |
//
// So it is for f32 and f64, subnormals and infinities included. A NaN, or infinities of both signs, give the NaN with
// the bits 0x7fc00000 or 0x7ff8000000000000. Values of −0.0 alone give −0.0; any other sum of zero is +0.0. A thread
// without a value passes −0.0, which adds nothing. No partial sum overflows: finite values give an infinity only if
// their exact sum rounds to it.
//
// | level | who calls | combines by | memory ordering |
// | `warp` | every lane of a whole warp | shuffles | none |
// | `block` | every thread, in the same order | integer atomics on 800 bytes of shared memory | as three `sync`s |
// | `cluster` | every thread of every block | the same; each warp reads the blocks' words | as the `sync`s of both |
// | `grid` | every thread of every block | integer atomics on `state` | as two `sync`s of the grid |
// | PEs, see pe/exact_sum.cuh | a scope of every PE of the team | `sum` of the words | as `sum` |
//
// The result is valid in every thread that calls. All warps must be whole: threads of a block are a multiple of 32, or
// the result is undefined. An accumulator is one per warp, in registers (f32: one limb a lane, f64: three).
//
// Cost: `add` takes a whole warp 32 times a dozen (f64: 30) instructions, whatever the values; combining adds up at
// most 100 words. Where an array is cut into leaves of 2048 elements (leaf.cuh), only their values are added exactly,
// which is what the reductions do; but then the bits are those of the leaves. Source of the algorithm:
// superaccumulator.cuh.
#pragma once
#include "cluster.cuh"
#include "grid.cuh"
#include "superaccumulator.cuh"

namespace crosswarp {

// The exact sum of a warp's values, f32 or f64. Every lane of the whole warp calls every function.
template <class T> class exact_accumulator {
    using F = float_format<T>;
    static constexpr int per = F::per_lane;

  public:
    __device__ exact_accumulator() : additions_(0) {}

    // Adds one value of each lane.
    __device__ void add(T value) {
        sum_.add_lanes(value, 32);
        // 32 values change a limb by less than 2^37.
        if (++additions_ == 1u << 20) carry();
    }

    // Adds another sum of this warp's.
    __device__ void merge(exact_accumulator other) {
        other.carry();
        carry();
        sum_.merge(other.sum_);
    }

    // The sum, rounded; in every lane.
    __device__ T value() const {
        warp_accumulator<F> sum = sum_;
        sum.carry();
        return rounded(lane_limbs<per>(sum.limb), sum.seen);
    }

    // What follows is for those who combine sums in memory of their own: `exact_sum_words` words, which add up as
    // integers. The limbs of carried sums are below 2^33 in magnitude, so that 2^29 sums can be added up.
    __device__ void carry() {
        sum_.carry();
        additions_ = 0;
    }

    // Calls `store(index, word)` for this lane's words. Of a carried sum.
    template <class Store> __device__ void to_words(Store store) const {
        const int lane = warp::lane();
#pragma unroll
        for (int i = 0; i < per; ++i) store(per * lane + i, u64(sum_.limb[i]));
        if (lane < trackers) store(first_tracker + lane, u64(sum_.seen >> lane & 1));
    }

    // Takes what `load(index)` gives for this lane's words.
    template <class Load> __device__ void from_words(Load load) {
        const int lane = warp::lane();
#pragma unroll
        for (int i = 0; i < per; ++i) sum_.limb[i] = i64(load(per * lane + i));
        bool seen = lane < trackers && load(first_tracker + (lane < trackers ? lane : 0)) != 0;
        sum_.seen = __ballot_sync(0xffffffffu, seen);
        carry();
    }

  private:
    static constexpr int first_tracker = exact_sum_words - trackers;
    static_assert(32 * per <= first_tracker, "room for every lane's limbs");

    // Once in a module, however often it is used.
    static __device__ __noinline__ T rounded(lane_limbs<per> sum, u32 seen) {
        u64 bits;
        if (!special_result<F>(seen, bits)) bits = round_limbs<F>(sum.limb, warp_accumulator<F>::lsb);
        return F::from_bits(bits);
    }

    warp_accumulator<F> sum_;
    u32 additions_;  // since the last carry
};

// The sums of all warps of the block, in every warp.
template <class T> __device__ inline void exact_combine(const block& b, exact_accumulator<T>& total) {
    __shared__ u64 words[exact_sum_words];
    total.carry();
    for (int i = b.rank(); i < exact_sum_words; i += b.size()) words[i] = 0;
    b.sync();
    total.to_words([](int i, u64 word) {
        if (word) atomicAdd(&words[i], word);
    });
    b.sync();
    total.from_words([](int i) { return words[i]; });
    // The words may be zeroed again only when everyone has read them.
    b.sync();
}

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
// The sums of all warps of the cluster, in every warp.
template <class T> __device__ inline void exact_combine(const cluster& c, exact_accumulator<T>& total) {
    __shared__ u64 of_block[exact_sum_words];
    exact_combine(block(), total);
    if (block().rank() < 32) total.to_words([](int i, u64 word) { of_block[i] = word; });
    c.sync();
    total.from_words([&](int i) {
        u64 word = 0;
        for (int peer = 0; peer < c.size(); ++peer) word += c.get(&of_block[i], peer);
        return word;
    });
    // Nobody may leave, or write again, before everyone has read.
    c.sync();
}
#endif

// The sums of all warps of the grid, in every warp. `state`: `exact_sum_words` words of global memory, zero before the
// first use and zero again afterwards, used by one running grid at a time.
template <class T> __device__ inline void exact_combine(const grid& g, exact_accumulator<T>& total, u64* state) {
    exact_combine(block(), total);
    const bool adds = block().rank() < 32;
    if (adds) {
        total.to_words([=](int i, u64 word) {
            if (word) atomicAdd(state + i, word);
        });
    }
    g.sync();
    const exact_accumulator<T> mine = total;
    total.from_words([=](int i) { return load_volatile(state + i); });
    g.sync();
    // Everyone has read: each block takes back what it added. The next use's first `sync` comes after that, so who
    // reads then sees none of it.
    if (adds) {
        mine.to_words([=](int i, u64 word) {
            if (word) atomicAdd(state + i, 0 - word);
        });
    }
}

// The exact sum of one value per thread of the level, in every thread.
template <class T> __device__ inline T exact_sum(const warp&, T value) {
    exact_accumulator<T> total;
    total.add(value);
    return total.value();
}
template <class T> __device__ inline T exact_sum(const block& b, T value) {
    exact_accumulator<T> total;
    total.add(value);
    exact_combine(b, total);
    return total.value();
}
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
template <class T> __device__ inline T exact_sum(const cluster& c, T value) {
    exact_accumulator<T> total;
    total.add(value);
    exact_combine(c, total);
    return total.value();
}
#endif
template <class T> __device__ inline T exact_sum(const grid& g, T value, u64* state) {
    exact_accumulator<T> total;
    total.add(value);
    exact_combine(g, total, state);
    return total.value();
}

}  // namespace crosswarp
