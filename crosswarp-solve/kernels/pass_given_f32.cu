// Passes over an f32 plane with a mask, a source or both.
#include "pass.cuh"

#define KERNEL(name, fixed, source)                                                                   \
    extern "C" __global__ void __launch_bounds__(128, 3) name(cw::band<float> g, cw::strips cut, int depth) { \
        cw::pass<float, 4, 5, 4, fixed, source>(g, cut, depth);                                      \
    }

KERNEL(pass_fixed_f32, true, false)
KERNEL(pass_source_f32, false, true)
KERNEL(pass_both_f32, true, true)
