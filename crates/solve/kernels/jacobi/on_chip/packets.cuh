// Values that carry the number of the exchange they belong to, their generation, so that no flag or fence follows
// them. A packet is 4 bytes of value and 4 of generation, stored and loaded as one: a 64-bit access is single-copy
// atomic, and so is each 64-bit part of a 128-bit one. `double` takes two.
#pragma once
#include "base.cuh"

namespace crosswarp {

template <class F> constexpr int packets_of = sizeof(F) / 4;

template <class F> __device__ __forceinline__ void pack(F value, u32 generation, u64* packet) {
    u32 word[packets_of<F>];
    memcpy(word, &value, sizeof(F));
#pragma unroll
    for (int i = 0; i < packets_of<F>; ++i) packet[i] = (u64)generation << 32 | word[i];
}

template <class F> __device__ __forceinline__ F unpack(const u64* packet) {
    u32 word[packets_of<F>];
#pragma unroll
    for (int i = 0; i < packets_of<F>; ++i) word[i] = (u32)packet[i];
    F value;
    memcpy(&value, word, sizeof(F));
    return value;
}

// Not 0 if any of the packets is of another generation.
template <int N> __device__ __forceinline__ u32 of_other_generation(const u64 (&packet)[N], u32 generation) {
    u32 any = 0;
#pragma unroll
    for (int i = 0; i < N; ++i) any |= (u32)(packet[i] >> 32) ^ generation;
    return any;
}

// Relaxed: the packet is all there is to see. `to` may be a peer's memory, aligned to 16 bytes if N is not 1.
template <int N> __device__ __forceinline__ void store_packets(u64* to, const u64 (&packet)[N]) {
    if constexpr (N == 1) {
        asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(to), "l"(packet[0]) : "memory");
    } else {
#pragma unroll
        for (int i = 0; i < N; i += 2) {
            asm volatile("st.relaxed.sys.global.v2.u64 [%0], {%1, %2};" ::"l"(to + i), "l"(packet[i]),
                         "l"(packet[i + 1])
                         : "memory");
        }
    }
}

template <int N> __device__ __forceinline__ void load_packets(const u64* from, u64 (&packet)[N]) {
    if constexpr (N == 1) {
        asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(packet[0]) : "l"(from) : "memory");
    } else {
#pragma unroll
        for (int i = 0; i < N; i += 2) {
            asm volatile("ld.relaxed.sys.global.v2.u64 {%0, %1}, [%2];"
                         : "=l"(packet[i]), "=l"(packet[i + 1])
                         : "l"(from + i)
                         : "memory");
        }
    }
}

// As `load_packets` where `yes` is not 0; else the packets stay as they are.
template <int N> __device__ __forceinline__ void load_packets_if(u32 yes, const u64* from, u64 (&packet)[N]) {
    if constexpr (N == 1) {
        asm volatile("{ .reg .pred yes; setp.ne.u32 yes, %2, 0; @yes ld.relaxed.sys.global.u64 %0, [%1]; }"
                     : "+l"(packet[0])
                     : "l"(from), "r"(yes)
                     : "memory");
    } else {
#pragma unroll
        for (int i = 0; i < N; i += 2) {
            asm volatile("{ .reg .pred yes; setp.ne.u32 yes, %3, 0; @yes ld.relaxed.sys.global.v2.u64 {%0, %1}, [%2]; }"
                         : "+l"(packet[i]), "+l"(packet[i + 1])
                         : "l"(from + i), "r"(yes)
                         : "memory");
        }
    }
}

}  // namespace crosswarp
