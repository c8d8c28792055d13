// Passes over coarse levels by tiles: two relaxations from zero, and down; the correction, and two; the correction alone, two,
// and down.
#include "multigrid/tile.cuh"

CROSSWARP_LEVEL_TILE(tile_down_2, cw::start_zero, true)
CROSSWARP_LEVEL_TILE(tile_up_2, cw::start_corrected, false)
CROSSWARP_LEVEL_TILE(tile_begun_2, cw::start_correction, true)
