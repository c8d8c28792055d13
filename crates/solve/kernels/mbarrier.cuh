// Barriers in shared memory at which some threads arrive and others look, so that nobody is held who need not wait.
#pragma once
#include "base.cuh"

namespace crosswarp {

// An mbarrier object of PTX; where the GPU has none, a count. 8 bytes; nothing else touches them.
class alignas(8) mbarrier {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
    u64 object_;

    __device__ u32 address() const { return (u32)__cvta_generic_to_shared(this); }

  public:
    // A phase is over when `arrivals` threads have arrived. By one thread, before a barrier of the block.
    __device__ void init(u32 arrivals) {
        asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(address()), "r"(arrivals) : "memory");
    }
    // Release: who sees the phase over sees what this thread did before. Every thread whose accesses matter arrives:
    // one could do it for its warp behind `__syncwarp`, but racecheck would not see that.
    __device__ void arrive() {
        asm volatile("{ .reg .b64 state; mbarrier.arrive.shared.b64 state, [%0]; }" ::"r"(address()) : "memory");
    }
    // Whether phase `phase`, the first being 0, is over. Acquire, for this thread. Only for the phase under way or the
    // one before it: a phase is known by its parity.
    __device__ bool over(u32 phase) const {
        u32 yes;
        asm volatile(
            "{ .reg .pred yes; mbarrier.test_wait.parity.shared.b64 yes, [%1], %2; selp.u32 %0, 1, 0, yes; }"
            : "=r"(yes)
            : "r"(address()), "r"(phase & 1)
            : "memory");
        return yes != 0;
    }
#else
    u32 arrivals_, arrived_;

    __device__ u32 address() const { return (u32)__cvta_generic_to_shared(&arrived_); }

  public:
    __device__ void init(u32 arrivals) {
        arrivals_ = arrivals;
        arrived_ = 0;
    }
    __device__ void arrive() {
        asm volatile("red.release.cta.shared.add.u32 [%0], 1;" ::"r"(address()) : "memory");
    }
    __device__ bool over(u32 phase) const {
        u32 arrived;
        asm volatile("ld.acquire.cta.shared.u32 %0, [%1];" : "=r"(arrived) : "r"(address()) : "memory");
        // The count may wrap around.
        return (i32)(arrived - (phase + 1) * arrivals_) >= 0;
    }
#endif
};

}  // namespace crosswarp
