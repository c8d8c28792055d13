// Passes over a line.
#include "jacobi/temporal/line_pass.cuh"

#define KERNEL(F, name, warps)                                                                                    \
    extern "C" __global__ void __launch_bounds__(32 * (warps), 1) pass_line_##name(cw::segment<F> g, int depth) { \
        using pass = cw::line_pass<F, 4, warps>;                                                                  \
        __shared__ pass::scratch scratch;                                                                         \
        pass::run(g, scratch, depth);                                                                             \
    }

// Four columns a lane. Eight, with half the shuffles but two instead of four warps a scheduler, are slower: 82
// against 74 us for 57 sweeps of 4,194,304 points on an H200.
KERNEL(float, f32, cw::line_pass_threads_f32 / 32)
KERNEL(double, f64, cw::line_pass_threads_f64 / 32)
