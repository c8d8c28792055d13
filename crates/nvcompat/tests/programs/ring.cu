// A token goes around: each PE adds its number and hands it on by a put with a signal.
#include "check.h"

__global__ void around(long *token, uint64_t *signal, int rounds) {
    const int me = nvshmem_my_pe(), n = nvshmem_n_pes(), next = (me + 1) % n;
    for (int round = 1; round <= rounds; ++round) {
        if (me == 0) {
            nvshmem_long_put_signal(token, token, 1, signal, round, NVSHMEM_SIGNAL_SET, next);
            nvshmem_signal_wait_until(signal, NVSHMEM_CMP_EQ, round);
        } else {
            nvshmem_signal_wait_until(signal, NVSHMEM_CMP_GE, round);
            *token += me;
            nvshmem_long_put_signal_nbi(token, token, 1, signal, round, NVSHMEM_SIGNAL_SET, next);
        }
    }
}

__global__ void shift(int *dest) {
    const int me = nvshmem_my_pe(), n = nvshmem_n_pes();
    if (threadIdx.x == 0) nvshmem_int_p(dest, me, (me + 1) % n);
    nvshmemx_barrier_all_block();
}

int main() {
    begin();
    const int me = nvshmem_my_pe(), n = nvshmem_n_pes(), rounds = 10;
    long *token = (long *)nvshmem_calloc(1, sizeof(long));
    uint64_t *signal = (uint64_t *)nvshmem_calloc(1, sizeof(uint64_t));
    int *shifted = (int *)nvshmem_malloc(sizeof(int));
    CHECK(token && signal && shifted);
    void *args[] = {&token, &signal, (void *)&rounds};
    CHECK_EQ(nvshmemx_collective_launch((const void *)around, dim3(1), dim3(1), args, 0, 0), 0);
    CUDA(cudaDeviceSynchronize());
    if (me == 0) CHECK_EQ(host(token, 1)[0], (long)rounds * n * (n - 1) / 2);

    shift<<<1, 64>>>(shifted);
    CUDA(cudaDeviceSynchronize());
    CHECK_EQ(host(shifted, 1)[0], (me + n - 1) % n);

    // The same in stream order, when all have looked.
    nvshmem_barrier_all();
    cudaStream_t stream;
    CUDA(cudaStreamCreate(&stream));
    nvshmemx_int_p_on_stream(shifted, 100 + me, (me + 1) % n, stream);
    nvshmemx_barrier_all_on_stream(stream);
    CUDA(cudaStreamSynchronize(stream));
    CHECK_EQ(host(shifted, 1)[0], 100 + (me + n - 1) % n);
    nvshmem_free(token);
    nvshmem_free(signal);
    nvshmem_free(shifted);
    return end("ring");
}
