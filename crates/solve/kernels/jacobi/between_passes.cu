// What is done between passes: ghosts of a grid that wraps around, and sums for the host.
#include "jacobi/ghosts.cuh"

#define KERNELS(F, name)                                                                    \
    extern "C" __global__ void __launch_bounds__(cw::between_passes_threads)                \
        wrap_rows_##name(F* field, cw::i64 pitch, int first, int nx, int ny, int count) {   \
        cw::wrap_rows(field, pitch, first, nx, ny, count);                                  \
    }                                                                                       \
    extern "C" __global__ void __launch_bounds__(cw::between_passes_threads)                \
        wrap_columns_##name(F* field, cw::i64 pitch, int first, int nx, int y0, int rows) { \
        cw::wrap_columns(field, pitch, first, nx, y0, rows);                                \
    }

KERNELS(float, f32)
KERNELS(double, f64)

// Moves `count` words to memory of the host, where they are when the kernel has ended, and leaves `all` zeros. One
// block.
extern "C" __global__ void __launch_bounds__(cw::between_passes_threads)
    publish_sums(cw::u64* words, cw::u64* to, int count, int all) {
    for (int i = threadIdx.x; i < all; i += blockDim.x) {
        if (i < count) to[i] = words[i];
        words[i] = 0;
    }
}
