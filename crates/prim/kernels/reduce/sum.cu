// Reproducible sums of floating-point elements: sum, mean, norm, dot product, all in one launch.
#include "reduce/sum.cuh"

extern "C" __global__ void __launch_bounds__(cw::reduce_threads, SUM_BLOCKS) reduce(cw::reduce_arguments a) {
    cw::sum(a);
}
