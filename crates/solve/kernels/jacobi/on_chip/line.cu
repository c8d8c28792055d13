// Whole solves on a line.
#include "jacobi/on_chip/line.cuh"

#define KERNEL(F, name, warps)                                                                      \
    extern "C" __global__ void __launch_bounds__(32 * warps, 1) march_line_##name(cw::march<F> m) { \
        using march = cw::line_march<F, warps>;                                                     \
        __shared__ march::scratch scratch;                                                          \
        extern __shared__ uint4 saved[];                                                            \
        march::run(m, scratch, saved);                                                              \
    }

// As many leaves a block as fit into the registers, and a second time into shared memory.
KERNEL(float, f32, 16)
KERNEL(double, f64, 8)
