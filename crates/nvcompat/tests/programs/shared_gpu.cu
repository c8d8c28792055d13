// Two PEs on each GPU, as threads: their kernels are of modules that each loads for itself, so that each has a variable of
// its own to find its world in, and streams of its own, for the default ones are all PEs' of a GPU. The kernel is written as
// a compiler of another language would have it.
#define NVSHMEM_HOSTLIB_ONLY
#include "check.h"
#include <cuda.h>
#include <atomic>
#include <cuda_fp16.h>

// Stores 100 and its PE's number on the next PE.
static const char *const kernel = R"(
.version 8.0
.target sm_75
.address_size 64
.visible .const .align 8 .b8 nvshmem_cw_state_1[128];
.visible .entry to_the_next(.param .u64 at)
{
    .reg .pred %last;
    .reg .b32 %me, %pes, %next, %value;
    .reg .b64 %to, %stride, %away;
    ld.param.u64 %to, [at];
    ld.const.s32 %me, [nvshmem_cw_state_1];
    ld.const.s32 %pes, [nvshmem_cw_state_1+4];
    ld.const.u64 %stride, [nvshmem_cw_state_1+16];
    add.s32 %next, %me, 1;
    setp.eq.s32 %last, %next, %pes;
    selp.s32 %next, 0, %next, %last;
    sub.s32 %next, %next, %me;
    cvt.s64.s32 %away, %next;
    mul.lo.s64 %away, %away, %stride;
    add.s64 %to, %to, %away;
    add.s32 %value, %me, 100;
    st.global.u32 [%to], %value;
    ret;
}
)";

static std::atomic<int> ended;
static CUmodule modules[1024];

template <class F> static F driver(const char *name) {
    void *found = nullptr;
    cudaDriverEntryPointQueryResult how;
    CUDA(cudaGetDriverEntryPointByVersion(name, &found, 12000, cudaEnableDefault, &how));
    if (found == nullptr) exit(3);
    return (F)found;
}
#define DRIVER(function, ...) CHECK_EQ(driver<decltype(&function)>(#function)(__VA_ARGS__), CUDA_SUCCESS)

