// Runs of sweeps over an f64 plane with a leaf an SM: halos of 4 cells.
#include "jacobi/on_chip/deep_halo.cuh"

template <bool Source> using unit = cw::deep_halo<double, 1, cw::deep_halo_depth_f64, 1, 4, 24, Source>;

#define KERNEL(name, source)                                                                            \
    extern "C" __global__ void __launch_bounds__(unit<source>::warps * 32, 1)                           \
        name(const __grid_constant__ cw::deep_halo_run<double> run) {                                   \
        extern __shared__ __align__(16) unsigned char shared[];                                         \
        static_assert(sizeof(unit<source>::scratch) <= cw::deep_halo_shared, "what the host asks for"); \
        unit<source>::run(run, *reinterpret_cast<unit<source>::scratch*>(shared));                      \
    }

KERNEL(run_deep_halo_one_f64, false)
KERNEL(run_deep_halo_one_source_f64, true)

static_assert(unit<false>::warps == cw::deep_halo_warps_one_f64, "what the host launches");
