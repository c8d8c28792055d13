// Measures NCCL's all-reduce and all-to-all over all GPUs of this host, with the definitions of
// README.md. One process; each GPU has a host thread of its own, so that no GPU waits for the launches
// of another's. Calls follow one another on a stream, without CUDA graphs.
//
//     nccl [gpus]      all GPUs if not said; one JSON object per line
#include <nccl.h>

#include <string>
#include <thread>

#include "measure.h"

#define CHECK_NCCL(call)                                                                    \
    do {                                                                                    \
        ncclResult_t status_ = (call);                                                      \
        if (status_ != ncclSuccess) {                                                       \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call,                   \
                    ncclGetErrorString(status_));                                           \
            fail();                                                                         \
        }                                                                                   \
    } while (0)

struct gpu {
    ncclComm_t comm;
    cudaStream_t stream;
    float* source;
    float* dest;
};

constexpr size_t largest = size_t(1) << 30;

void all_reduce(const gpu& g, size_t bytes, int) {
    CHECK_NCCL(ncclAllReduce(g.source, g.dest, bytes / sizeof(float), ncclFloat, ncclSum, g.comm, g.stream));
}

// `bytes`: what each GPU receives in all, an equal part from each, itself included.
void all_to_all(const gpu& g, size_t bytes, int gpus) {
    size_t n = bytes / sizeof(float) / gpus;
    CHECK_NCCL(ncclGroupStart());
    for (int peer = 0; peer < gpus; ++peer) {
        CHECK_NCCL(ncclSend(g.source + peer * n, n, ncclFloat, peer, g.comm, g.stream));
        CHECK_NCCL(ncclRecv(g.dest + peer * n, n, ncclFloat, peer, g.comm, g.stream));
    }
    CHECK_NCCL(ncclGroupEnd());
}

using collective = void (*)(const gpu&, size_t, int);

// Microseconds per call, one value per repetition, on GPU `rank`.
std::vector<double> repeat(const gpu& g, int rank, int gpus, collective call, size_t bytes, int iterations) {
    CHECK_CUDA(cudaSetDevice(rank));
    cudaEvent_t begin, end;
    CHECK_CUDA(cudaEventCreate(&begin));
    CHECK_CUDA(cudaEventCreate(&end));
    std::vector<double> times;
    for (int repetition = -warmups; repetition < repetitions; ++repetition) {
        // One call before the clock starts: the GPUs have met when it ends.
        call(g, bytes, gpus);
        CHECK_CUDA(cudaEventRecord(begin, g.stream));
        for (int i = 0; i < iterations; ++i) call(g, bytes, gpus);
        CHECK_CUDA(cudaEventRecord(end, g.stream));
        CHECK_CUDA(cudaStreamSynchronize(g.stream));
        float ms;
        CHECK_CUDA(cudaEventElapsedTime(&ms, begin, end));
        if (repetition >= 0) times.push_back(1000.0 * ms / iterations);
    }
    CHECK_CUDA(cudaEventDestroy(begin));
    CHECK_CUDA(cudaEventDestroy(end));
    return times;
}

// `factor`: bytes over each GPU's links, one way, per byte of the row: the usual bus bandwidth.
void measure(const std::vector<gpu>& all, const char* what, collective call, size_t bytes, int iterations,
             double factor) {
    int gpus = (int)all.size();
    std::vector<std::vector<double>> times(gpus);
    std::vector<std::thread> threads;
    for (int rank = 0; rank < gpus; ++rank) {
        threads.emplace_back([&, rank] {
            times[rank] = repeat(all[rank], rank, gpus, call, bytes, iterations);
        });
    }
    for (std::thread& thread : threads) thread.join();
    int version = 0;
    CHECK_NCCL(ncclGetVersion(&version));
    std::string name = std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
                       std::to_string(version % 100);
    print_row("nccl", name.c_str(), {what, gpus, bytes, "stream", 0, 0, iterations}, times[0],
              factor * (double)bytes);
}

// Every GPU's source is all ones, so an all-reduce gives the number of GPUs everywhere.
void check_all_reduce(const std::vector<gpu>& all, size_t bytes) {
    for (size_t rank = 0; rank < all.size(); ++rank) {
        CHECK_CUDA(cudaSetDevice((int)rank));
        float ends[2];
        CHECK_CUDA(cudaMemcpy(&ends[0], all[rank].dest, sizeof(float), cudaMemcpyDeviceToHost));
        CHECK_CUDA(cudaMemcpy(&ends[1], all[rank].dest + bytes / sizeof(float) - 1, sizeof(float),
                              cudaMemcpyDeviceToHost));
        if (ends[0] != (float)all.size() || ends[1] != (float)all.size()) {
            fprintf(stderr, "nccl: GPU %zu has %g and %g, not %zu\n", rank, ends[0], ends[1], all.size());
            fail();
        }
    }
}

int main(int argc, char** argv) {
    // No NVLink multicast.
    setenv("NCCL_NVLS_ENABLE", "0", 1);

    int found = 0;
    if (cudaGetDeviceCount(&found) != cudaSuccess) found = 0;
    int gpus = argc > 1 ? atoi(argv[1]) : found;
    if (gpus < 2 || gpus > found) {
        fprintf(stderr, "nccl: needs 2 or more GPUs; %d asked for, %d found\n", gpus, found);
        return 2;
    }
    std::vector<ncclComm_t> comms(gpus);
    CHECK_NCCL(ncclCommInitAll(comms.data(), gpus, nullptr));
    std::vector<float> ones(largest / sizeof(float), 1.0f);
    std::vector<gpu> all(gpus);
    for (int rank = 0; rank < gpus; ++rank) {
        CHECK_CUDA(cudaSetDevice(rank));
        all[rank].comm = comms[rank];
        CHECK_CUDA(cudaStreamCreateWithFlags(&all[rank].stream, cudaStreamNonBlocking));
        CHECK_CUDA(cudaMalloc(&all[rank].source, largest));
        CHECK_CUDA(cudaMalloc(&all[rank].dest, largest));
        CHECK_CUDA(cudaMemcpy(all[rank].source, ones.data(), largest, cudaMemcpyHostToDevice));
    }
    double ring = 2.0 * (gpus - 1) / gpus, exchange = (gpus - 1.0) / gpus;
    struct {
        size_t bytes;
        int iterations;
    } sizes[] = {{size_t(1) << 10, 500}, {size_t(4) << 20, 200}, {size_t(1) << 30, 10}};
    for (auto size : sizes) {
        measure(all, "sum_f32", all_reduce, size.bytes, size.iterations, ring);
        check_all_reduce(all, size.bytes);
    }
    size_t bytes = largest / (sizeof(float) * gpus) * (sizeof(float) * gpus);
    measure(all, "alltoall", all_to_all, bytes, 10, exchange);
    for (int rank = 0; rank < gpus; ++rank) CHECK_NCCL(ncclCommDestroy(comms[rank]));
    return 0;
}
