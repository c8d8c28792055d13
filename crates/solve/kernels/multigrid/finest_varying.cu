// Passes over the finest level where couplings differ from place to place.
#include "multigrid/five_point.cuh"
#include "multigrid/pass.cuh"

#define KERNEL(steps)                                                                \
    extern "C" __global__ void __launch_bounds__(cw::level_pass_threads, 4)            \
        finest_varying_##steps(const __grid_constant__ cw::level_pass<double> g) {    \
        cw::run_pass<cw::five_point<true>, steps>(g);                                \
    }

KERNEL(0)
KERNEL(1)
KERNEL(2)

// All that is between two corrections, with two relaxations after and before.
extern "C" __global__ void __launch_bounds__(cw::level_pass_threads, 4)
    finest_varying_2_2(const __grid_constant__ cw::level_pass<double> g) {
    cw::run_pass<cw::five_point<true>, 4, cw::as_known<cw::start_corrected, 2, true>>(g);
}
