// Two PEs on each GPU, as threads: their kernels are of modules that each loads for itself, so that each has a variable of
// its own to find its world in. The kernel is written as a compiler of another language would have it.
#define NVSHMEM_HOSTLIB_ONLY
#include "check.h"
#include <cuda.h>
#include <atomic>

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
    int *at = (int *)nvshmem_calloc(4, sizeof(int));
    CHECK(at != nullptr);
    CUmodule module;
    CUfunction function;
    DRIVER(cuModuleLoadData, &module, kernel);
    CHECK_EQ(nvshmemx_cumodule_init(module), 0);
    DRIVER(cuModuleGetFunction, &function, module, "to_the_next");
    nvshmem_barrier_all();
    void *arguments[] = {&at};
    DRIVER(cuLaunchKernel, function, 1u, 1u, 1u, 1u, 1u, 1u, 0u, (CUstream)0, arguments, (void **)0);
    CUDA(cudaDeviceSynchronize());
    nvshmem_barrier_all();
    const int before = (me + pes - 1) % pes;
    CHECK_EQ(host(at, 1)[0], 100 + before);
    // What the library launches.
    nvshmem_int_put(at + 1, at, 1, (me + 1) % pes);
    CHECK_EQ(nvshmem_int_atomic_fetch_add(at + 2, 1, me), 0);
    nvshmem_barrier_all();
    CHECK_EQ(host(at + 1, 1)[0], 100 + (before + pes - 1) % pes);
    nvshmemx_int_sum_reduce_on_stream(NVSHMEM_TEAM_WORLD, at + 3, at, 1, 0);
    CUDA(cudaDeviceSynchronize());
    CHECK_EQ(host(at + 3, 1)[0], 100 * pes + pes * (pes - 1) / 2);
    nvshmem_barrier_all();
    CHECK_EQ(nvshmemx_cumodule_finalize(module), 0);
    nvshmem_free(at);
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
