// What every level shares: integer names, operations, and moving values of any size.
// No toolkit header: compiles under NVRTC and under nvcc, without relocatable device code.
#pragma once
#include "codes.cuh"

// Where a field is, for checks of what the host and kernels share. NVRTC has no toolkit header, and the host's
// compiler, which nvcc runs too, no __INTADDR__.
#ifdef __CUDACC_RTC__
#define CROSSWARP_OFFSET(type, field) __INTADDR__(&((type*)0)->field)
#else
#define CROSSWARP_OFFSET(type, field) __builtin_offsetof(type, field)
#endif

namespace crosswarp {

using u8 = unsigned char;
using u16 = unsigned short;
using u32 = unsigned int;
using u64 = unsigned long long;
using i32 = int;
using i64 = long long;

static_assert(sizeof(u64) == 8 && sizeof(void*) == 8, "64-bit devices only");

// Whether the sign bit of a float is set, that of a zero, too.
__device__ inline bool is_negative(float x) { return __float_as_int(x) < 0; }
__device__ inline bool is_negative(double x) { return __double_as_longlong(x) < 0; }

// Operations of `reduce`. Integers wrap; a NaN wins a minimum or maximum, and −0 is less than +0, so that the
// order of the operands means nothing (but for which NaN wins: the first, with its payload, as `op::Min` and `op::Max`
// of crosswarp-shmem have it). `code` tells them apart when PEs compare what they do.
struct sum_op {
    static constexpr int code = static_cast<int>(op_code::sum);
    template <class T> __device__ T operator()(T a, T b) const { return a + b; }
};
struct prod_op {
    static constexpr int code = static_cast<int>(op_code::prod);
    template <class T> __device__ T operator()(T a, T b) const { return a * b; }
};
struct min_op {
    static constexpr int code = static_cast<int>(op_code::min);
    template <class T> __device__ T operator()(T a, T b) const { return (a < b || a != a) ? a : b; }
    __device__ float operator()(float a, float b) const { return of_floats(a, b); }
    __device__ double operator()(double a, double b) const { return of_floats(a, b); }

  private:
    template <class T> static __device__ T of_floats(T a, T b) {
        return a < b || a != a || (a == b && is_negative(a)) ? a : b;
    }
};
struct max_op {
    static constexpr int code = static_cast<int>(op_code::max);
    template <class T> __device__ T operator()(T a, T b) const { return (a > b || a != a) ? a : b; }
    __device__ float operator()(float a, float b) const { return of_floats(a, b); }
    __device__ double operator()(double a, double b) const { return of_floats(a, b); }

  private:
    template <class T> static __device__ T of_floats(T a, T b) {
        return a > b || a != a || (a == b && !is_negative(a)) ? a : b;
    }
};
struct and_op {
    static constexpr int code = static_cast<int>(op_code::bit_and);
    template <class T> __device__ T operator()(T a, T b) const { return a & b; }
};
struct or_op {
    static constexpr int code = static_cast<int>(op_code::bit_or);
    template <class T> __device__ T operator()(T a, T b) const { return a | b; }
};
struct xor_op {
    static constexpr int code = static_cast<int>(op_code::bit_xor);
    template <class T> __device__ T operator()(T a, T b) const { return a ^ b; }
};

// A half-precision number by its bits: there is no toolkit header, so there is no __half.
struct f16 {
    u16 bits;
};

// Whether `seen` compares with `expected` as asked.
template <class T> __device__ inline bool holds(cmp how, T seen, T expected) {
    switch (how) {
        case cmp::eq: return seen == expected;
        case cmp::ne: return seen != expected;
        case cmp::gt: return seen > expected;
        case cmp::ge: return seen >= expected;
        case cmp::lt: return seen < expected;
        default: return seen <= expected;
    }
}

// A parameter that takes its type from the others: `p(flag, 1, peer)` for a u64 flag.
template <class T> struct same {
    using type = T;
};
template <class T> using same_t = typename same<T>::type;

// The largest unsigned integer that a T can be moved by: it divides T's size and alignment.
template <int Bytes> struct unit_of_bytes { using type = u8; };
template <> struct unit_of_bytes<2> { using type = u16; };
template <> struct unit_of_bytes<4> { using type = u32; };
template <> struct unit_of_bytes<8> { using type = u64; };
template <class T>
using unit_of = typename unit_of_bytes<(alignof(T) < 8 ? alignof(T) : 8)>::type;

// Loads a T of any kind past the first-level cache, which other SMs' and GPUs' stores do not reach.
template <class T> __device__ inline T load_volatile(const T* from) {
    using U = unit_of<T>;
    constexpr int n = sizeof(T) / sizeof(U);
    U part[n];
    const volatile U* at = reinterpret_cast<const volatile U*>(from);
#pragma unroll
    for (int i = 0; i < n; ++i) part[i] = at[i];
    T value;
    memcpy(&value, part, sizeof(T));
    return value;
}

// Applies `move(word)` to the value 4 bytes at a time: how shuffles carry a T of any size.
template <class T, class Move> __device__ inline T by_words(T value, Move move) {
    constexpr int words = (sizeof(T) + 3) / 4;
    u32 buffer[words] = {};
    memcpy(buffer, &value, sizeof(T));
#pragma unroll
    for (int i = 0; i < words; ++i) buffer[i] = move(buffer[i]);
    memcpy(&value, buffer, sizeof(T));
    return value;
}

}  // namespace crosswarp

namespace cw = crosswarp;
