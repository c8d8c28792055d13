// Copies from global to shared memory that are waited for later; where the GPU has none, ordinary ones.
#pragma once
#include "base.cuh"

namespace crosswarp {

// 16 bytes, both sides aligned to as many.
__device__ inline void copy_async(void* to, const void* from) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"((u32)__cvta_generic_to_shared(to)), "l"(from)
                 : "memory");
#else
    *static_cast<uint4*>(to) = *static_cast<const uint4*>(from);
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
