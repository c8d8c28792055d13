// What the programs share: checked CUDA calls, medians, waits that end, and a result as one JSON line.
#pragma once
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CHECK(call)                                                                                          \
    do {                                                                                                     \
        cudaError_t status_ = (call);                                                                        \
        if (status_ != cudaSuccess) {                                                                        \
            std::fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(status_)); \
            std::exit(1);                                                                                    \
        }                                                                                                    \
    } while (0)

// Ends the program if a result is wrong.
inline void require(bool right, const char* format, ...) {
    if (right) return;
    va_list arguments;
    va_start(arguments, format);
    std::vfprintf(stderr, format, arguments);
    va_end(arguments);
    std::fputc('\n', stderr);
    std::exit(1);
}

// The least, middle and greatest of some times.
struct spread {
    double least, median, most;
    explicit spread(std::vector<double> times) {
        std::sort(times.begin(), times.end());
        size_t half = times.size() / 2;
        least = times.front();
        median = times.size() % 2 ? times[half] : (times[half - 1] + times[half]) / 2;
        most = times.back();
    }
};

// Microseconds of one of `calls` calls of `work` in `stream`, `repetitions` times, after one call that does not count.
template <class Work>
spread time_calls(cudaStream_t stream, int repetitions, int calls, Work work) {
    cudaEvent_t start, end;
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&end));
    work();
    CHECK(cudaGetLastError());
    CHECK(cudaStreamSynchronize(stream));
    std::vector<double> times;
    for (int r = 0; r < repetitions; ++r) {
        CHECK(cudaEventRecord(start, stream));
        for (int c = 0; c < calls; ++c) work();
        CHECK(cudaEventRecord(end, stream));
        CHECK(cudaEventSynchronize(end));
        float ms;
        CHECK(cudaEventElapsedTime(&ms, start, end));
        times.push_back(ms * 1e3 / calls);
    }
    CHECK(cudaEventDestroy(start));
    CHECK(cudaEventDestroy(end));
    return spread(times);
}

// Prints `{"scheme":"PROGRAM",` and the fields of `format`; with `time`, its microseconds. `run.sh` adds commit,
// machine and date to each line.
inline void print_row(const char* program, const spread* time, const char* format, ...) {
    std::printf("{\"scheme\":\"%s\",", program);
    va_list arguments;
    va_start(arguments, format);
    std::vprintf(format, arguments);
    va_end(arguments);
    if (time) std::printf(",\"us\":%.3f,\"us_min\":%.3f,\"us_max\":%.3f", time->median, time->least, time->most);
    std::printf("}\n");
    std::fflush(stdout);
}

// Nanoseconds on the GPU's clock.
__device__ inline unsigned long long now() {
    unsigned long long ns;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
    return ns;
}
