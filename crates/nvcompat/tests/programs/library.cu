// Kernels of a library and of a module that the program loads by the driver, each with a variable of its own to find its world
// in: they are told by nvshmemx_culibrary_init and nvshmemx_cumodule_init. The kernel is written as a compiler of another
// language would have it; what is no such module is refused.
#define NVSHMEM_HOSTLIB_ONLY
#include "check.h"
#include <cuda.h>

// Stores its number and its PE's on the next PE.
static const char *const kernel = R"(
.version 8.0
.target sm_75
.address_size 64
.visible .const .align 8 .b8 nvshmem_cw_state_1[128];
.visible .entry to_the_next(.param .u64 at, .param .u32 number)
{
    .reg .pred %last;
    .reg .b32 %me, %pes, %next, %value, %number;
    .reg .b64 %to, %stride, %away;
    ld.param.u64 %to, [at];
    ld.param.u32 %number, [number];
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
    add.s32 %value, %me, %number;
    st.global.u32 [%to], %value;
    ret;
}
)";
static const char *const other = R"(
.version 8.0
.target sm_75
.address_size 64
.visible .entry nothing() { ret; }
)";

template <class F> static F driver(const char *name) {
    void *found = nullptr;
    cudaDriverEntryPointQueryResult how;
    CUDA(cudaGetDriverEntryPointByVersion(name, &found, 12000, cudaEnableDefault, &how));
    if (found == nullptr) exit(3);
    return (F)found;
}
#define DRIVER(function, ...) CHECK_EQ(driver<decltype(&function)>(#function)(__VA_ARGS__), CUDA_SUCCESS)

int main() {
    begin();
    const int me = nvshmem_my_pe(), n = nvshmem_n_pes(), left = (me + n - 1) % n;
    int *at = (int *)nvshmem_calloc(1, sizeof(int));
    CHECK(at != nullptr);
    CUlibrary library, strange;
    CUmodule module, none;
    CUkernel of_library;
    CUfunction functions[2];
    DRIVER(cuLibraryLoadData, &library, kernel, (CUjit_option *)nullptr, (void **)nullptr, 0u, (CUlibraryOption *)nullptr,
           (void **)nullptr, 0u);
    DRIVER(cuLibraryLoadData, &strange, other, (CUjit_option *)nullptr, (void **)nullptr, 0u, (CUlibraryOption *)nullptr,
           (void **)nullptr, 0u);
    DRIVER(cuModuleLoadData, &module, kernel);
    DRIVER(cuModuleLoadData, &none, other);
    CHECK_EQ(nvshmemx_culibrary_init(library), 0);
    CHECK_EQ(nvshmemx_cumodule_init(module), 0);
    CHECK(nvshmemx_culibrary_init(strange) != 0 && nvshmemx_cumodule_init(none) != 0);
    DRIVER(cuLibraryGetKernel, &of_library, library, "to_the_next");
    DRIVER(cuKernelGetFunction, &functions[0], of_library);
    DRIVER(cuModuleGetFunction, &functions[1], module, "to_the_next");
    for (int i = 0; i < 2; ++i) {
        int number = 100 * (i + 1);
        void *arguments[] = {&at, &number};
        nvshmem_barrier_all();
        DRIVER(cuLaunchKernel, functions[i], 1u, 1u, 1u, 1u, 1u, 1u, 0u, (CUstream) nullptr, arguments, (void **)nullptr);
        CUDA(cudaDeviceSynchronize());
        nvshmem_barrier_all();
        CHECK_EQ(host(at, 1)[0], number + left);
    }
    CHECK_EQ(nvshmemx_culibrary_finalize(library), 0);
    CHECK_EQ(nvshmemx_cumodule_finalize(module), 0);
    return end("library");
}
