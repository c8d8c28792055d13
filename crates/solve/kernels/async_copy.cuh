// Copies from global to shared memory that are waited for later; where the GPU has none, ordinary ones.
#pragma once
#include "base.cuh"

namespace crosswarp {

// 16 bytes or 8, both sides aligned to as many.
template <int bytes = 16> __device__ inline void copy_async(void* to, const void* from) {
    static_assert(bytes == 16 || bytes == 8, "bytes of a copy");
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    const u32 at = (u32)__cvta_generic_to_shared(to);
    if constexpr (bytes == 16) {
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at), "l"(from) : "memory");
    } else {
        asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" ::"r"(at), "l"(from) : "memory");
    }
#else
    if constexpr (bytes == 16) {
        *static_cast<uint4*>(to) = *static_cast<const uint4*>(from);
    } else {
        *static_cast<uint2*>(to) = *static_cast<const uint2*>(from);
    }
#endif
}

// Makes one group of this thread's copies since the last commit.
__device__ inline void copy_commit() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

// Waits for this thread's groups but the last `Left`.
template <int Left> __device__ inline void copy_wait() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(Left) : "memory");
#endif
}

}  // namespace crosswarp
