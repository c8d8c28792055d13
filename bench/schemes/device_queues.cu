// What a kernel that waits does to others: which calls of the driver and the runtime return only when kernels of other
// streams have ended, and how often kernels that wait for one another are put one behind the other when several threads
// launch at once. See README.md.
#include <cuda.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "scheme.h"

using clock_type = std::chrono::steady_clock;
double ms_since(clock_type::time_point start) {
    return std::chrono::duration<double, std::milli>(clock_type::now() - start).count();
}

constexpr unsigned long long hold_ns = 25'000'000;

// Runs for 25 ms; says that it has begun.
__global__ void hold(volatile int* begun) {
    const unsigned long long start = now();
    *begun = 1;
    __threadfence_system();
    while (now() - start < hold_ns) __nanosleep(1000);
}

__global__ void lazy_first() {}
__global__ void lazy_after_attributes() {}
__global__ void touch(int* word) { *word = 1; }
__device__ int variable;
// Needs `n` words of stack, as the compiler can not know which are read.
__global__ void with_stack(int* word, int n) {
    volatile int stack[4096];
    for (int k = 0; k < n; ++k) stack[k * 31 % 4096] = k;
    *word = stack[n];
}

#define CHECK_DRIVER(call)                                                     \
    do {                                                                       \
        CUresult status_ = (call);                                             \
        require(status_ == CUDA_SUCCESS, "%s: CUDA error %d", #call, status_); \
    } while (0)

// A function of the driver, without linking to it. (`cuda.h` says which version of it `NAME` is.)
template <class Function>
Function* driver_function(const char* name, Function*) {
    void* found = nullptr;
    cudaDriverEntryPointQueryResult result;
    CHECK(cudaGetDriverEntryPointByVersion(name, &found, 12000, cudaEnableDefault, &result));
    require(found && result == cudaDriverEntryPointSuccess, "no %s in the driver", name);
    return reinterpret_cast<Function*>(found);
}
#define DRIVER(name) driver_function(#name, static_cast<decltype(::name)*>(nullptr))

// Times `call` while `hold` runs in `busy`.
struct blocking_bench {
    cudaStream_t busy;
    int* begun;  // on the host

    bool row(const char* name, const std::function<void()>& call) const {
        *static_cast<volatile int*>(begun) = 0;
        hold<<<1, 1, 0, busy>>>(begun);
        CHECK(cudaGetLastError());
        const auto launched = clock_type::now();
        while (!*static_cast<volatile int*>(begun)) require(ms_since(launched) < 5000, "the kernel does not begin");
        const auto start = clock_type::now();
        call();
        const double ms = ms_since(start);
        // Whether it came back only when the kernel had ended.
        const cudaError_t state = cudaStreamQuery(busy);
        require(state == cudaSuccess || state == cudaErrorNotReady, "%s: %s", name, cudaGetErrorString(state));
        // "Not ready" may be kept as the last error.
        (void)cudaGetLastError();
        CHECK(cudaStreamSynchronize(busy));
        const bool waits = state == cudaSuccess;
        print_row("device_queues", nullptr, "\"what\":\"call\",\"call\":\"%s\",\"ms\":%.3f,\"waits\":%s", name, ms,
                  waits ? "true" : "false");
        return waits;
    }
};

void calls_beside_a_kernel() {
    blocking_bench bench;
    CHECK(cudaStreamCreateWithFlags(&bench.busy, cudaStreamNonBlocking));
    CHECK(cudaMallocHost(&bench.begun, sizeof(int)));
    cudaStream_t other;
    CHECK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    const size_t large = 32 << 20, huge = 64 << 20;
    char *device, *device2;
    CHECK(cudaMalloc(&device, large));
    CHECK(cudaMalloc(&device2, large));
    std::vector<char> host(large);
    int* word = reinterpret_cast<int*>(device);
    // Loads the kernels that are not to be lazy, and what copies need.
    cudaFuncAttributes attributes;
    CHECK(cudaFuncGetAttributes(&attributes, hold));
    CHECK(cudaFuncGetAttributes(&attributes, touch));
    CHECK(cudaFuncGetAttributes(&attributes, with_stack));
    touch<<<1, 1, 0, other>>>(word);
    CHECK(cudaMemcpyAsync(device, host.data(), large, cudaMemcpyHostToDevice, other));
    CHECK(cudaMemcpyAsync(host.data(), device, large, cudaMemcpyDeviceToHost, other));
    CHECK(cudaStreamSynchronize(other));

    require(!bench.row("nothing", [] {}), "the kernel ended too early: its time is no measure");
    void *small = nullptr, *big = nullptr, *pinned = nullptr;
    bench.row("cudaMalloc 64 MiB", [&] { CHECK(cudaMalloc(&big, huge)); });
    bench.row("cudaFree 64 MiB", [&] { CHECK(cudaFree(big)); });
    bench.row("cudaMalloc 4 KiB", [&] { CHECK(cudaMalloc(&small, 4096)); });
    bench.row("cudaFree 4 KiB", [&] { CHECK(cudaFree(small)); });
    bench.row("cudaMallocHost 4 KiB", [&] { CHECK(cudaMallocHost(&pinned, 4096)); });
    bench.row("cudaFreeHost 4 KiB", [&] { CHECK(cudaFreeHost(pinned)); });
    bench.row("cudaHostRegister 32 MiB", [&] { CHECK(cudaHostRegister(host.data(), large, 0)); });
    bench.row("cudaHostUnregister 32 MiB", [&] { CHECK(cudaHostUnregister(host.data())); });
    cudaStream_t stream;
    bench.row("cudaStreamCreate", [&] { CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking)); });
    bench.row("cudaStreamDestroy", [&] { CHECK(cudaStreamDestroy(stream)); });
    cudaEvent_t event;
    bench.row("cudaEventCreate", [&] { CHECK(cudaEventCreate(&event)); });
    bench.row("cudaEventRecord and Synchronize, other stream", [&] {
        CHECK(cudaEventRecord(event, other));
        CHECK(cudaEventSynchronize(event));
    });
    bench.row("cudaEventDestroy", [&] { CHECK(cudaEventDestroy(event)); });
    auto copy = [&](void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
        CHECK(cudaMemcpyAsync(to, from, bytes, kind, other));
        CHECK(cudaStreamSynchronize(other));
    };
    bench.row("host to device, pageable, 4 B", [&] { copy(device, host.data(), 4, cudaMemcpyHostToDevice); });
    bench.row("host to device, pageable, 32 MiB", [&] { copy(device, host.data(), large, cudaMemcpyHostToDevice); });
    bench.row("device to host, pageable, 4 B", [&] { copy(host.data(), device, 4, cudaMemcpyDeviceToHost); });
    bench.row("device to host, pageable, 32 MiB", [&] { copy(host.data(), device, large, cudaMemcpyDeviceToHost); });
    bench.row("device to device, 32 MiB", [&] { copy(device2, device, large, cudaMemcpyDeviceToDevice); });
    bench.row("cudaMemcpy2DAsync, device to device", [&] {
        CHECK(cudaMemcpy2DAsync(device2, 8, device, 8, 4, 1000, cudaMemcpyDeviceToDevice, other));
        CHECK(cudaStreamSynchronize(other));
    });
    bench.row("cudaMemsetAsync", [&] {
        CHECK(cudaMemsetAsync(device, 0, large, other));
        CHECK(cudaStreamSynchronize(other));
    });
    bench.row("cudaMemcpy (no stream), 64 B to the device",
              [&] { CHECK(cudaMemcpy(device, host.data(), 64, cudaMemcpyHostToDevice)); });
    bench.row("cudaMemcpyToSymbol", [&] {
        const int value = 1;
        CHECK(cudaMemcpyToSymbol(variable, &value, sizeof(value)));
    });
    bench.row("first launch of a lazily loaded kernel", [&] {
        lazy_first<<<1, 1, 0, other>>>();
        CHECK(cudaGetLastError());
    });
    bench.row("attributes of a lazily loaded kernel",
              [&] { CHECK(cudaFuncGetAttributes(&attributes, lazy_after_attributes)); });
    bench.row("its first launch", [&] {
        lazy_after_attributes<<<1, 1, 0, other>>>();
        CHECK(cudaGetLastError());
    });
    bench.row("first launch with a larger stack", [&] {
        with_stack<<<1, 1, 0, other>>>(word, 100);
        CHECK(cudaGetLastError());
    });
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    bench.row("capture and instantiate a graph", [&] {
        CHECK(cudaStreamBeginCapture(other, cudaStreamCaptureModeThreadLocal));
        touch<<<1, 1, 0, other>>>(word);
        CHECK(cudaStreamEndCapture(other, &graph));
        CHECK(cudaGraphInstantiate(&executable, graph, 0));
    });
    bench.row("launch a graph and wait", [&] {
        CHECK(cudaGraphLaunch(executable, other));
        CHECK(cudaStreamSynchronize(other));
    });
    bench.row("destroy a graph", [&] {
        CHECK(cudaGraphExecDestroy(executable));
        CHECK(cudaGraphDestroy(graph));
    });

    CUmemAllocationProp property = {};
    property.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    property.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    CUmemAccessDesc access = {};
    access.location = property.location;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    CUdeviceptr address = 0;
    CUmemGenericAllocationHandle memory;
    auto reserve = DRIVER(cuMemAddressReserve);
    auto create = DRIVER(cuMemCreate);
    auto map = DRIVER(cuMemMap);
    auto set_access = DRIVER(cuMemSetAccess);
    auto unmap = DRIVER(cuMemUnmap);
    auto release = DRIVER(cuMemRelease);
    auto address_free = DRIVER(cuMemAddressFree);
    bench.row("cuMemAddressReserve", [&] { CHECK_DRIVER(reserve(&address, huge, 0, 0, 0)); });
    bench.row("cuMemCreate 64 MiB", [&] { CHECK_DRIVER(create(&memory, huge, &property, 0)); });
    bench.row("cuMemMap", [&] { CHECK_DRIVER(map(address, huge, 0, memory, 0)); });
    bench.row("cuMemSetAccess", [&] { CHECK_DRIVER(set_access(address, huge, &access, 1)); });
    bench.row("cuMemUnmap", [&] { CHECK_DRIVER(unmap(address, huge)); });
    bench.row("cuMemRelease", [&] { CHECK_DRIVER(release(memory)); });
    bench.row("cuMemAddressFree", [&] { CHECK_DRIVER(address_free(address, huge)); });
    const char* ptx = ".version 7.8\n.target sm_80\n.address_size 64\n.visible .entry nothing() { ret; }\n";
    CUmodule module;
    CUfunction function;
    auto load = DRIVER(cuModuleLoadData);
    auto get = DRIVER(cuModuleGetFunction);
    auto unload = DRIVER(cuModuleUnload);
    bench.row("cuModuleLoadData", [&] { CHECK_DRIVER(load(&module, ptx)); });
    bench.row("cuModuleGetFunction", [&] { CHECK_DRIVER(get(&function, module, "nothing")); });
    bench.row("cuModuleUnload", [&] { CHECK_DRIVER(unload(module)); });
    require(bench.row("cudaDeviceSynchronize", [] { CHECK(cudaDeviceSynchronize()); }),
            "cudaDeviceSynchronize came back before the kernel had ended");
    CHECK(cudaStreamDestroy(other));
    CHECK(cudaStreamDestroy(bench.busy));
    for (char* at : {device, device2}) CHECK(cudaFree(at));
    CHECK(cudaFreeHost(bench.begun));
}

