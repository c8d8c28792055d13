// One launch a sweep.
#include "jacobi/one_sweep/sweep.cuh"

#define KERNELS(F, name)                                                                                  \
    extern "C" __global__ void __launch_bounds__(cw::sweep_threads) sweep_plane_##name(cw::band<F> g) {   \
        cw::sweep_plane(g);                                                                               \
    }                                                                                                     \
    extern "C" __global__ void __launch_bounds__(cw::sweep_threads) sweep_line_##name(cw::segment<F> g) { \
        cw::sweep_line(g);                                                                                \
    }

KERNELS(float, f32)
KERNELS(double, f64)
