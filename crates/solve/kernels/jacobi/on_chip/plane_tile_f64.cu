// Runs of sweeps over an f64 plane on the chip: units of 32 columns where there are few, else of 64.
#include "jacobi/on_chip/plane_tile.cuh"

#define KERNEL(name, columns, source)                                                                \
    extern "C" __global__ void __launch_bounds__(32 * cw::tile_warps, 1)                             \
        name(const __grid_constant__ cw::tile_run<double> run) {                                     \
        extern __shared__ __align__(16) unsigned char shared[];                                      \
        using unit = cw::plane_tile<double, columns, source>;                                        \
        static_assert(sizeof(unit::scratch) <= cw::plane_tile_shared_f64, "what the host asks for"); \
        unit::run(run, *reinterpret_cast<unit::scratch*>(shared));                                   \
    }

KERNEL(run_tiles_narrow_f64, cw::narrow_unit_columns, false)
KERNEL(run_tiles_wide_f64, cw::wide_unit_columns_f64, false)
KERNEL(run_tiles_narrow_source_f64, cw::narrow_unit_columns, true)
KERNEL(run_tiles_wide_source_f64, cw::wide_unit_columns_f64, true)
