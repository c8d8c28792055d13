// Whole solves on a line.
#include "jacobi/on_chip/line.cuh"

#define KERNEL(F, name, warps)                                                                       \
    extern "C" __global__ void __launch_bounds__(32 * warps, 1) run_line_##name(cw::line_run<F> m) { \
        using run = cw::line_until_stopped<F, warps>;                                                \
        __shared__ run::scratch scratch;                                                             \
        extern __shared__ uint4 saved[];                                                             \
        run::run(m, scratch, saved);                                                                 \
    }

// As many leaves a block as fit into the registers, and a second time into shared memory.
KERNEL(float, f32, 16)
KERNEL(double, f64, 8)
