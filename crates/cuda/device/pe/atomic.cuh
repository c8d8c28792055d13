// Atomics on symmetric objects of any PE: u32, i32, u64, i64 for all operations, float and double for
// fetch, set, swap and add, f16 for add. Any thread. Atomic with respect to all other atomics on the word, from
// any PE; they order nothing else (relaxed, system scope).
#pragma once
#include "pe/memory.cuh"

namespace crosswarp {

namespace detail {

// The unsigned integer that carries a T.
template <int Bytes> struct carrier;
template <> struct carrier<4> { using type = u32; };
template <> struct carrier<8> { using type = u64; };
template <class T> using carrier_of = typename carrier<sizeof(T)>::type;

template <class To, class From> __device__ inline To bits(From from) {
    static_assert(sizeof(To) == sizeof(From), "same size");
    To to;
    memcpy(&to, &from, sizeof(To));
    return to;
}

__device__ inline u32 load_relaxed(const u32* at) {
    u32 value;
    asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(at) : "memory");
    return value;
}
__device__ inline u64 load_relaxed(const u64* at) {
    u64 value;
    asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(at) : "memory");
    return value;
}
__device__ inline u32 load_acquire(const u32* at) {
    u32 value;
    asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(at) : "memory");
    return value;
}
__device__ inline u64 load_acquire(const u64* at) {
    u64 value;
    asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(at) : "memory");
    return value;
}
__device__ inline void store_relaxed(u32* at, u32 value) {
    asm volatile("st.relaxed.sys.global.u32 [%0], %1;" ::"l"(at), "r"(value) : "memory");
}
__device__ inline void store_relaxed(u64* at, u64 value) {
    asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(at), "l"(value) : "memory");
}
__device__ inline void store_release(u64* at, u64 value) {
    asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(at), "l"(value) : "memory");
}

// The value of what an atomic operation of another host fetched.
template <class T> __device__ inline T fetched(u64 word) { return bits<T>(static_cast<carrier_of<T>>(word)); }

}  // namespace detail

template <class T> __device__ inline T atomic_fetch(const T* source, int pe) {
    using C = detail::carrier_of<T>;
    CROSSWARP_ROUTE(pe, route_g(source, pe));
    return detail::bits<T>(detail::load_relaxed(reinterpret_cast<const C*>(ptr(source, pe))));
}
template <class T> __device__ inline void atomic_set(T* dest, same_t<T> value, int pe) {
    using C = detail::carrier_of<T>;
    CROSSWARP_ROUTE(pe, route_p(dest, (T)value, pe));
    detail::store_relaxed(reinterpret_cast<C*>(ptr(dest, pe)), detail::bits<C>((T)value));
}
template <class T> __device__ inline T atomic_swap(T* dest, same_t<T> value, int pe) {
    using C = detail::carrier_of<T>;
    CROSSWARP_ROUTE(pe, fetched<T>(route_fetch_change(dest, atomic_op::swap, bits<C>((T)value), pe)));
    C* at = reinterpret_cast<C*>(ptr(dest, pe));
    return detail::bits<T>(atomicExch_system(at, detail::bits<C>((T)value)));
}
template <class T> __device__ inline T atomic_compare_swap(T* dest, same_t<T> expected, same_t<T> value, int pe) {
    using C = detail::carrier_of<T>;
    CROSSWARP_ROUTE(pe, fetched<T>(route_fetch_change(dest, atomic_op::compare_swap, bits<C>((T)value), pe,
                                                      bits<C>((T)expected))));
    C* at = reinterpret_cast<C*>(ptr(dest, pe));
    return detail::bits<T>(atomicCAS_system(at, detail::bits<C>(expected), detail::bits<C>((T)value)));
}

