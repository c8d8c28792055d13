// A choice between two values that stays one.
#pragma once
#include "base.cuh"

namespace crosswarp {

// `yes ? a : b`. In assembly, because the compiler makes of the other a choice of addresses, and what has
// addresses is not in registers.
__device__ __forceinline__ float choose(bool yes, float a, float b) {
    asm("{ .reg .pred yes; setp.ne.u32 yes, %1, 0; selp.f32 %0, %2, %0, yes; }" : "+f"(b) : "r"((u32)yes), "f"(a));
    return b;
}
__device__ __forceinline__ double choose(bool yes, double a, double b) {
    asm("{ .reg .pred yes; setp.ne.u32 yes, %1, 0; selp.f64 %0, %2, %0, yes; }" : "+d"(b) : "r"((u32)yes), "d"(a));
    return b;
}

}  // namespace crosswarp
