// Passes over an f32 plane with a mask, a source or both.
#include "jacobi/temporal/pass.cuh"

CROSSWARP_PASS(pass_fixed_f32, float, cw::pass_depth, cw::lane_columns, 16, true, false)
CROSSWARP_PASS(pass_source_f32, float, cw::pass_depth, cw::lane_columns, 16, false, true)
CROSSWARP_PASS(pass_both_f32, float, cw::pass_depth, cw::lane_columns, 16, true, true)
