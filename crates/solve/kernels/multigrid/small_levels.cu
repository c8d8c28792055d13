// The levels that are small, at once.
#include "multigrid/small_levels.cuh"

extern "C" __global__ void __launch_bounds__(cw::small_threads)
    level_cycle_small(const cw::level_pass<float>* levels, int count, int of_grid, int full,
                      const __grid_constant__ cw::relaxations omegas, cw::grid_state* state) {
    cw::cycle_small(levels, count, of_grid, full, omegas, state);
}
