// The superaccumulator: the exact sum of floating-point values, in memory and over the lanes of a warp, and the
// rounding of it. `exact_sum.cuh` makes sums of every level of it; here is what the reductions and the solver share.
//
// A sum of any number of values is one long fixed-point integer (Kulisch's long accumulator; carry-save limbs as in
// Neal, "Fast exact summation using small and large superaccumulators", 2015). Limb k counts units of
// 2^(32k + the format's least exponent), as `crosswarp_prim::Superaccumulator` has it. Limbs of 32 value bits lie in
// 64-bit words, so that words add as integers, in any order, and need no carry for billions of additions. Carries
// over the lanes of a warp are looked ahead with one integer addition of ballots.
//
// | part | who calls | where the result is valid | memory ordering | cost |
// | `chunks_of` | a thread | in the thread | none | some 20 instructions |
// | `accumulate` | a thread | where `add` puts it | that of `add` | up to 3 additions to memory |
// | `warp_accumulator` | every lane of a whole warp | lane l holds limbs PER·l … PER·l + PER − 1 | none: shuffles | a |
// |   |   |   |   | dozen instructions for one value (f64: some 30), 20 times that for one of every lane; no memory |
// | `round_limbs` and the like | every lane of a whole warp | in every lane | none | some 60 instructions if at most |
// |   |   |   |   | four neighbouring limbs are not 0, else a call of some 300 |
//
// Values given to a `warp_accumulator` are the same in every lane unless said otherwise.
#pragma once
#include "sum_layout.cuh"
#include "warp.cuh"

