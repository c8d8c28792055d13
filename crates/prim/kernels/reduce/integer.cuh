// Sums of integers, exactly: what a thread adds up, and how a warp's total becomes a result.
//
// A thread adds its terms in 64 bits where they fit, else in 192; threads, warps and blocks then add limbs of
// 32 bits, as sums of floats do.
#pragma once
#include "reduce/block_combine.cuh"
#include "reduce/result.cuh"
#include "reduce/vector_load.cuh"

namespace crosswarp {

// A number of 192 bits in two's complement as a sum like that of floats: limbs of 32 bits.
struct format192 {
    using type = u32;  // none is added as a value
    static constexpr int per_lane = 1;
    static constexpr int limbs = 6;
    static constexpr int warp_limbs = limbs;
    static constexpr int warp_below = 0;
    static constexpr int min_lsb = 0;
};

struct total192 {
    u64 word[3] = {};

    __device__ void add(u64 low, u64 middle, u64 high) {
        word[0] += low;
        u64 carry = word[0] < low;
        u64 sum = middle + carry;
        carry = sum < carry;
        word[1] += sum;
        carry += word[1] < sum;
        word[2] += high + carry;
    }
};

// Adds 16 bytes of elements one by one.
template <class Sum, class S> __device__ inline void add_each(Sum& sum, const S* x, const S* y) {
#pragma unroll
    for (int i = 0; i < int(16 / sizeof(S)); ++i) sum.add(x[i], y[i]);
}

// a + the sum of four products of bytes.
template <bool has_sign> __device__ inline i64 add_bytes(i64 a, u32 x, u32 y) {
    int sum;
    if (has_sign) {
        asm("dp4a.s32.s32 %0, %1, %2, 0;" : "=r"(sum) : "r"(x), "r"(y));
    } else {
        asm("dp4a.u32.u32 %0, %1, %2, 0;" : "=r"(sum) : "r"(x), "r"(y));
    }
    return a + sum;
}

// What a thread adds up, for each kind of term.
template <class E, class Term> struct integer_sum;

// Values of up to 32 bits, and halves of longer ones, fit 2^31 times in 64 bits, and a thread has fewer; their squares too,
// half by half.
template <class E> struct integer_sum<E, value_term> {
    using S = typename E::storage;
    // Whether the sum over a block fits in 63 bits: it has fewer than 2^30 values.
    static constexpr bool narrow = sizeof(S) < 8;
    i64 sum = 0;
    u64 low = 0, high = 0;

    __device__ void add(S x, S) {
        if (narrow) {
            sum += i64(x);
        } else {
            low += u32(x);
            high += E::has_sign ? u64(i64(x) >> 32) : u64(x) >> 32;
        }
    }
    __device__ void add_vector(const S* x, const S* y) {
        if (sizeof(S) > 1) {
            add_each(*this, x, y);
            return;
        }
        u32 word[4];
        memcpy(word, x, 16);
        i64 part = 0;
#pragma unroll
        for (int i = 0; i < 4; ++i) part = add_bytes<E::has_sign>(part, word[i], 0x01010101);
        sum += part;
    }
    __device__ total192 total() const {
        total192 t;
        if (narrow) {
            const u64 sign = sum < 0 ? ~0ull : 0;
            t.add(u64(sum), sign, sign);
        } else {
            const u64 sign = E::has_sign && i64(high) < 0 ? ~0ull : 0;
            t.add(low, 0, 0);
            t.add(high << 32, high >> 32 | sign << 32, sign);
        }
        return t;
    }
};
template <class E> struct integer_sum<E, square_term> {
    using S = typename E::storage;
    static constexpr bool narrow = false;
    u64 low = 0, high = 0;
    total192 wide;

    __device__ void add(S x, S) {
        u64 magnitude = E::has_sign && i64(x) < 0 ? -u64(i64(x)) : u64(x);
        if (sizeof(S) <= 2) {
            low += magnitude * magnitude;
        } else if (sizeof(S) == 4) {
            u64 square = magnitude * magnitude;
            low += u32(square);
            high += square >> 32;
        } else {
            wide.add(magnitude * magnitude, __umul64hi(magnitude, magnitude), 0);
        }
    }
    __device__ void add_vector(const S* x, const S* y) {
        if (sizeof(S) > 1) {
            add_each(*this, x, y);
            return;
        }
        u32 word[4];
        memcpy(word, x, 16);
        i64 part = 0;
#pragma unroll
        for (int i = 0; i < 4; ++i) part = add_bytes<E::has_sign>(part, word[i], word[i]);
        low += u64(part);
    }
    __device__ total192 total() const {
        total192 t = wide;
        t.add(low, 0, 0);
        t.add(high << 32, high >> 32, 0);
        return t;
    }
};
// Modulo 2^64.
template <class E> struct integer_sum<E, product_term> {
    using S = typename E::storage;
    static constexpr bool narrow = false;
    u64 sum = 0;

    __device__ void add(S x, S y) { sum += u64(i64(x)) * u64(i64(y)); }
    __device__ void add_vector(const S* x, const S* y) { add_each(*this, x, y); }
    __device__ total192 total() const {
        total192 t;
        t.word[0] = sum;
        return t;
    }
};

// The sum of one number per lane, if it fits in 63 bits: three parts of 27, 27 and 10 bits, of which 32 fit in
// 32 bits.
__device__ inline i64 warp_sum_narrow(i64 x) {
    u32 low = warp_sum(u32(x) & 0x7ffffff), middle = warp_sum(u32(x >> 27) & 0x7ffffff);
    int high = int(warp_sum(u32(x >> 54)));
    return (i64(high) << 54) + (i64(middle) << 27) + low;
}

// Adds one number, the same in every lane.
__device__ inline void add_narrow(warp_accumulator<format192>& total, i64 x) {
    int lane = warp::lane();
    total.limb[0] += lane == 0 ? i64(u32(x)) : lane == 1 ? x >> 32 : 0;
}

// Adds one number per lane.
__device__ inline void add_wide(warp_accumulator<format192>& total, const total192& t) {
    // Limbs 0 to 4 are parts of 32 bits, the last one has the sign.
    constexpr int limbs = format192::limbs;
    i64 limb[limbs];
#pragma unroll
    for (int i = 0; i < limbs; ++i) {
        u32 part = u32(t.word[i / 2] >> 32 * (i % 2));
        limb[i] = i == limbs - 1 ? i64(int(part)) : i64(part);
    }
    // Sums of 32 such limbs fit in two sums of 32 bits; a warp adds up 16 bits at a time.
#pragma unroll
    for (int i = 0; i < limbs; ++i) {
        u32 low = warp_sum(u32(limb[i]) & 0xffff);
        int high = int(warp_sum(u32(int(limb[i] >> 16))));
        if (int(warp::lane()) == i) total.limb[0] += (i64(high) << 16) + low;
    }
}

// Adds what every thread of the warp has.
template <class Sum> __device__ inline void add_threads(warp_accumulator<format192>& total, const Sum& mine) {
    if (Sum::narrow) {
        add_narrow(total, warp_sum_narrow(i64(mine.total().word[0])));
    } else {
        add_wide(total, mine.total());
    }
}

// The bits of the result of a sum of n integers; `word`: the sum itself, unless it is a mean or a norm. One whole warp
// calls.
__device__ inline u64 integer_result(const warp_accumulator<format192>& total, u64 n, u64 kind, u64 (&word)[3]) {
    if (kind == finish_mean) return n ? round_quotient<format64>(lane_limbs(total.limb), 0, n) : no_value;
    if (kind == finish_norm) {
        return __double_as_longlong(sqrt(__longlong_as_double(round_limbs<format64>(total.limb, 0))));
    }
    // Carried by every lane for itself.
    i64 carry = 0;
    word[0] = word[1] = word[2] = 0;
#pragma unroll
    for (int i = 0; i < format192::limbs; ++i) {
        carry += __shfl_sync(0xffffffffu, total.limb[0], i);
        word[i / 2] |= u64(u32(carry)) << 32 * (i % 2);
        carry >>= 32;
    }
    return word[0];
}

// Writes the result of a sum of n elements. One whole warp calls.
__device__ inline void finish_integer(const warp_accumulator<format192>& total, u64 n, const reduce_arguments& a) {
    int lane = warp::lane();
    u64 word[3];
    const u64 bits = integer_result(total, n, a.finish, word);
    if (a.finish == finish_words && lane < 3) a.out[lane] = lane == 0 ? word[0] : lane == 1 ? word[1] : word[2];
    if (a.finish != finish_words && lane == 0) put_result(a, 0, bits);
}

}  // namespace crosswarp
