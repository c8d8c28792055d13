// Passes over an f64 plane without mask and source.
#include "jacobi/temporal/pass.cuh"

CROSSWARP_PASS(pass_plain_f64, double, 4, 4, 8, false, false)
