// CUB's DeviceReduce::Sum, measured as `crosswarp bench reduce` measures its own sums: see
// crates/lab/src/bench/reduce.rs for what cold, hot, graph and stream mean.
#include <cuda_fp16.h>

#include <cstdint>
#include <cstring>
#include <cub/cub.cuh>

#include "measure.h"

constexpr size_t cold_bytes = 512 << 20;
constexpr size_t most_calls = 100;
constexpr int counted = 9;  // repetitions that count, after one that does not

__global__ void read_all(const uint4* from, size_t n, unsigned* out) {
    unsigned any = 0;
    for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < n; i += size_t(gridDim.x) * blockDim.x) {
        uint4 v = from[i];
        any |= v.x ^ v.y ^ v.z ^ v.w;
    }
    if (any == 1) *out = any;  // keeps the loads
}

struct bench {
    cudaStream_t stream;
    cudaEvent_t start, end;
    uint4* flush;
    unsigned* out;

    bench() {
        CHECK_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
        CHECK_CUDA(cudaEventCreate(&start));
        CHECK_CUDA(cudaEventCreate(&end));
        CHECK_CUDA(cudaMalloc(&flush, cold_bytes));
        CHECK_CUDA(cudaMemset(flush, 0, cold_bytes));
        CHECK_CUDA(cudaMalloc(&out, 64));
    }

    template <class T, class Make> void sums(const char* type, Make make) {
        size_t free_bytes, total;
        CHECK_CUDA(cudaMemGetInfo(&free_bytes, &total));
        size_t largest = 0;
        for (int e = 10; e <= 30; e += 2) {
            if ((sizeof(T) << e) <= free_bytes / 2) largest = size_t(1) << e;
        }
        size_t capacity = std::max(cold_bytes / sizeof(T), largest);
        std::vector<T> some(std::min(capacity, size_t(1) << 22));
        uint64_t state = 88172645463325252ull;
        for (T& value : some) {
            state ^= state << 13, state ^= state >> 7, state ^= state << 17;
            value = make(uint32_t(state >> 32));
        }
        T* x;
        CHECK_CUDA(cudaMalloc(&x, capacity * sizeof(T)));
        for (size_t have = 0; have < capacity; have += some.size()) {
            size_t more = std::min(some.size(), capacity - have);
            CHECK_CUDA(cudaMemcpy(x + have, some.data(), more * sizeof(T), cudaMemcpyHostToDevice));
        }
        for (size_t n = 1 << 10; n <= largest; n *= 4) {
            for (const char* calls : {"cold_graph", "hot_graph", "cold_stream"}) row(type, x, capacity, n, calls);
        }
        CHECK_CUDA(cudaFree(x));
    }

    // Times of one of the `iterations` calls of a graph, or of `all` if there is none.
    template <class All> std::vector<double> timed(size_t iterations, bool cold, cudaGraphExec_t executable, All all) {
        std::vector<double> times;
        for (int repetition = 0; repetition <= counted; ++repetition) {
            if (cold) read_all<<<1056, 512, 0, stream>>>(flush, cold_bytes / 16, out + 8);
            CHECK_CUDA(cudaEventRecord(start, stream));
            if (executable) {
                CHECK_CUDA(cudaGraphLaunch(executable, stream));
            } else {
                all();
            }
            CHECK_CUDA(cudaEventRecord(end, stream));
            CHECK_CUDA(cudaStreamSynchronize(stream));
            float ms;
            CHECK_CUDA(cudaEventElapsedTime(&ms, start, end));
            if (repetition) times.push_back(ms * 1e3 / iterations);
        }
        return times;
    }

