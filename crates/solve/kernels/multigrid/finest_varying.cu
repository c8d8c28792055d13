// Passes over the finest level where couplings differ from place to place.
#include "multigrid/five_point.cuh"
#include "multigrid/pass.cuh"

#define KERNEL(steps)                                                                \
    extern "C" __global__ void __launch_bounds__(cw::level_pass_threads)             \
        finest_varying_##steps(const __grid_constant__ cw::level_pass<double> g) {    \
        cw::run_pass<cw::five_point<true>, steps>(g);                                \
    }

KERNEL(0)
KERNEL(1)
KERNEL(2)
KERNEL(4)
