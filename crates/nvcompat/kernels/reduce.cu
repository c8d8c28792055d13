// Reductions of the element types that crosswarp-cuda's own kernels have not, and the scattered ones of all: compiled for
// one type, which `ELEMENT` names, when a program first asks for it. One block does the work.
#include "pe.cuh"

using cw::i32;
using cw::i64;
using cw::u16;
using cw::u32;
using cw::u64;

// Numbers of 16 bits, combined in single precision and rounded to nearest even, which rounds sums and products of two of
// them correctly: 24 bits are at least twice their 11 or 8 and two more.
struct half {
    u16 bits;
    half() = default;
    __device__ half(float x) { asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x)); }
    __device__ operator float() const {
        float x;
        asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
        return x;
    }
};
struct bfloat16 {
    u16 bits;
    bfloat16() = default;
    __device__ bfloat16(float x) {
        u32 word = __float_as_int(x);
        // A NaN stays one; else half a unit in the last place is added, less one bit where that would round an even
        // number up.
        bits = x != x ? (u16)(word >> 16 | 64) : (u16)((word + 0x7fff + (word >> 16 & 1)) >> 16);
    }
    __device__ operator float() const { return __int_as_float((u32)bits << 16); }
};
using schar = signed char;
using uchar = unsigned char;

template <class T> struct number {
    using type = T;
};
template <> struct number<half> {
    using type = float;
};
template <> struct number<bfloat16> {
    using type = float;
};

struct any_op {
    i32 code;
    template <class T> __device__ T operator()(T x, T y) const {
        using N = typename number<T>::type;
        const N a = x, b = y;
        switch (code) {
            case cw::sum_op::code: return (T)(a + b);
            case cw::prod_op::code: return (T)(a * b);
            case cw::min_op::code: return (T)cw::min_op()(a, b);
            case cw::max_op::code: return (T)cw::max_op()(a, b);
        }
        if constexpr (static_cast<N>(0.5) == 0) {
            switch (code) {
                case cw::and_op::code: return (T)(a & b);
                case cw::or_op::code: return (T)(a | b);
                case cw::xor_op::code: return (T)(a ^ b);
            }
        }
        return x;
    }
};

extern "C" __global__ void __launch_bounds__(512) reduce(cw::team t, ELEMENT* dest, const ELEMENT* source, u64 n, i32 op) {
    if (!cw::reduce(dest, source, n, any_op{op}, t, cw::block())) __trap();
}
extern "C" __global__ void __launch_bounds__(512)
    reducescatter(cw::team t, ELEMENT* dest, const ELEMENT* source, u64 n, i32 op) {
    if (!cw::reducescatter(dest, source, n, any_op{op}, t, cw::block())) __trap();
}
