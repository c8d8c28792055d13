// Passes over coarse levels.
#include "multigrid/nine_point.cuh"
#include "multigrid/pass.cuh"

#define KERNEL(name, steps, ...)                                                \
    extern "C" __global__ void __launch_bounds__(cw::level_pass_threads, 4)     \
        coarse_##name(const __grid_constant__ cw::level_pass<float> g) {        \
        cw::run_pass<cw::nine_point, steps __VA_ARGS__>(g);                     \
    }

KERNEL(1, 1)
KERNEL(2, 2)
// Two relaxations from zero, and down; the correction, and two.
KERNEL(down_2, 2, , cw::as_known<cw::start_zero, -1, true>)
KERNEL(up_2, 2, , cw::as_known<cw::start_corrected, -1, false>)
