// What both peer programs share: checked CUDA calls, medians, and a result as one JSON line.
#pragma once
#include <cuda_runtime.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

// Ends this process at once: exit handlers of a communication library may wait for other PEs.
[[noreturn]] inline void fail() {
    fflush(nullptr);
    _exit(1);
}

// Repetitions of one row that count, after `warmups` that do not.
constexpr int repetitions = 15;
constexpr int warmups = 2;

#define CHECK_CUDA(call)                                                                    \
    do {                                                                                    \
        cudaError_t status_ = (call);                                                       \
        if (status_ != cudaSuccess) {                                                       \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call,                   \
                    cudaGetErrorString(status_));                                           \
            fail();                                                                         \
        }                                                                                   \
    } while (0)

// What one row is: the columns that say under which definition its time was taken.
struct definition {
    const char* what;
    int pes;
    size_t bytes;
    const char* scope;
    int blocks;
    int threads;
    int iterations;
};

// Prints one result. `times`: microseconds per iteration, one per repetition. `moved`: bytes over the
// busiest link per iteration for a bandwidth row, 0 for a latency row.
inline void print_row(const char* impl, const char* version, const definition& row,
                      std::vector<double> times, double moved) {
    std::sort(times.begin(), times.end());
    size_t half = times.size() / 2;
    double median = times.size() % 2 ? times[half] : (times[half - 1] + times[half]) / 2;
    printf("{\"impl\":\"%s\",\"version\":\"%s\",\"what\":\"%s\",\"pes\":%d,\"bytes\":%zu,"
           "\"scope\":\"%s\",\"blocks\":%d,\"threads\":%d,\"iterations\":%d,\"repetitions\":%zu,"
           "\"us\":%.3f,\"us_min\":%.3f,\"us_max\":%.3f",
           impl, version, row.what, row.pes, row.bytes, row.scope, row.blocks, row.threads,
           row.iterations, times.size(), median, times.front(), times.back());
    if (moved > 0) {
        printf(",\"bytes_per_second\":%.5g", moved / median * 1e6);
    }
    printf("}\n");
    fflush(stdout);
}
