// CUB's device-wide sum and histogram behind a C interface, for the ladder's rungs:
//   nvcc -shared -Xcompiler -fPIC -O3 -std=c++17 -arch=sm_90 -o libcub.so bench/peers/cub.cu
//   CROSSWARP_CUB=$PWD/libcub.so crosswarp ladder reduce
// Each as in CUB: without scratch memory only its size is written. The result is the runtime's error code.
#include <cub/device/device_histogram.cuh>
#include <cub/device/device_reduce.cuh>
#include <cuda_fp16.h>

struct add {
    __host__ __device__ float operator()(float a, float b) const { return a + b; }
};

extern "C" int cub_sum_f32(void* scratch, size_t* bytes, const void* x, float* out, int n, void* stream) {
    auto from = static_cast<const float*>(x);
    return cub::DeviceReduce::Reduce(scratch, *bytes, from, out, n, add(), 0.0f, cudaStream_t(stream));
}

extern "C" int cub_sum_f16(void* scratch, size_t* bytes, const void* x, float* out, int n, void* stream) {
    auto from = static_cast<const __half*>(x);
    return cub::DeviceReduce::Reduce(scratch, *bytes, from, out, n, add(), 0.0f, cudaStream_t(stream));
}

extern "C" int cub_histogram(void* scratch, size_t* bytes, const int* samples, int* counts, int bins, int n, void* stream) {
    return cub::DeviceHistogram::HistogramEven(scratch, *bytes, samples, counts, bins + 1, 0, bins, n, cudaStream_t(stream));
}
