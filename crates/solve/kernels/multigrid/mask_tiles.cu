// Passes over a finest level with a mask by tiles: all that is between two corrections, and what full multigrid goes on with.
#include "multigrid/varied_tile.cuh"

CROSSWARP_VARIED_TILE(mask_tile_2_2, false, 4, true)
CROSSWARP_VARIED_TILE(mask_tile_begun_2, false, 2, false)