constexpr int rounds = 10, repetitions = 24;
constexpr unsigned long long in_vain_ns = 8'000'000;

// One of `kernels` kernels that come together `rounds` times. Gives up after 8 ms and says so.
__global__ void come_together(unsigned* come, unsigned* gave_up, unsigned kernels) {
    const unsigned long long start = now();
    for (unsigned round = 1; round <= rounds; ++round) {
        atomicAdd(come, 1u);
        while (atomicAdd(come, 0u) < round * kernels) {
            if (now() - start > in_vain_ns) {
                atomicAdd(gave_up, 1u);
                return;
            }
        }
    }
}

enum class launching { race, turns, one_thread };

// Whether all kernels of one repetition came together: T threads launch at once, each into W new streams.
bool all_came(launching how, int threads, int streams, unsigned* words) {
    CHECK(cudaMemset(words, 0, 2 * sizeof(unsigned)));
    const unsigned kernels = threads * streams;
    std::vector<cudaStream_t> stream(kernels);
    for (auto& s : stream) CHECK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    CHECK(cudaDeviceSynchronize());
    std::atomic<int> ready{0};
    std::mutex turn;
    auto launch = [&](int first, int last) {
        for (int k = first; k < last; ++k) {
            std::unique_lock<std::mutex> lock(turn, std::defer_lock);
            if (how == launching::turns) lock.lock();
            come_together<<<1, 1, 0, stream[k]>>>(words, words + 1, kernels);
            CHECK(cudaGetLastError());
        }
    };
    if (how == launching::one_thread) {
        launch(0, static_cast<int>(kernels));
    } else {
        std::vector<std::thread> thread;
        for (int t = 0; t < threads; ++t) {
            thread.emplace_back([&, t] {
                CHECK(cudaSetDevice(0));
                ++ready;
                while (ready < threads) std::this_thread::yield();
                launch(t * streams, (t + 1) * streams);
            });
        }
        for (auto& t : thread) t.join();
    }
    CHECK(cudaDeviceSynchronize());
    for (auto s : stream) CHECK(cudaStreamDestroy(s));
    unsigned found[2];
    CHECK(cudaMemcpy(found, words, sizeof(found), cudaMemcpyDeviceToHost));
    require(found[1] || found[0] == rounds * kernels, "%u kernels came %u times", kernels, found[0]);
    return found[1] == 0;
}

