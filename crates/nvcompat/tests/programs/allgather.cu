// Every PE's block to every PE, a thread for each, by puts of 16 bytes with a signal.
#include "check.h"

__global__ void gather(int4 *all, const int4 *mine, size_t n, uint64_t *signals) {
    const int me = nvshmem_my_pe(), n_pes = nvshmem_n_pes();
    for (int pe = threadIdx.x; pe < n_pes; pe += blockDim.x)
        nvshmem_put128_signal_nbi(all + me * n, mine, n, signals + me, 7, NVSHMEM_SIGNAL_SET, pe);
    for (int pe = threadIdx.x; pe < n_pes; pe += blockDim.x) nvshmem_signal_wait_until(signals + pe, NVSHMEM_CMP_EQ, 7);
}

int main() {
    begin();
    const int me = nvshmem_my_pe(), n_pes = nvshmem_n_pes();
    const size_t n = 300;
    int4 *all = (int4 *)nvshmem_align(256, n * n_pes * sizeof(int4)), *mine;
    uint64_t *signals = (uint64_t *)nvshmem_calloc(n_pes, sizeof(uint64_t));
    std::vector<int4> values(n);
    for (size_t i = 0; i < n; ++i) values[i] = make_int4(me, (int)i, me * 1000 + (int)i, -1);
    CUDA(cudaMalloc(&mine, n * sizeof(int4)));
    CUDA(cudaMemcpy(mine, values.data(), n * sizeof(int4), cudaMemcpyHostToDevice));
    meet_with_copies();
    gather<<<1, 32>>>(all, mine, n, signals);
    CUDA(cudaDeviceSynchronize());
    const auto got = host(all, n * n_pes);
    for (int pe = 0; pe < n_pes; ++pe)
        for (size_t i = 0; i < n; ++i) {
            CHECK_EQ(got[pe * n + i].x, pe);
            CHECK_EQ(got[pe * n + i].z, pe * 1000 + (int)i);
            CHECK_EQ(got[pe * n + i].w, -1);
        }
    return end("allgather");
}
