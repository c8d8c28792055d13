// Passes over a plain finest level by tiles: all that is between two corrections, and what full multigrid goes on with.
#include "multigrid/finest_tile.cuh"

CROSSWARP_FINEST_TILE(finest_tile_2_2, 4, true)
CROSSWARP_FINEST_TILE(finest_tile_begun_2, 2, false)