void kernels_that_wait_for_one_another() {
    const char* connections = std::getenv("CUDA_DEVICE_MAX_CONNECTIONS");
    unsigned* words;
    CHECK(cudaMalloc(&words, 2 * sizeof(unsigned)));
    cudaFuncAttributes attributes;
    CHECK(cudaFuncGetAttributes(&attributes, come_together));
    const struct {
        launching how;
        const char* name;
    } schemes[] = {{launching::race, "threads race"},
                   {launching::turns, "threads take turns"},
                   {launching::one_thread, "one thread launches"}};
    const int shapes[][2] = {{2, 1}, {3, 1}, {4, 1}, {6, 1}, {8, 1}, {2, 2}, {3, 2}, {4, 2}, {1, 8}};
    for (const auto& scheme : schemes) {
        for (const auto& [threads, streams] : shapes) {
            int failed = 0;
            for (int r = 0; r < repetitions; ++r) failed += !all_came(scheme.how, threads, streams, words);
            print_row("device_queues", nullptr,
                      "\"what\":\"kernels that wait for one another\",\"launching\":\"%s\",\"connections\":\"%s\","
                      "\"threads\":%d,\"streams\":%d,\"repetitions\":%d,\"failed\":%d",
                      scheme.name, connections ? connections : "default", threads, streams, repetitions, failed);
        }
    }
    CHECK(cudaFree(words));
}

int main(int argc, char** argv) {
    // `launches`: only the second part, which is to be run with other settings of CUDA_DEVICE_MAX_CONNECTIONS, too.
    if (argc < 2 || std::string(argv[1]) != "launches") calls_beside_a_kernel();
    kernels_that_wait_for_one_another();
}
