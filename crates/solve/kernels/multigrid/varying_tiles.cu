// The same over one whose couplings differ from place to place.
#include "multigrid/varied_tile.cuh"

CROSSWARP_VARIED_TILE(varying_tile_2_2, true, 4, true)
CROSSWARP_VARIED_TILE(varying_tile_begun_2, true, 2, false)
