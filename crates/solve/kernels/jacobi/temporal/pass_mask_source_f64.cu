// Passes over an f64 plane with a mask, a source or both.
#include "jacobi/temporal/pass.cuh"

CROSSWARP_PASS(pass_fixed_f64, double, cw::pass_depth, cw::lane_columns, 8, true, false)
CROSSWARP_PASS(pass_source_f64, double, cw::pass_depth, cw::lane_columns, 8, false, true)
CROSSWARP_PASS(pass_both_f64, double, cw::pass_depth, cw::lane_columns, 8, true, true)
