// What every level shares: integer names, operations, and moving values of any size.
// No toolkit header: compiles under NVRTC and under nvcc, without relocatable device code.
#pragma once

namespace crosswarp {

using u8 = unsigned char;
using u16 = unsigned short;
using u32 = unsigned int;
using u64 = unsigned long long;
using i32 = int;
using i64 = long long;

static_assert(sizeof(u64) == 8 && sizeof(void*) == 8, "64-bit devices only");

// Operations of `reduce`. Integers wrap; a NaN wins a minimum or maximum.
struct sum_op {
    template <class T> __device__ T operator()(T a, T b) const { return a + b; }
};
struct prod_op {
    template <class T> __device__ T operator()(T a, T b) const { return a * b; }
};
struct min_op {
    template <class T> __device__ T operator()(T a, T b) const { return (a < b || a != a) ? a : b; }
};
struct max_op {
    template <class T> __device__ T operator()(T a, T b) const { return (a > b || a != a) ? a : b; }
};
struct and_op {
    template <class T> __device__ T operator()(T a, T b) const { return a & b; }
};
struct or_op {
    template <class T> __device__ T operator()(T a, T b) const { return a | b; }
};
struct xor_op {
    template <class T> __device__ T operator()(T a, T b) const { return a ^ b; }
};

// What `signal_wait_until` and its kin compare with, as in OpenSHMEM's SHMEM_CMP_*.
enum class cmp : int { eq, ne, gt, ge, lt, le };

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
