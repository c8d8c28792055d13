// Runs of sweeps over an f32 plane with one or two leaves an SM: halos of 8 cells.
#include "jacobi/on_chip/deep_halo.cuh"

// Columns of a lane, most leaves of a block, and warps that add up its norms.
template <int Columns, int Leaves, int Norms, bool Source>
using unit = cw::deep_halo<float, Columns, cw::deep_halo_depth_f32, Leaves, Norms, 16, Source>;

#define KERNEL(name, ...)                                                                                    \
    extern "C" __global__ void __launch_bounds__(unit<__VA_ARGS__>::warps * 32, 1)                           \
        name(const __grid_constant__ cw::deep_halo_run<float> run) {                                         \
        extern __shared__ __align__(16) unsigned char shared[];                                              \
        static_assert(sizeof(unit<__VA_ARGS__>::scratch) <= cw::deep_halo_shared, "what the host asks for"); \
        unit<__VA_ARGS__>::run(run, *reinterpret_cast<unit<__VA_ARGS__>::scratch*>(shared));                 \
    }

KERNEL(run_deep_halo_one_f32, 1, 1, 4, false)
KERNEL(run_deep_halo_two_f32, 2, 2, 2, false)
KERNEL(run_deep_halo_one_source_f32, 1, 1, 4, true)
KERNEL(run_deep_halo_two_source_f32, 2, 2, 2, true)

static_assert(unit<1, 1, 4, false>::warps == cw::deep_halo_warps_one_f32, "what the host launches");
static_assert(unit<2, 2, 2, false>::warps == cw::deep_halo_warps_two_f32, "what the host launches");
