// Blocks of different lengths from every PE to every PE: lengths by an all-to-all, places by a fetch, data by puts.
#include "check.h"

__host__ __device__ static size_t length(int from, int to) { return 17 * from + 5 * to + 3; }

__global__ void exchange(int *in, const int *out, uint64_t *offsets, const uint64_t *starts, uint64_t *arrived) {
    const int me = nvshmem_my_pe(), n = nvshmem_n_pes();
    // A block for each PE.
    const int to = blockIdx.x;
    // Where my block goes there: it has written that to its own memory.
    const uint64_t at = nvshmem_uint64_g((unsigned long *)offsets + me, to);
    nvshmemx_int_put_nbi_block(in + at, out + starts[to], length(me, to), to);
    if (threadIdx.x == 0) {
        nvshmem_fence();
        nvshmemx_signal_op(arrived, 1, NVSHMEM_SIGNAL_ADD, to);
        if (to == 0) nvshmem_signal_wait_until(arrived, NVSHMEM_CMP_EQ, n);
    }
}

int main() {
    begin();
    const int me = nvshmem_my_pe(), n = nvshmem_n_pes();
    std::vector<uint64_t> starts(n), offsets(n);
    size_t sends = 0, receives = 0, most = 0;
    for (int pe = 0; pe < n; ++pe) {
        starts[pe] = sends, offsets[pe] = receives;
        sends += length(me, pe), receives += length(pe, me);
        most += length(n, n);
    }
    int *in = (int *)nvshmem_malloc(most * sizeof(int));
    uint64_t *places = (uint64_t *)nvshmem_malloc(n * sizeof(uint64_t)), *arrived = (uint64_t *)nvshmem_calloc(1, 8);
    int *out;
    uint64_t *begins;
    CUDA(cudaMalloc(&out, sends * sizeof(int)));
    CUDA(cudaMalloc(&begins, n * sizeof(uint64_t)));
    std::vector<int> values(sends);
    for (int pe = 0; pe < n; ++pe)
        for (size_t i = 0; i < length(me, pe); ++i) values[starts[pe] + i] = 10000 * me + 1000 * pe + (int)i;
    CUDA(cudaMemcpy(out, values.data(), sends * sizeof(int), cudaMemcpyHostToDevice));
    CUDA(cudaMemcpy(begins, starts.data(), n * sizeof(uint64_t), cudaMemcpyHostToDevice));
    CUDA(cudaMemcpy(places, offsets.data(), n * sizeof(uint64_t), cudaMemcpyHostToDevice));
    meet_with_copies();
    exchange<<<n, 128>>>(in, out, places, begins, arrived);
    CUDA(cudaDeviceSynchronize());
    const auto got = host(in, receives);
    for (int pe = 0; pe < n; ++pe)
        for (size_t i = 0; i < length(pe, me); ++i) CHECK_EQ(got[offsets[pe] + i], 10000 * pe + 1000 * me + (int)i);
    return end("alltoallv");
}
