// Levels made of finer ones.
#include "multigrid/galerkin.cuh"

#define KERNEL(name) extern "C" __global__ void __launch_bounds__(cw::galerkin_threads) galerkin_##name
KERNEL(masked)(const __grid_constant__ cw::level_pass<double> g, float* transfer_rows, float* operator_rows) {
    cw::make_coarse<cw::finest_operator<false>>(g, transfer_rows, operator_rows);
}
KERNEL(varying)(const __grid_constant__ cw::level_pass<double> g, float* transfer_rows, float* operator_rows) {
    cw::make_coarse<cw::finest_operator<true>>(g, transfer_rows, operator_rows);
}
KERNEL(coarse)(const __grid_constant__ cw::level_pass<float> g, float* transfer_rows, float* operator_rows) {
    cw::make_coarse<cw::coarse_operator>(g, transfer_rows, operator_rows);
}
KERNEL(inverse)(const __grid_constant__ cw::level_pass<float> g, float* inverse_rows) { cw::make_inverse(g, inverse_rows); }
