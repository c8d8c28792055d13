// A token goes around a ring of GPUs: each PE adds its number and hands it on, by a put with a signal. Plain NVSHMEM.
#include <cstdio>

#include <nvshmem.h>
#include <nvshmemx.h>

__global__ void around(long *token, uint64_t *signal) {
    const int me = nvshmem_my_pe(), n = nvshmem_n_pes(), next = (me + 1) % n;
    if (me != 0) nvshmem_signal_wait_until(signal, NVSHMEM_CMP_EQ, 1);
    *token += me;
    nvshmem_long_put_signal(token, token, 1, signal, 1, NVSHMEM_SIGNAL_SET, next);
    if (me == 0) nvshmem_signal_wait_until(signal, NVSHMEM_CMP_EQ, 1);
}

int main() {
    nvshmem_init();
    int devices = 0;
    cudaGetDeviceCount(&devices);
    if (devices == 0) {
        if (nvshmem_my_pe() == 0) fprintf(stderr, "no GPU\n");
        nvshmem_finalize();
        return 1;
    }
    cudaSetDevice(nvshmem_team_my_pe(NVSHMEMX_TEAM_NODE) % devices);
    long *token = static_cast<long *>(nvshmem_calloc(1, sizeof(long)));
    uint64_t *signal = static_cast<uint64_t *>(nvshmem_calloc(1, sizeof(uint64_t)));
    if (token == nullptr || signal == nullptr) return 1;

    void *arguments[] = {&token, &signal};
    int status = nvshmemx_collective_launch(reinterpret_cast<const void *>(around), dim3(1), dim3(1), arguments, 0, nullptr);
    cudaError_t ended = cudaDeviceSynchronize();

    const int n = nvshmem_n_pes();
    long sum = -1;
    cudaMemcpy(&sum, token, sizeof(sum), cudaMemcpyDeviceToHost);
    const bool first = nvshmem_my_pe() == 0;
    const bool right = status == 0 && ended == cudaSuccess && (!first || sum == static_cast<long>(n) * (n - 1) / 2);
    if (first) printf("%d PEs: the token brings %ld, %s\n", n, sum, right ? "as it should" : "which is wrong");
    nvshmem_free(signal);
    nvshmem_free(token);
    nvshmem_finalize();
    return right ? 0 : 1;
}
