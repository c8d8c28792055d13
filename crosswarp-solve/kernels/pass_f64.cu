// Passes over an f64 plane without mask and source.
#include "pass.cuh"

extern "C" __global__ void __launch_bounds__(64, 4) pass_plain_f64(cw::band<double> g, cw::strips cut, int depth) {
    cw::pass<double, 4, 5, 2, false, false>(g, cut, depth);
}
