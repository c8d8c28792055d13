// Steps on the finest level of a box beside passes.
#include "multigrid/finest_steps.cuh"

CROSSWARP_FINEST_STEPS(box)
