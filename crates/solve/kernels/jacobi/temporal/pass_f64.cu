// Passes over an f64 plane without mask and source.
#include "jacobi/temporal/pass.cuh"

CROSSWARP_PASS(pass_plain_f64, double, cw::pass_depth, cw::lane_columns, 8, false, false)
