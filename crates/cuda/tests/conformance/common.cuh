// What the conformance suite's sources share. The device verbs are checked inside kernels: verb × scope × type ×
// alignment. Every kernel counts what is wrong in `errors[0]` and leaves a place to look at in `errors[1]`. Meanings
// are those of the OpenSHMEM 1.5 specification.
//
// Every PE launches the same kernel together: one block of 128 threads for scope `block`, of 32 for
// `warp`, of 1 for `thread`. `a` and `b` are symmetric, `bytes` long each.
#pragma once
#include "pe.cuh"

using namespace cw;

namespace {

__device__ void expect(bool right, u32* errors, u32 place) {
    if (!right) {
        atomicAdd(errors, 1);
        errors[1] = place;
    }
}

// What PE `pe` holds at index `i`: small enough for sums and products to stay exact in every type.
template <class T> __device__ T value(int pe, u64 i) { return (T)((pe * 7 + i * 3 + 1) % 11); }

__device__ int right() { return (my_pe() + 1) % n_pes(); }
__device__ int left() { return (my_pe() + n_pes() - 1) % n_pes(); }

template <class T, class Scope> __device__ void fill(T* to, u64 n, int pe, const Scope& s) {
    for (u64 i = s.rank(); i < n; i += s.size()) to[i] = value<T>(pe, i);
    s.sync();
}

template <class T, class Scope>
__device__ void check(const T* seen, u64 n, int pe, u32* errors, u32 place, const Scope& s) {
    for (u64 i = s.rank(); i < n; i += s.size()) {
        expect(*(const volatile T*)(seen + i) == value<T>(pe, i), errors, place);
    }
    s.sync();
}

// What no PE holds: an element that should have been written and was not is found out, and one that should not have
// been. `spoil` sets n elements and one more.
template <class T> constexpr T spoilt = 101;
template <class T, class Scope> __device__ void spoil(T* to, u64 n, const Scope& s) {
    for (u64 i = s.rank(); i <= n; i += s.size()) to[i] = spoilt<T>;
    s.sync();
}
template <class T> __device__ void expect_spoilt(const T* seen, u32* errors, u32 place) {
    expect(*(const volatile T*)seen == spoilt<T>, errors, place);
}

// Everyone has done with what was checked before, or has filled what is read next: a barrier where none is checked. A
// kernel has it once, since barriers are long; one that is checked stands inlined between stores and loads. That it is
// a call matters, too: users have calls, and lanes that come back from one may have diverged.
template <class Scope> __device__ __noinline__ void all_meet() { barrier<Scope>(); }

}  // namespace

// The kernel VERB_SCOPE_TYPE of `function<Scope>(T* a, T* b, u64 bytes, u32* errors)`, which is found by its name. A
// kernel for every verb: the compiler's time grows faster than a kernel.
#define KERNEL(verb, function, Scope, T)                                                          \
    extern "C" __global__ void verb##_##Scope##_##T(T* a, T* b, u64 bytes, u32* errors) {         \
        function<cw::Scope>(a, b, bytes, errors);                                                 \
    }
