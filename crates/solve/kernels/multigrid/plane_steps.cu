// Steps on the finest level of a plane beside passes.
#include "multigrid/finest_steps.cuh"

CROSSWARP_FINEST_STEPS(plane)