namespace crosswarp {

// What sums need to know of a binary format.
template <class T> struct float_format;
template <> struct float_format<float> {
    using type = float;
    using bits = u32;
    static constexpr int precision = 24;
    static constexpr int min_lsb = -149;  // exponent of a subnormal's last bit
    static constexpr int limbs = limbs_f32;
    static constexpr int words = limbs + trackers;
    // Of a `warp_accumulator`: limbs that a lane holds, all limbs, and how many of these lie below the format's own.
    // Sums of squares of this format's numbers, computed in f64, are multiples of 2^-298 and below 2^267.
    static constexpr int per_lane = 1;
    static constexpr int warp_limbs = limbs_wide;
    static constexpr int warp_below = limbs_below;
    static constexpr u64 infinity = 0x7f800000;
    static constexpr u64 nan = 0x7fc00000;
    static constexpr u64 neg_zero = 0x80000000;
    static __device__ bits to_bits(float value) { return __float_as_uint(value); }
    static __device__ float from_bits(u64 bits) { return __uint_as_float(u32(bits)); }
};
template <> struct float_format<double> {
    using type = double;
    using bits = u64;
    static constexpr int precision = 53;
    static constexpr int min_lsb = -1074;
    static constexpr int limbs = limbs_f64;
    static constexpr int words = limbs + trackers;
    static constexpr int per_lane = 3;
    static constexpr int warp_limbs = limbs;
    static constexpr int warp_below = 0;
    static constexpr u64 infinity = 0x7ff0000000000000;
    static constexpr u64 nan = 0x7ff8000000000000;
    static constexpr u64 neg_zero = 0x8000000000000000;
    static __device__ bits to_bits(double value) { return __double_as_longlong(value); }
    static __device__ double from_bits(u64 bits) { return __longlong_as_double(bits); }
};

using format32 = float_format<float>;
using format64 = float_format<double>;

// What was seen beside the finite values.
enum seen : u32 { seen_not_neg_zero = 1, seen_nan = 2, seen_infinity = 4, seen_neg_infinity = 8 };

// A value as what it adds: three chunks of 32 bits from limb `limb` upwards, with a sign.
struct chunks {
    u32 chunk[3];
    int limb;
    bool negative;
    u32 seen;
};

// With limb 0 as that of 2^(min_lsb − `raised`). What lies below it is left out.
template <class F, int raised = 0> __device__ inline chunks chunks_of(typename F::type value) {
    using bits_t = typename F::bits;
    constexpr int field = F::precision - 1;
    bits_t bits = F::to_bits(value);
    u32 exponent = u32(bits >> field) & u32(F::infinity >> field);
    bits_t fraction = bits & ((bits_t(1) << field) - 1);
    bool special = exponent == u32(F::infinity >> field);
    chunks c;
    c.negative = bits >> (8 * sizeof(bits_t) - 1);
    c.seen = bits != bits_t(F::neg_zero) ? seen_not_neg_zero : 0;
    if (special) {
        c.seen |= fraction ? seen_nan : c.negative ? seen_neg_infinity : seen_infinity;
    }
    // Subnormals share the last bit of the smallest normals.
    u32 hidden = exponent != 0;
    u64 significand = special ? 0 : u64(fraction) | u64(hidden) << field;
    const int position = int(exponent - hidden) + raised;
    const u32 shift = position & 31;
    c.limb = position >> 5;
    u64 low = significand << shift;
    c.chunk[0] = u32(low);
    c.chunk[1] = u32(low >> 32);
    c.chunk[2] = F::precision > 32 ? u32((significand >> 1) >> (63 - shift)) : 0;
    return c;
}

// Calls `add(index, amount)` for every word that changes when `value` is added to a superaccumulator in memory: the sum
// of squares of a leaf, so never negative, but perhaps infinite or NaN. The first tracker is left to the host: the sign
// of a zero sum does not matter to a norm.
template <class T, class Add> __device__ inline void accumulate(T value, Add add) {
    using F = float_format<T>;
    constexpr int field = F::precision - 1, special = int(F::infinity >> field);
    const typename F::bits bits = F::to_bits(value);
    const int exponent = int(bits >> field) & special;
    if (exponent == special) {
        add(F::limbs + (value != value ? 1 : 2), 1ull);
        return;
    }
    // As in `chunks_of`, without a sign and without what special values are made of: in the solver's kernels, which
    // call it per leaf, 7 to 9 instructions fewer.
    const u64 hidden = exponent != 0;
    const u64 significand = (bits & ((1ull << field) - 1)) | hidden << field;
    if (significand == 0) return;
    const u32 position = exponent - u32(hidden), limb = position / 32, shift = position % 32;
    const u64 low = significand << shift;
    add(limb, low & 0xffffffffull);
    add(limb + 1, F::precision > 32 ? (low >> 32 & 0xffffffffull) : low >> 32);
    if (F::precision > 32 && shift != 0) add(limb + 2, significand >> (64 - shift));
}

// Sum, least and greatest of one number per lane.
#if __CUDA_ARCH__ >= 800
__device__ inline u32 warp_sum(u32 x) { return __reduce_add_sync(0xffffffffu, x); }
__device__ inline int warp_min(int x) { return __reduce_min_sync(0xffffffffu, x); }
__device__ inline int warp_max(int x) { return __reduce_max_sync(0xffffffffu, x); }
#else
__device__ inline u32 warp_sum(u32 x) { return warp().sum(x); }
__device__ inline int warp_min(int x) { return warp().min(x); }
__device__ inline int warp_max(int x) { return warp().max(x); }
#endif

// Shifts as the hardware has them: by the width or more they give 0, and so by a negative number, as the largest.
__device__ inline u32 shifted_left(u32 x, int by) { return __funnelshift_lc(0, x, by); }
__device__ inline u32 shifted_right(u32 x, int by) { return __funnelshift_rc(x, 0, by); }
__device__ inline u32 shifted_right(u64 x, int by) {
    u64 y;
    asm("shr.u64 %0, %1, %2;" : "=l"(y) : "l"(x), "r"(by));
    return u32(y);
}

template <class F> struct warp_accumulator {
    static constexpr int per = F::per_lane;
    static constexpr int lsb = F::min_lsb - 32 * F::warp_below;  // exponent of the first limb's last bit
    i64 limb[per];
    u32 seen;  // bits of `seen`, the same in every lane

    __device__ warp_accumulator() : seen(0) {
#pragma unroll
        for (int i = 0; i < per; ++i) limb[i] = 0;
    }

    // Adds one finite value, without a branch. A limb holds 2^29 of them before it has to be carried.
    __device__ void add_finite(typename F::type value) {
        constexpr int field = F::precision - 1;
        const typename F::bits bits = F::to_bits(value);
        seen |= bits != typename F::bits(F::neg_zero) ? seen_not_neg_zero : 0;
        const int exponent = int(bits >> field) & int(F::infinity >> field);
        const auto hidden = typename F::bits(exponent ? 1 : 0) << field;
        const auto significand = (bits & ((typename F::bits(1) << field) - 1)) | hidden;
        // How far the significand goes up from the last bit of a limb. The shifts give 0 where it does not meet it.
        int up = max(exponent, 1) - 1 + 32 * (F::warp_below - per * int(warp::lane()));
#pragma unroll
        for (int i = 0; i < per; ++i, up -= 32) {
            const i64 part = shifted_left(u32(significand), up) | shifted_right(significand, -up);
            limb[i] += bits >> (8 * sizeof(bits) - 1) ? -part : part;
        }
    }

    // Adds another sum.
    __device__ void merge(const warp_accumulator& other) {
#pragma unroll
        for (int i = 0; i < per; ++i) limb[i] += other.limb[i];
        seen |= other.seen;
    }

    // Adds an f64 that is a multiple of 2^lsb and below 2^300: a leaf of this format that was computed in f64.
    __device__ void add_wide(double value) {
        chunks c = chunks_of<format64, format64::min_lsb - lsb>(value);
        seen |= c.seen;
        add_chunks(c.chunk, c.limb, c.negative);
    }

    // Adds one value of each of the first `lanes` lanes. The conversions go on side by side.
    __device__ void add_lanes(typename F::type value, int lanes) {
        constexpr u32 all = 0xffffffffu;
        chunks c = chunks_of<F>(value);
        u32 place_and_sign = u32(c.limb + F::warp_below) << 1 | c.negative;
#pragma unroll 8
        for (int from = 0; from < lanes; ++from) {
            u32 packed = __shfl_sync(all, place_and_sign, from);
            u32 chunk[3];
#pragma unroll
            for (int i = 0; i < 3; ++i) chunk[i] = __shfl_sync(all, c.chunk[i], from);
            add_chunks(chunk, packed >> 1, packed & 1);
        }
        bool there = int(warp::lane()) < lanes;
#pragma unroll
        for (u32 bit = seen_not_neg_zero; bit <= seen_neg_infinity; bit *= 2) {
            if (__any_sync(all, there && c.seen & bit)) seen |= bit;
        }
    }

    // Carries once: limbs of any size end up below 2^33 in magnitude. The top one keeps the sign.
    __device__ void carry() {
        i64 high[per];
#pragma unroll
        for (int i = 0; i < per; ++i) {
            const bool top = per * int(warp::lane()) + i >= F::warp_limbs - 1;
            high[i] = top ? 0 : limb[i] >> 32;
            limb[i] = top ? limb[i] : u32(limb[i]);
        }
        i64 below = __shfl_up_sync(0xffffffffu, high[per - 1], 1);
        limb[0] += warp::lane() == 0 ? 0 : below;
#pragma unroll
        for (int i = 1; i < per; ++i) limb[i] += high[i - 1];
    }

  private:
    __device__ void add_chunks(const u32 (&chunk)[3], int at, bool negative) {
#pragma unroll
        for (int i = 0; i < per; ++i) {
            int place = per * int(warp::lane()) + i - at;
            u32 part = place == 0 ? chunk[0] : place == 1 ? chunk[1] : place == 2 ? chunk[2] : 0;
            limb[i] += negative ? -i64(part) : i64(part);
        }
    }
};

// The digits of a warp accumulator: the magnitude in base 2^32, `per` digits a lane, and the sign.
template <int per> struct warp_digits {
    u32 digit[per];
    bool negative;

    // From carry-save limbs below 2^61 in magnitude, as one number in two's complement over all lanes.
    explicit __device__ warp_digits(const i64 (&limb)[per]) {
        constexpr u32 all = 0xffffffffu;
        bool first = warp::lane() == 0;
        // What is added to each limb is taken from the next, so that no limb is negative and all
        // carries go upwards; what leaves the top is a multiple of the whole range.
        u64 carry = 0;
#pragma unroll
        for (int i = 0; i < per; ++i) {
            u64 bias = (1ull << 62) - (first && i == 0 ? 0 : 1ull << 30);
            u64 sum = u64(limb[i]) + bias + carry;
            digit[i] = u32(sum);
            carry = sum >> 32;
        }
        carry = __shfl_up_sync(all, carry, 1);
        if (first) carry = 0;
        bool out = ripple(carry);
        // Now a lane passes on 0 or 1: carry look-ahead, with the adder of the integer unit.
        u32 generate = __ballot_sync(all, out);
        u32 propagate = __ballot_sync(all, every(all));
        u32 in = ((generate << 1) + propagate) ^ propagate;
        ripple(in >> warp::lane() & 1);

        negative = __ballot_sync(all, digit[per - 1] >> 31) >> 31;
        if (negative) {
#pragma unroll
            for (int i = 0; i < per; ++i) digit[i] = ~digit[i];
            propagate = __ballot_sync(all, every(all));
            in = (propagate + 1) ^ propagate;
            ripple(in >> warp::lane() & 1);
        }
    }

    // Index of the highest digit that is not 0; −1 if all are.
    __device__ int top() const {
        int mine = -1;
#pragma unroll
        for (int i = 0; i < per; ++i) mine = digit[i] ? i : mine;
        u32 lanes = __ballot_sync(0xffffffffu, mine >= 0);
        if (lanes == 0) return -1;
        int from = 31 - __clz(lanes);
        return per * from + __shfl_sync(0xffffffffu, mine, from);
    }

    // Digit k, in every lane; 0 for k < 0.
    __device__ u32 get(int k) const {
        int from = k < 0 ? 0 : k / per;
        u32 mine = digit[0];
        // Read, then chosen: a choice of addresses would keep the digits out of registers.
#pragma unroll
        for (int i = 1; i < per; ++i) {
            const u32 own = digit[i];
            mine = k - per * from == i ? own : mine;
        }
        u32 value = __shfl_sync(0xffffffffu, mine, from);
        return k < 0 ? 0 : value;
    }

    // Whether any digit below number `k` is not 0.
    __device__ bool any_below(int k) const {
        bool mine = false;
#pragma unroll
        for (int i = 0; i < per; ++i) mine |= per * int(warp::lane()) + i < k && digit[i];
        return __any_sync(0xffffffffu, mine);
    }

  private:
    __device__ bool every(u32 value) const {
        bool same = true;
#pragma unroll
        for (int i = 0; i < per; ++i) same &= digit[i] == value;
        return same;
    }
    // Adds `carry` to the lane's digits; whether they overflow.
    __device__ bool ripple(u64 carry) {
#pragma unroll
        for (int i = 0; i < per; ++i) {
            u64 sum = digit[i] + carry;
            digit[i] = u32(sum);
            carry = sum >> 32;
        }
        return carry;
    }
};

// The nearest, to even in the middle.
__device__ inline void convert(float& to, u64 from) { to = __ull2float_rn(from); }
__device__ inline void convert(double& to, u64 from) { to = __ull2double_rn(from); }

// Rounds ±(`bits`, whose highest bit is set and has the exponent `exponent`, + something below its last
// bit if `sticky`) to format G, to nearest even. The bits of the result.
template <class G>
__device__ inline u64 round_bits(bool negative, u64 bits, bool sticky, int exponent) {
    constexpr int precision = G::precision;
    constexpr int bias = 2 - precision - G::min_lsb;
    if (exponent >= 1 - bias && exponent <= bias) {
        // A normal number, or infinity: the hardware's conversion rounds, which is a third of the
        // instructions. Its result has the exponent 63, or 64.
        typename G::type rounded;
        convert(rounded, bits | sticky);
        return (negative ? G::neg_zero : 0) | (u64(G::to_bits(rounded)) + (i64(exponent - 63) << (precision - 1)));
    }
    // Exponent of the result's last bit, and how many bits it keeps.
    int last = exponent - (precision - 1);
    if (last < G::min_lsb) last = G::min_lsb;
    int keep = exponent - last + 1;
    u64 significand = 0, rest = 0;  // `rest`: what is cut off, its highest bit worth one half
    if (keep > 0) {
        significand = bits >> (64 - keep);
        rest = bits << keep;
    } else if (keep == 0) {
        rest = bits;
    }
    significand += rest >> 63 && (sticky || rest << 1 || significand & 1);
    // The hidden bit carries into the exponent's field by itself.
    u64 magnitude = (u64(last - G::min_lsb) << (precision - 1)) + significand;
    if (magnitude > G::infinity) magnitude = G::infinity;
    return (negative ? G::neg_zero : 0) | magnitude;
}

// The same for the 96-bit number h2:h1:h0, whose top digit is not 0 and whose last bit has the exponent
// `lsb`.
template <class G>
__device__ inline u64 round_top(bool negative, u32 h2, u32 h1, u32 h0, bool sticky, int lsb) {
    int zeros = __clz(h2);
    u64 top = u64(h2) << 32 | h1;
    u64 bits = zeros ? top << zeros | h0 >> (32 - zeros) : top;
    return round_bits<G>(negative, bits, sticky || h0 << zeros, lsb + 95 - zeros);
}

// The result for values that are not finite, or for nothing but −0.0.
template <class G> __device__ inline bool special_result(u32 seen, u64& bits) {
    if (seen == seen_not_neg_zero) return false;
    bool positive = seen & seen_infinity, negative = seen & seen_neg_infinity;
    if (seen & seen_nan || (positive && negative)) {
        bits = G::nan;
    } else if (positive) {
        bits = G::infinity;
    } else if (negative) {
        bits = G::infinity | G::neg_zero;
    } else {
        bits = G::neg_zero;
    }
    return true;
}

// A lane's limbs by value: the address of an array would keep the sum it belongs to out of registers.
template <int per> struct lane_limbs {
    i64 limb[per];
    explicit __device__ lane_limbs(const i64 (&of)[per]) {
#pragma unroll
        for (int i = 0; i < per; ++i) limb[i] = of[i];
    }
};

// The sum of carry-save limbs, the last bit of which has the exponent `lsb`, rounded to format G; +0 if
// it is 0. The bits, in every lane.
template <class G, int per> __device__ __noinline__ u64 round_digits(lane_limbs<per> sum, int lsb) {
    const warp_digits<per> digits(sum.limb);
    int top = digits.top();
    if (top < 0) return 0;
    u32 h2 = digits.get(top), h1 = digits.get(top - 1), h0 = digits.get(top - 2);
    bool sticky = digits.any_below(top - 2);
    return round_top<G>(digits.negative, h2, h1, h0, sticky, lsb + 32 * (top - 2));
}

// Rounds hi:lo, a number of 128 bits in two's complement, the upper half of which counts units of 2^`unit`, if the
// upper half has bits enough and the result is a normal number: by the hardware's conversion, of a number whose
// last bit stands for all that is cut off.
__device__ inline bool round_short(format32, i64 hi, u64 lo, int unit, u64& bits) {
    constexpr i64 enough = 1 << 26;
    u32 rounded = __float_as_uint(__ll2float_rn(hi | (lo != 0)));
    int exponent = int(rounded >> 23 & 255) + unit;
    bits = u32(rounded + (unit << 23));
    return (hi >= enough || hi <= -enough) && exponent >= 1 && exponent < 255;
}
__device__ inline bool round_short(format64, i64 hi, u64 lo, int unit, u64& bits) {
    const bool negative = hi < 0;
    if (negative) {
        lo = -lo;
        hi = ~hi + (lo == 0);
    }
    const int zeros = __clzll(hi);
    u64 leading = u64(hi) << zeros | lo >> 1 >> (63 - zeros);
    u64 rounded = __double_as_longlong(__ull2double_rn(leading | (lo << zeros != 0)));
    unit -= zeros;
    int exponent = int(rounded >> 52) + unit;
    bits = (negative ? format64::neg_zero : 0) | (rounded + (i64(unit) << 52));
    return hi != 0 && exponent >= 1 && exponent < 2047;
}

// The sum of carry-save limbs below 2^52 in magnitude, rounded likewise: the short way if at most four
// neighbouring limbs are not 0, as with values of similar size; else digit by digit.
template <class G, int per> __device__ inline u64 round_limbs(const i64 (&limb)[per], int lsb) {
    int bottom = 1 << 20, top = -1;
#pragma unroll
    for (int i = 0; i < per; ++i) {
        u32 lanes = __ballot_sync(0xffffffffu, limb[i] != 0);
        int lowest = per * (__ffs(lanes) - 1) + i, highest = per * (31 - __clz(lanes)) + i;
        bottom = lanes ? min(bottom, lowest) : bottom;
        top = lanes ? max(top, highest) : top;
    }
    if (top < 0) return 0;
    if (top - bottom <= 3) {
        i64 x[4];
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            // Below the first limb there are none.
            int k = top - 3 + j, from = k < 0 ? 0 : k / per;
            i64 mine = limb[0];
            // As in `get`.
#pragma unroll
            for (int i = 1; i < per; ++i) {
                const i64 own = limb[i];
                mine = k - per * from == i ? own : mine;
            }
            i64 value = __shfl_sync(0xffffffffu, mine, from);
            x[j] = k < 0 ? 0 : value;
        }
        x[1] += x[0] >> 32;
        x[2] += x[1] >> 32;
        // hi:lo is either limbs 3:2:1:0, or, if limb 3 has grown, with 3 as the lowest of hi and 0 as what is cut off.
        constexpr i64 large = 1 << 30;
        const bool grown = x[3] >= large || x[3] <= -large;
        i64 hi = grown ? x[3] + (x[2] >> 32) : (x[3] << 32) + x[2];
        u64 lo = grown ? u64(x[2]) << 32 | u32(x[1]) | (u32(x[0]) != 0) : u64(x[1]) << 32 | u32(x[0]);
        u64 bits;
        if (round_short(G(), hi, lo, lsb + 32 * (top - 1 + grown), bits)) return bits;
    }
    return round_digits<G>(lane_limbs(limb), lsb);
}

