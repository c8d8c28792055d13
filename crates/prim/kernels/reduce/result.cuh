// How a sum becomes a result.
#pragma once
#include "superaccumulator.cuh"
#include "reduce/arguments.cuh"

namespace crosswarp {

// Writes result `s`: the low bytes of `bits`.
__device__ inline void put_result(const reduce_arguments& a, u64 s, u64 bits) {
    void* out = reinterpret_cast<char*>(a.out) + s * a.result_bytes;
    if (a.result_bytes == 8) *static_cast<u64*>(out) = bits;
    if (a.result_bytes == 4) *static_cast<u32*>(out) = u32(bits);
    if (a.result_bytes == 2) *static_cast<u16*>(out) = u16(bits);
    if (a.result_bytes == 1) *static_cast<u8*>(out) = u8(bits);
}

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

// The same, and meanwhile the first `a.ahead` bytes of this warp's first part of the inputs, which begins at byte
// `first`, are brought to the second-level cache. No value is read before the wait: that cache is where all
// accesses to device memory meet, so what work before it still writes is seen all the same.
template <bool two, class S> __device__ inline void start_early(const reduce_arguments& a, u64 first) {
#if __CUDA_ARCH__ >= 900
    const u64 bytes = a.n * sizeof(S);
    if (first < bytes && threadIdx.x % 32 == 0) {
        u32 size = u32(min(a.ahead, bytes - first)) & ~15u;
        auto bring = [&](const void* input) {
            // The instruction wants whole 16 bytes.
            u64 from = (reinterpret_cast<u64>(input) + first) & ~15ull;
            asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" : : "l"(from), "r"(size) : "memory");
        };
        if (size) bring(a.x);
        if (two && size) bring(a.y);
    }
#endif
    start_early();
}

__device__ inline u64 element_count(const reduce_arguments& a) {
    if (!a.count) return a.n;
    u64 count = *a.count;
    return count < a.n ? count : a.n;
}

// The result of a sum of no elements: +0, no mean.
__device__ inline u64 empty_result(u64 kind) { return kind == finish_mean ? no_value : 0; }

// The nearest square root. Of an f32 it is also what the root in f64 rounds to: that has more than twice its digits.
__device__ inline float square_root(float x) { return __fsqrt_rn(x); }
__device__ inline double square_root(double x) { return sqrt(x); }

// The result of a sum that is the value of one leaf, of n elements: what `finish` would make of it.
template <class F> __device__ inline u64 leaf_result(typename F::type sum, u64 n, u64 kind) {
    using T = typename F::type;
    if (n == 0) return empty_result(kind);
    if (kind == finish_mean) {
        sum = sum / T(n);
    } else if (kind == finish_norm) {
        sum = square_root(sum);
    }
    return sum != sum ? F::nan : u64(F::to_bits(sum));
}

// The bits of the result of a sum, in lane 0. One whole warp calls.
template <class F> __device__ inline u64 sum_result(const warp_accumulator<F>& sum, u64 n, u64 kind) {
    u64 bits;
    if (kind == finish_norm) {
        if (!special_result<format64>(sum.seen, bits)) bits = round_limbs<format64>(sum.limb, sum.lsb);
        double root = sqrt(__longlong_as_double(bits));
        if (F::precision == 53 && bits == format64::infinity && !(sum.seen & seen_infinity)) {
            // Squares of f64 whose sum is beyond its range; its root is not.
            bits = round_digits<format64>(lane_limbs(sum.limb), sum.lsb - 64);
            root = sqrt(__longlong_as_double(bits)) * 0x1p32;
        }
        typename F::type result = typename F::type(root);
        bits = result != result ? F::nan : u64(F::to_bits(result));
    } else if (!special_result<F>(sum.seen, bits)) {
        bits = kind == finish_value ? round_limbs<F>(sum.limb, sum.lsb)
                                    : round_quotient<F>(lane_limbs(sum.limb), sum.lsb, n);
    }
    return n == 0 ? empty_result(kind) : bits;
}

// Writes the result of a sum. One whole warp calls.
template <class F> __device__ inline void finish(const warp_accumulator<F>& sum, u64 n, const reduce_arguments& a) {
    int lane = warp::lane();
    if (a.finish == finish_words) {
        // As `LeafTotal::to_words` in Rust, not carried: limbs, then what was seen.
#pragma unroll
        for (int i = 0; i < F::per_lane; ++i) {
            int k = F::per_lane * lane + i;
            if (k < F::warp_limbs) a.out[k] = u64(sum.limb[i]);
        }
        if (lane < trackers) a.out[F::warp_limbs + lane] = sum.seen >> lane & 1;
        return;
    }
    const u64 bits = sum_result(sum, n, a.finish);
    if (lane == 0) put_result(a, 0, bits);
}

}  // namespace crosswarp
