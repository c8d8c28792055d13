// Passes over a line.
#include "line_pass.cuh"

#define KERNEL(F, name, W)                                                                               \
    extern "C" __global__ void __launch_bounds__(256, 1) pass_line_##name(cw::segment<F> g, int depth) { \
        using pass = cw::line_pass<F, W, 8>;                                                             \
        __shared__ pass::scratch scratch;                                                                \
        pass::run(g, scratch, depth);                                                                    \
    }

KERNEL(float, f32, 8)
KERNEL(double, f64, 4)
