// CUB's DeviceHistogram::HistogramEven, on the samples of `crosswarp bench histogram`: 2^27 int32 (or the
// power of two given) in 0..bins, one value a bin. One JSON line a row.
//
//     nvcc -O3 -std=c++17 -arch=sm_90 -o cub_histogram bench/peers/cub_histogram.cu && ./cub_histogram [LOG2]
//
// Times are of calls one after the other on a stream, between two events; medians of 7 samples of 3 calls,
// after one call that does not count. Counts are checked to add up.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <vector>

#include <cub/cub.cuh>

#define CHECK(call)                                                                       \
    do {                                                                                  \
        cudaError_t error = (call);                                                       \
        if (error != cudaSuccess) {                                                       \
            std::fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(error));           \
            std::exit(1);                                                                 \
        }                                                                                 \
    } while (0)

static const char* const distributions[] = {"uniform", "one-hot", "skewed"};

__global__ void fill(int* samples, size_t n, unsigned bins, int distribution) {
    for (size_t k = blockIdx.x * size_t(blockDim.x) + threadIdx.x; k < n; k += size_t(gridDim.x) * blockDim.x) {
        unsigned long long z = (k + 1) * 0x9e3779b97f4a7c15ull;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
        z ^= z >> 31;
        double unit = (z >> 11) / 9007199254740992.0;
        double place = distribution == 0 ? unit : distribution == 1 ? 0.37 : unit * unit * unit * unit;
        samples[k] = static_cast<int>(place * bins);
    }
}

int main(int argc, char** argv) {
    const size_t n = size_t(1) << (argc > 1 ? std::atoi(argv[1]) : 27);
    cudaDeviceProp properties;
    CHECK(cudaGetDeviceProperties(&properties, 0));
    int* samples;
    CHECK(cudaMalloc(&samples, n * sizeof(int)));
    cudaEvent_t start, end;
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&end));
    for (unsigned bins : {64u, 256u, 2048u, 8192u, 16384u, 32768u, 65536u, 131072u, 262144u, 524288u, 1048576u, 4194304u}) {
        unsigned* counts;
        CHECK(cudaMalloc(&counts, bins * sizeof(unsigned)));
        for (int distribution = 0; distribution < 3; ++distribution) {
            fill<<<1024, 256>>>(samples, n, bins, distribution);
            CHECK(cudaGetLastError());
            size_t bytes = 0;
            auto count = [&](void* memory) {
                return cub::DeviceHistogram::HistogramEven(memory, bytes, samples, counts, int(bins) + 1, 0,
                                                           int(bins), n);
            };
            CHECK(count(nullptr));
            void* memory;
            CHECK(cudaMalloc(&memory, bytes));
            CHECK(count(memory));
            CHECK(cudaDeviceSynchronize());
            std::vector<float> us;
            for (int sample = 0; sample < 7; ++sample) {
                CHECK(cudaEventRecord(start));
                for (int call = 0; call < 3; ++call) CHECK(count(memory));
                CHECK(cudaEventRecord(end));
                CHECK(cudaEventSynchronize(end));
                float ms;
                CHECK(cudaEventElapsedTime(&ms, start, end));
                us.push_back(ms * 1e3f / 3);
            }
            std::sort(us.begin(), us.end());
            std::vector<unsigned> found(bins);
            CHECK(cudaMemcpy(found.data(), counts, bins * sizeof(unsigned), cudaMemcpyDeviceToHost));
            if (std::accumulate(found.begin(), found.end(), 0ull) != n) {
                std::fprintf(stderr, "%u bins, %s: wrong counts\n", bins, distributions[distribution]);
                return 1;
            }
            std::printf("{\"impl\":\"cub\",\"version\":\"%d.%d.%d\",\"what\":\"histogram\",\"dtype\":\"i32\","
                        "\"elements\":%zu,\"bins\":%u,\"distribution\":\"%s\",\"gsamples\":%.2f,\"us\":%.3f,"
                        "\"us_min\":%.3f,\"us_max\":%.3f,\"gpu\":\"%s\"}\n",
                        CUB_MAJOR_VERSION, CUB_MINOR_VERSION, CUB_SUBMINOR_VERSION, n, bins,
                        distributions[distribution], n / (us[3] * 1e3), us[3], us[0], us[6], properties.name);
            std::fflush(stdout);
            CHECK(cudaFree(memory));
        }
        CHECK(cudaFree(counts));
    }
}
