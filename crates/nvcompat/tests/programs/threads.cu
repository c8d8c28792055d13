// PEs that are threads of this program, a GPU each; and that two of them on one GPU are refused, for the program's own
// kernels could not tell them apart.
#include "check.h"
#include <atomic>

static std::atomic<int> ended, refused;

__global__ void to_the_next(int *at, int *all, size_t n) {
    const int me = nvshmem_my_pe(), pes = nvshmem_n_pes();
    for (size_t i = threadIdx.x; i < n; i += blockDim.x) nvshmem_int_p(at + i, me * 1000 + (int)i, (me + 1) % pes);
    nvshmemx_barrier_all_block();
    nvshmemx_int_sum_reduce_block(NVSHMEM_TEAM_WORLD, all, at, n);
}

static void on_its_own(void *argument) {
    const int pes = *(int *)argument;
    nvshmem_init();
    const int me = nvshmem_my_pe();
    CHECK_EQ(nvshmem_n_pes(), pes);
    CUDA(cudaSetDevice(me));
    constexpr size_t n = 700;
    int *at = (int *)nvshmem_calloc(2 * n, sizeof(int)), *all = at + n;
    cudaStream_t stream;
    CUDA(cudaStreamCreate(&stream));
    to_the_next<<<1, 96, 0, stream>>>(at, all, n);
    CUDA(cudaStreamSynchronize(stream));
    const std::vector<int> got = host(at, 2 * n);
    for (size_t i = 0; i < n; ++i) {
        CHECK_EQ(got[i], (me + pes - 1) % pes * 1000 + (int)i);
        CHECK_EQ(got[n + i], 500 * pes * (pes - 1) + pes * (int)i);
    }
    nvshmemx_int_sum_reduce_on_stream(NVSHMEM_TEAM_WORLD, all, at, 1, stream);
    nvshmemx_barrier_all_on_stream(stream);
    CUDA(cudaStreamSynchronize(stream));
    CHECK_EQ(host(all, 1)[0], 500 * pes * (pes - 1));
    nvshmem_free(at);
    CUDA(cudaStreamDestroy(stream));
    nvshmem_finalize();
    ++ended;
}

static void beside_another(void *argument) {
    nvshmem_init();
    CUDA(cudaSetDevice(nvshmem_my_pe() % *(int *)argument));
    refused += nvshmem_malloc(64) == nullptr;
    nvshmem_finalize();
}

int main() {
    int gpus = 0;
    CUDA(cudaGetDeviceCount(&gpus));
    CHECK_EQ(nvshmem_cw_spmd(gpus, on_its_own, &gpus), 0);
    CHECK_EQ(ended, gpus);
    // Worlds of threads come one after the other.
    int one = 1;
    CHECK_EQ(nvshmem_cw_spmd(one, on_its_own, &one), 0);
    CHECK_EQ(ended, gpus + 1);
    CHECK_EQ(nvshmem_cw_spmd(gpus + 1, beside_another, &gpus), 0);
    CHECK_EQ(refused, gpus + 1);
    // The process is a PE, too, of another world.
    begin();
    return end("threads");
}
