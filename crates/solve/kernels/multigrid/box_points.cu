// What is done on a level of a box whose couplings differ from point to point.
#include "multigrid/box_points.cuh"

// `count`: half of the points that a point can be coupled to, on the finest level or on others; `rows` of a thread.
#define KERNEL(name, count, rows, work)                                            \
    extern "C" __global__ void __launch_bounds__(cw::column_threads)               \
        box_points_##name(const __grid_constant__ cw::box_pass g) {                \
        const cw::points_leaf<count, rows> leaf(g);                                \
        if (leaf.is_there) cw::work(leaf);                                         \
    }

KERNEL(relax, cw::box_steps, 1, relax)
KERNEL(relax_finest, cw::box_steps_along_axes, 1, relax)
KERNEL(residual, cw::box_steps, 1, keep_residual)
KERNEL(residual_finest, cw::box_steps_along_axes, 1, keep_residual)
KERNEL(residual_measured, cw::box_steps_along_axes, cw::leaf_rows, keep_residual)
KERNEL(relax_from_zero, cw::box_steps_along_axes, 1, relax_from_zero)
KERNEL(square, cw::box_steps_along_axes, cw::leaf_rows, square)
KERNEL(prolong, cw::box_steps_along_axes, 1, prolong)

extern "C" __global__ void __launch_bounds__(cw::column_threads) box_points_restrict(const __grid_constant__ cw::box_pass g) {
    cw::restrict_points(g);
}