static void one_of_two(void *argument) {
    const int gpus = *(int *)argument;
    nvshmem_init();
    const int me = nvshmem_my_pe(), pes = nvshmem_n_pes();
    CUDA(cudaSetDevice(me % gpus));
    // 4 numbers, then one for each PE.
    int *at = (int *)nvshmem_calloc(4 + pes, sizeof(int));
    __half *halves = (__half *)nvshmem_malloc(2 * sizeof(__half));
    uint64_t *signals = (uint64_t *)nvshmem_calloc(2, sizeof(uint64_t));
    CHECK(at != nullptr && halves != nullptr && signals != nullptr);
    cudaStream_t stream, waits_for_default;
    CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CUDA(cudaStreamCreate(&waits_for_default));
    CUmodule &module = modules[me];
    CUfunction function;
    DRIVER(cuModuleLoadData, &module, kernel);
    CHECK_EQ(nvshmemx_cumodule_init(module), 0);
    nvshmem_barrier_all();
    // A module is one PE's, and stays it; this one's may be told again.
    if (me >= gpus) CHECK(nvshmemx_cumodule_init(modules[me - gpus]) != 0);
    CHECK_EQ(nvshmemx_cumodule_init(module), 0);
    DRIVER(cuModuleGetFunction, &function, module, "to_the_next");
    nvshmem_barrier_all();
    void *arguments[] = {&at};
    DRIVER(cuLaunchKernel, function, 1u, 1u, 1u, 1u, 1u, 1u, 0u, stream, arguments, (void **)0);
    CUDA(cudaStreamSynchronize(stream));
    nvshmem_barrier_all();
    const int before = (me + pes - 1) % pes;
    CHECK_EQ(host(at, 1)[0], 100 + before);
    // What the library launches.
    nvshmem_int_put(at + 1, at, 1, (me + 1) % pes);
    CHECK_EQ(nvshmem_int_atomic_fetch_add(at + 2, 1, me), 0);
    nvshmem_barrier_all();
    CHECK_EQ(host(at + 1, 1)[0], 100 + (before + pes - 1) % pes);
    // Where others' work may be in front, nothing waits; if it did, this would not end.
    for (cudaStream_t shared : {(cudaStream_t)0, cudaStreamLegacy, cudaStreamPerThread, waits_for_default}) {
        CHECK(nvshmemx_int_sum_reduce_on_stream(NVSHMEM_TEAM_WORLD, at + 3, at, 1, shared) != 0);
        CHECK(nvshmemx_half_sum_reduce_on_stream(NVSHMEM_TEAM_WORLD, halves + 1, halves, 1, shared) != 0);
        CHECK(nvshmemx_barrier_on_stream(NVSHMEM_TEAM_WORLD, shared) != 0);
        nvshmemx_signal_wait_until_on_stream(signals + 1, NVSHMEM_CMP_EQ, 1, shared);
        nvshmemx_int_wait_until_on_stream(at + 3, NVSHMEM_CMP_EQ, 1, shared);
        CUDA(cudaStreamSynchronize(shared));
    }
    // Its own streams are for all of it, also the types whose kernels others load when they need them.
    const __half mine = __float2half(1.5f * me);
    CUDA(cudaMemcpyAsync(halves, &mine, sizeof mine, cudaMemcpyDefault, stream));
    CUDA(cudaStreamSynchronize(stream));
    nvshmem_barrier_all();
    CHECK_EQ(nvshmemx_int_sum_reduce_on_stream(NVSHMEM_TEAM_WORLD, at + 3, at, 1, stream), 0);
    CHECK_EQ(nvshmemx_half_sum_reduce_on_stream(NVSHMEM_TEAM_WORLD, halves + 1, halves, 1, stream), 0);
    CHECK_EQ(nvshmemx_int_fcollect_on_stream(NVSHMEM_TEAM_WORLD, at + 4, at, 1, stream), 0);
    CHECK_EQ(nvshmemx_int_sum_reducescatter_on_stream(NVSHMEM_TEAM_WORLD, at + 2, at + 4, 1, stream), 0);
    nvshmemx_signal_op_on_stream(signals, 7, NVSHMEM_SIGNAL_SET, (me + 1) % pes, stream);
    nvshmemx_signal_wait_until_on_stream(signals, NVSHMEM_CMP_EQ, 7, stream);
    CHECK_EQ(nvshmemx_barrier_on_stream(NVSHMEM_TEAM_WORLD, stream), 0);
    CUDA(cudaStreamSynchronize(stream));
    CHECK_EQ(host(at + 3, 1)[0], 100 * pes + pes * (pes - 1) / 2);
    CHECK_EQ(__half2float(host(halves + 1, 1)[0]), 0.75f * pes * (pes - 1));
    CHECK_EQ(host(at + 2, 1)[0], pes * (100 + (me + pes - 1) % pes));
    // From the host.
    nvshmem_barrier_all();
    CHECK_EQ(nvshmem_int_max_reduce(NVSHMEM_TEAM_WORLD, at + 3, at, 1), 0);
    CHECK_EQ(host(at + 3, 1)[0], 99 + pes);
    nvshmem_barrier_all();
    CHECK_EQ(nvshmemx_cumodule_finalize(module), 0);
    for (void *object : {(void *)signals, (void *)halves, (void *)at}) nvshmem_free(object);
    CUDA(cudaStreamDestroy(stream));
    CUDA(cudaStreamDestroy(waits_for_default));
    nvshmem_finalize();
    ++ended;
}

int main() {
    int gpus = 0;
    CUDA(cudaGetDeviceCount(&gpus));
    CHECK_EQ(nvshmem_cw_spmd(2 * gpus, one_of_two, &gpus), 0);
    CHECK_EQ(ended, 2 * gpus);
    begin();
    return end("shared_gpu");
}