// The sum divided by `count`, likewise.
template <class G, int per> __device__ __noinline__ u64 round_quotient(lane_limbs<per> sum, int lsb, u64 count) {
    const warp_digits<per> digits(sum.limb);
    int top = digits.top();
    if (top < 0) return 0;
    // Of a quotient by up to 64 bits, six digits give 97 bits or more.
    constexpr int n = 6;
    u32 digit[n] = {};
    // By indices known to the compiler, so that the digits stay in registers.
    auto shift_in = [&](u32 next) {
#pragma unroll
        for (int i = 0; i < n - 1; ++i) digit[i] = digit[i + 1];
        digit[n - 1] = next;
    };
    bool sticky = digits.any_below(top - (n - 1));
    u64 rest = 0;
#pragma unroll 1
    for (int i = 0; i < n; ++i) {
        u32 next = digits.get(top - i);
        u32 quotient = 0;
        if (count >> 32 == 0) {
            u64 dividend = rest << 32 | next;
            quotient = u32(dividend / count);
            rest = dividend - u64(quotient) * count;
        } else {
            // Bit by bit; counts this large come with seconds of reading.
            for (int bit = 31; bit >= 0; --bit) {
                bool over = rest >> 63;
                rest = rest << 1 | (next >> bit & 1);
                bool fits = over || rest >= count;
                if (fits) rest -= count;
                quotient = quotient << 1 | fits;
            }
        }
        shift_in(quotient);
    }
    sticky |= rest != 0;
    // The quotient's first three digits from the highest that is not 0.
    int skip = 0;
#pragma unroll
    for (int i = 0; i < n - 3; ++i) {
        if (digit[0]) continue;
        shift_in(0);
        ++skip;
    }
#pragma unroll
    for (int i = 3; i < n; ++i) sticky |= digit[i] != 0;
    return round_top<G>(digits.negative, digit[0], digit[1], digit[2], sticky, lsb + 32 * (top - skip - 2));
}

}  // namespace crosswarp