// Two's complement makes one addition serve signed and unsigned.
template <class T> __device__ inline T atomic_fetch_add(T* dest, same_t<T> value, int pe) {
    using C = detail::carrier_of<T>;
    CROSSWARP_ROUTE(pe, fetched<T>(route_fetch_change(dest, atomic_op::add, bits<C>((T)value), pe)));
    C* at = reinterpret_cast<C*>(ptr(dest, pe));
    return detail::bits<T>(atomicAdd_system(at, detail::bits<C>((T)value)));
}
__device__ inline float atomic_fetch_add(float* dest, float value, int pe) {
    CROSSWARP_ROUTE(pe, fetched<float>(route_fetch_change(dest, atomic_op::add_f32, bits<u32>(value), pe)));
    return atomicAdd_system(ptr(dest, pe), value);
}
__device__ inline double atomic_fetch_add(double* dest, double value, int pe) {
    CROSSWARP_ROUTE(pe, fetched<double>(route_fetch_change(dest, atomic_op::add_f64, bits<u64>(value), pe)));
    return atomicAdd_system(ptr(dest, pe), value);
}
// Half precision, without flushing subnormals.
__device__ inline f16 atomic_fetch_add(f16* dest, f16 value, int pe) {
#ifdef CROSSWARP_ROUTED
    if (!detail::mapped(pe)) return {(u16)detail::route_fetch_change(dest, atomic_op::add_f16, value.bits, pe)};
#endif
    f16 old;
    asm volatile("atom.add.noftz.relaxed.sys.global.f16 %0, [%1], %2;"
                 : "=h"(old.bits) : "l"(ptr(dest, pe)), "h"(value.bits) : "memory");
    return old;
}
template <class T> __device__ inline T atomic_fetch_and(T* dest, same_t<T> value, int pe) {
    using C = detail::carrier_of<T>;
    CROSSWARP_ROUTE(pe, fetched<T>(route_fetch_change(dest, atomic_op::bit_and, bits<C>((T)value), pe)));
    C* at = reinterpret_cast<C*>(ptr(dest, pe));
    return detail::bits<T>(atomicAnd_system(at, detail::bits<C>((T)value)));
}
template <class T> __device__ inline T atomic_fetch_or(T* dest, same_t<T> value, int pe) {
    using C = detail::carrier_of<T>;
    CROSSWARP_ROUTE(pe, fetched<T>(route_fetch_change(dest, atomic_op::bit_or, bits<C>((T)value), pe)));
    C* at = reinterpret_cast<C*>(ptr(dest, pe));
    return detail::bits<T>(atomicOr_system(at, detail::bits<C>((T)value)));
}
template <class T> __device__ inline T atomic_fetch_xor(T* dest, same_t<T> value, int pe) {
    using C = detail::carrier_of<T>;
    CROSSWARP_ROUTE(pe, fetched<T>(route_fetch_change(dest, atomic_op::bit_xor, bits<C>((T)value), pe)));
    C* at = reinterpret_cast<C*>(ptr(dest, pe));
    return detail::bits<T>(atomicXor_system(at, detail::bits<C>((T)value)));
}
template <class T> __device__ inline T atomic_fetch_inc(T* dest, int pe) {
    return atomic_fetch_add(dest, (T)1, pe);
}

// Without the old value: the hardware then sends a reduction, which nobody waits for.
template <class T> __device__ inline void atomic_add(T* dest, same_t<T> value, int pe) {
    atomic_fetch_add(dest, value, pe);
}
template <class T> __device__ inline void atomic_inc(T* dest, int pe) { atomic_fetch_inc(dest, pe); }
template <class T> __device__ inline void atomic_and(T* dest, same_t<T> value, int pe) {
    atomic_fetch_and(dest, value, pe);
}
template <class T> __device__ inline void atomic_or(T* dest, same_t<T> value, int pe) {
    atomic_fetch_or(dest, value, pe);
}
template <class T> __device__ inline void atomic_xor(T* dest, same_t<T> value, int pe) {
    atomic_fetch_xor(dest, value, pe);
}

}  // namespace crosswarp
