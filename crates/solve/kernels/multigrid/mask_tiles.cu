// Passes over a finest level with a mask by tiles: all that is between two corrections, and what full multigrid goes on with.
#include "multigrid/mask_tile.cuh"

CROSSWARP_MASK_TILE(mask_tile_2_2, 4, true)
CROSSWARP_MASK_TILE(mask_tile_begun_2, 2, false)
