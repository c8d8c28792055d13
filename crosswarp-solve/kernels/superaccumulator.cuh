// Exact sums on the device: the words of `crosswarp_prim::Superaccumulator`, to which leaf sums are
// added as integers, in any order. 32 value bits per 64-bit limb, so a few billion additions need no
// carry; the host carries and rounds.
#pragma once
#include "base.cuh"

namespace crosswarp {

template <class F> struct float_format;
template <> struct float_format<float> {
    using bits = u32;
    static constexpr int field_bits = 23, exponent_mask = 0xff, words = 14, span = 2;
};
template <> struct float_format<double> {
    using bits = u64;
    static constexpr int field_bits = 52, exponent_mask = 0x7ff, words = 71, span = 3;
};

// Words behind the limbs: values other than −0, NaNs, +∞, −∞. The first is left to the host: the sign of
// a zero sum does not matter to a norm.
constexpr int trackers = 4;

// Calls `add(index, amount)` for every word that changes when the leaf sum `value` is added. Leaf sums are
// sums of squares: never negative, but perhaps infinite or NaN.
template <class F, class Add> __device__ inline void accumulate(F value, Add add) {
    using format = float_format<F>;
    constexpr int limbs = format::words - trackers;
    typename format::bits bits;
    memcpy(&bits, &value, sizeof(F));
    int exponent = (int)(bits >> format::field_bits) & format::exponent_mask;
    if (exponent == format::exponent_mask) {
        add(limbs + (value != value ? 1 : 2), 1ull);
        return;
    }
    u64 hidden = exponent != 0;
    u64 significand = (bits & (((u64)1 << format::field_bits) - 1)) | hidden << format::field_bits;
    if (significand == 0) return;
    // Subnormals share the last bit of the smallest normals.
    u32 position = exponent - (u32)hidden, limb = position / 32, shift = position % 32;
    u64 low = significand << shift;
    add(limb, low & 0xffffffffull);
    add(limb + 1, format::span == 2 ? low >> 32 : (low >> 32 & 0xffffffffull));
    if (format::span == 3 && shift != 0) add(limb + 2, significand >> (64 - shift));
}

}  // namespace crosswarp
