// The exchange of halos between GPUs.
#include "jacobi/exchange/device_put.cuh"

extern "C" __global__ void __launch_bounds__(cw::exchange_threads) exchange_halos_f32(cw::exchange<float> e) {
    cw::exchange_halos(e);
}
extern "C" __global__ void __launch_bounds__(cw::exchange_threads) exchange_halos_f64(cw::exchange<double> e) {
    cw::exchange_halos(e);
}
