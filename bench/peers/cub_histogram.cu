// CUB's DeviceHistogram on the samples of `crosswarp bench histogram`, 2^27 int32 (or the power of two given):
// HistogramEven of 0..bins, one value a bin, and HistogramRange of 0..2^30 in bins whose edges are squares
// (rows "edges"). One JSON line a row.
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
    const unsigned span = 1u << 30;
    for (unsigned row = 0; row < 12 + 4; ++row) {
        const bool even = row < 12;
        const unsigned bins = (unsigned[]){64, 256, 2048, 8192, 16384, 32768, 65536, 131072, 262144, 524288, 1048576,
                                           4194304, 64, 1024, 16384, 262144}[row];
        unsigned* counts;
        CHECK(cudaMalloc(&counts, bins * sizeof(unsigned)));
        std::vector<int> squares;
        for (unsigned long long k = 0; k <= bins; ++k) squares.push_back(int(k * k * (span / bins) / bins));
        int* edges;
        CHECK(cudaMalloc(&edges, squares.size() * sizeof(int)));
        CHECK(cudaMemcpy(edges, squares.data(), squares.size() * sizeof(int), cudaMemcpyHostToDevice));
        for (int distribution = 0; distribution < (even ? 3 : 1); ++distribution) {
            const char* name = even ? distributions[distribution] : "edges";
            fill<<<1024, 256>>>(samples, n, even ? bins : span, distribution);
            CHECK(cudaGetLastError());
            size_t bytes = 0;
            auto count = [&](void* memory) {
                return even ? cub::DeviceHistogram::HistogramEven(memory, bytes, samples, counts, int(bins) + 1, 0,
                                                                  int(bins), n)
                            : cub::DeviceHistogram::HistogramRange(memory, bytes, samples, counts, int(bins) + 1,
                                                                   edges, n);
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
                std::fprintf(stderr, "%u bins, %s: wrong counts\n", bins, name);
                return 1;
            }
            std::printf("{\"impl\":\"cub\",\"version\":\"%d.%d.%d\",\"what\":\"histogram\",\"dtype\":\"i32\","
                        "\"elements\":%zu,\"bins\":%u,\"distribution\":\"%s\",\"gsamples\":%.2f,\"us\":%.3f,"
                        "\"us_min\":%.3f,\"us_max\":%.3f,\"gpu\":\"%s\"}\n",
                        CUB_MAJOR_VERSION, CUB_MINOR_VERSION, CUB_SUBMINOR_VERSION, n, bins,
                        name, n / (us[3] * 1e3), us[3], us[0], us[6], properties.name);
            std::fflush(stdout);
            CHECK(cudaFree(memory));
        }
        CHECK(cudaFree(counts));
        CHECK(cudaFree(edges));
    }
}
