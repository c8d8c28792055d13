// Passes over coarse levels whose points differ by tiles: two relaxations from zero, and down; the correction, and two; the correction
// alone, two, and down.
#include "multigrid/varied_coarse_tile.cuh"

CROSSWARP_VARIED_COARSE_TILE(varied_coarse_down_2, cw::start_zero, true)
CROSSWARP_VARIED_COARSE_TILE(varied_coarse_up_2, cw::start_corrected, false)
CROSSWARP_VARIED_COARSE_TILE(varied_coarse_begun_2, cw::start_correction, true)