    // 2^25 f32, cut into segments as `SegmentCut` of crates/lab/src/bench/reduce.rs has it.
    void segments(const char* name, const std::vector<int64_t>& offsets) {
        constexpr size_t n = 1 << 25;
        constexpr int iterations = 10;
        float *x, *sums;
        int64_t* there;
        CHECK_CUDA(cudaMalloc(&x, n * sizeof(float)));
        std::vector<float> values(n);
        for (size_t i = 0; i < n; ++i) values[i] = float(i * 2654435761u >> 9 & 0x7fffff) / 4e6f - 1;
        CHECK_CUDA(cudaMemcpy(x, values.data(), n * sizeof(float), cudaMemcpyHostToDevice));
        const int count = int(offsets.size()) - 1;
        CHECK_CUDA(cudaMalloc(&sums, count * sizeof(float)));
        CHECK_CUDA(cudaMalloc(&there, offsets.size() * sizeof(int64_t)));
        CHECK_CUDA(cudaMemcpy(there, offsets.data(), offsets.size() * sizeof(int64_t), cudaMemcpyHostToDevice));
        size_t temporary = 0;
        void* room = nullptr;
        auto once = [&] {
            CHECK_CUDA(cub::DeviceSegmentedReduce::Sum(room, temporary, x, sums, count, there, there + 1, stream));
        };
        once();
        CHECK_CUDA(cudaMalloc(&room, temporary));
        once();
        CHECK_CUDA(cudaStreamSynchronize(stream));
        cudaGraph_t recorded;
        cudaGraphExec_t executable;
        CHECK_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
        for (int call = 0; call < iterations; ++call) once();
        CHECK_CUDA(cudaStreamEndCapture(stream, &recorded));
        CHECK_CUDA(cudaGraphInstantiate(&executable, recorded, 0));
        std::vector<double> times = timed(iterations, true, executable, once);
        CHECK_CUDA(cudaGraphExecDestroy(executable));
        CHECK_CUDA(cudaGraphDestroy(recorded));
        for (void* memory : {(void*)x, (void*)sums, (void*)there, room}) CHECK_CUDA(cudaFree(memory));
        char what[64], version[32];
        snprintf(what, sizeof(what), "reduce_segments_%s_f32_cold_graph", name);
        snprintf(version, sizeof(version), "%d.%d.%d", CUB_MAJOR_VERSION, CUB_MINOR_VERSION, CUB_SUBMINOR_VERSION);
        print_row("cub", version, {what, 1, n * sizeof(float), "", 0, 0, iterations}, times, double(n * sizeof(float)));
    }

    template <class T> void row(const char* type, const T* x, size_t capacity, size_t n, const char* calls) {
        size_t bytes = n * sizeof(T);
        size_t step = (bytes + 4095) / 4096 * 4096 / sizeof(T);
        size_t iterations = std::min(std::max(cold_bytes / (step * sizeof(T)), size_t(2)), most_calls);
        size_t places = std::max(capacity / step, size_t(1));
        bool hot = !strcmp(calls, "hot_graph"), graph = strcmp(calls, "cold_stream");
        size_t temporary = 0;
        CHECK_CUDA(cub::DeviceReduce::Sum(nullptr, temporary, x, reinterpret_cast<T*>(out), int64_t(n), stream));
        void* room;
        CHECK_CUDA(cudaMalloc(&room, temporary));
        auto all = [&] {
            for (size_t call = 0; call < iterations; ++call) {
                const T* from = x + (hot ? 0 : call % places * step);
                CHECK_CUDA(cub::DeviceReduce::Sum(room, temporary, from, reinterpret_cast<T*>(out), int64_t(n), stream));
            }
        };
        cudaGraphExec_t executable = nullptr;
        if (graph) {
            cudaGraph_t recorded;
            CHECK_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
            all();
            CHECK_CUDA(cudaStreamEndCapture(stream, &recorded));
            CHECK_CUDA(cudaGraphInstantiate(&executable, recorded, 0));
            CHECK_CUDA(cudaGraphDestroy(recorded));
        }
        std::vector<double> times = timed(iterations, !hot, executable, all);
        if (executable) CHECK_CUDA(cudaGraphExecDestroy(executable));
        CHECK_CUDA(cudaFree(room));
        char what[64], version[32];
        snprintf(what, sizeof(what), "reduce_sum_%s_%s", type, calls);
        snprintf(version, sizeof(version), "%d.%d.%d", CUB_MAJOR_VERSION, CUB_MINOR_VERSION, CUB_SUBMINOR_VERSION);
        print_row("cub", version, {what, 1, bytes, "", 0, 0, int(iterations)}, times, double(bytes));
    }
};

int main() {
    bench b;
    b.sums<float>("f32", [](uint32_t r) { return float(r >> 9) / 4e6f - 1; });
    b.sums<__half>("f16", [](uint32_t r) { return __half(float(r >> 9) / 4e6f - 1); });
    b.sums<double>("f64", [](uint32_t r) { return r / 2e9 - 1; });
    b.sums<int>("i32", [](uint32_t r) { return int(r); });
    static constexpr int64_t n = 1 << 25;
    auto every = [](std::vector<int64_t> offsets, int64_t from, int64_t to, int64_t step) {
        for (int64_t at = from; at < to; at += step) offsets.push_back(at);
        return offsets;
    };
    auto ended = [](std::vector<int64_t> offsets) {
        offsets.push_back(n);
        return offsets;
    };
    b.segments("tiny", ended(every({}, 0, n, 8)));
    b.segments("huge", ended(every({}, 0, n, 1 << 23)));
    b.segments("uneven", ended(every(every(every({}, 0, n / 4, 8), n / 4, n / 4 * 3, n / 2), n / 4 * 3, n, 8)));
    b.segments("rows", ended(every({}, 0, n, 4096)));
}
