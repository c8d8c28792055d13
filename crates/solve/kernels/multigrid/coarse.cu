// Passes over coarse levels.
#include "multigrid/nine_point.cuh"
#include "multigrid/pass.cuh"

#define KERNEL(steps)                                                          \
    extern "C" __global__ void __launch_bounds__(cw::level_pass_threads)       \
        coarse_##steps(const __grid_constant__ cw::level_pass<float> g) {      \
        cw::run_pass<cw::nine_point, steps>(g);                                \
    }

KERNEL(1)
KERNEL(2)
