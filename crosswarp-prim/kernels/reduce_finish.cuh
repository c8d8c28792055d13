// What every reduction is launched with, and how a sum becomes a result.
#pragma once
#include "reduce_spread.cuh"

namespace crosswarp {

// The same structure in Rust: `cuda::reduce::program::Arguments`.
struct reduce_arguments {
    const void* x;      // first input
    const void* y;      // second input, if the reduction has two
    u64 n;              // elements of each input, at most
    const u64* count;   // if not null, how many there are; read when the kernel runs
    u64* state;         // the workspace: zero, and zero again after the launch
    u64* out;           // the result
    u64 finish;         // what the result is
};

enum finish_kind : u64 {
    finish_words,  // what parts of an array are combined from
    finish_value,  // the result itself: bits, zero-extended; for sums:
    finish_mean,   // the sum divided by the number of elements
    finish_norm,   // the square root of the sum
    finish_index,  // for extrema: where it is
};

// The result where no elements have none.
constexpr u64 no_value = ~0ull;

// With this a launch may begin while the one before in its stream is still running (programmatic
// dependent launch): what comes before `wait` overlaps with it, what comes after sees all of it.
__device__ inline void start_early() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

__device__ inline u64 element_count(const reduce_arguments& a) {
    if (!a.count) return a.n;
    u64 count = *a.count;
    return count < a.n ? count : a.n;
}

// Writes the result of a sum. One whole warp calls.
template <class F> __device__ inline void finish(const spread<F>& sum, u64 n, const reduce_arguments& a) {
    int lane = warp::lane();
    if (a.finish == finish_words) {
        // As `Superaccumulator::to_words`, not carried: limbs, then what was seen.
#pragma unroll
        for (int i = 0; i < F::per_lane; ++i) {
            int k = F::per_lane * lane + i;
            if (k < F::limbs) a.out[k] = u64(sum.limb[i]);
        }
        if (lane < 4) a.out[F::limbs + lane] = sum.seen >> lane & 1;
        return;
    }
    u64 bits;
    if (a.finish == finish_norm) {
        if (!special_result<format64>(sum.seen, bits)) bits = round_limbs<format64>(sum.limb, F::min_lsb);
        // + 0.0 turns the −0.0 of no elements into the norm's +0.0.
        double root = sqrt(__longlong_as_double(bits) + 0.0);
        typename F::type result = typename F::type(root);
        bits = result != result ? F::nan : u64(F::to_bits(result));
    } else if (!special_result<F>(sum.seen, bits)) {
        bits = a.finish == finish_mean ? round_quotient<F>(sum.limb, F::min_lsb, n)
                                       : round_limbs<F>(sum.limb, F::min_lsb);
    }
    if (a.finish == finish_mean && n == 0) bits = no_value;
    if (lane == 0) *a.out = bits;
}

}  // namespace crosswarp
