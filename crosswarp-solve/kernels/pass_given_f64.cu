// Passes over an f64 plane with a mask, a source or both.
#include "pass.cuh"

#define KERNEL(name, fixed, source)                                                                   \
    extern "C" __global__ void __launch_bounds__(64, 4) name(cw::band<double> g, cw::strips cut, int depth) { \
        cw::pass<double, 4, 5, 2, fixed, source>(g, cut, depth);                                     \
    }

KERNEL(pass_fixed_f64, true, false)
KERNEL(pass_source_f64, false, true)
KERNEL(pass_both_f64, true, true)
