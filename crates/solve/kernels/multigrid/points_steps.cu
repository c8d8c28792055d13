// Steps on the finest level of a box whose couplings differ from point to point.
#include "multigrid/box_points.cuh"

CROSSWARP_FINEST_STEPS(points)
