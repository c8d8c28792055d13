// A line of points, each the mean of its neighbours, cut into parts: edges travel by puts with signals, and what comes out
// is that of one processor.
#include "check.h"

__global__ void step(double *now, double *next, size_t n, uint64_t *signals, uint64_t sweep, bool first, bool last) {
    const int me = nvshmem_my_pe(), n_pes = nvshmem_n_pes();
    // now[0] and now[n + 1] are the neighbours' edges.
    for (size_t i = 1 + threadIdx.x; i <= n; i += blockDim.x) next[i] = (now[i - 1] + now[i + 1]) / 2;
    if (threadIdx.x == 0) {
        if (first) next[0] = now[0];
        if (last) next[n + 1] = now[n + 1];
    }
    __syncthreads();
    if (!first) nvshmemx_double_put_signal_nbi_block(next + n + 1, next + 1, 1, signals + 1, sweep, NVSHMEM_SIGNAL_SET, me - 1);
    if (!last) nvshmemx_double_put_signal_nbi_block(next, next + n, 1, signals, sweep, NVSHMEM_SIGNAL_SET, me + 1);
    if (threadIdx.x == 0) {
        if (!first) nvshmem_uint64_wait_until((unsigned long *)signals, NVSHMEM_CMP_GE, sweep);
        if (!last) nvshmem_signal_wait_until(signals + 1, NVSHMEM_CMP_GE, sweep);
        (void)n_pes;
    }
}

int main() {
    begin();
    const int me = nvshmem_my_pe(), n_pes = nvshmem_n_pes(), sweeps = 40;
    const size_t n = 1000;
    double *a = (double *)nvshmem_calloc(n + 2, sizeof(double)), *b = (double *)nvshmem_calloc(n + 2, sizeof(double));
    uint64_t *signals = (uint64_t *)nvshmem_calloc(2, sizeof(uint64_t));
    std::vector<double> whole(n * n_pes + 2), other(whole.size());
    for (size_t i = 0; i < whole.size(); ++i) whole[i] = (double)(i * 7 % 31);
    CUDA(cudaMemcpy(a, whole.data() + me * n, (n + 2) * sizeof(double), cudaMemcpyHostToDevice));
    meet_with_copies();
    for (int sweep = 1; sweep <= sweeps; ++sweep) {
        step<<<1, 256>>>(a, b, n, signals, sweep, me == 0, me == n_pes - 1);
        std::swap(a, b);
        other = whole;
        for (size_t i = 1; i + 1 < whole.size(); ++i) other[i] = (whole[i - 1] + whole[i + 1]) / 2;
        whole.swap(other);
    }
    CUDA(cudaDeviceSynchronize());
    const auto mine = host(a, n + 2);
    for (size_t i = 0; i < n + 2; ++i) CHECK_EQ(mine[i], whole[me * n + i]);
    nvshmem_barrier_all();
    nvshmem_free(signals);
    return end("halo");
}
