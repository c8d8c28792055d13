// Tokens to experts and back, in the manner of a mixture of experts: a warp a token takes a place at its expert by an
// atomic, puts the token there, and tells it by a signal; the expert works on what came and sends it back.
#include "check.h"

constexpr int width = 96, tokens = 200;
__host__ __device__ static int expert(int me, int token, int n) { return (me * 3 + token * token) % n; }

__global__ void dispatch(float *inbox, int *origin, unsigned *count, const float *mine, uint64_t *sent) {
    const int me = nvshmem_my_pe(), n = nvshmem_n_pes(), lane = threadIdx.x % 32;
    for (int token = threadIdx.x / 32; token < tokens; token += blockDim.x / 32) {
        const int to = expert(me, token, n);
        unsigned place = 0;
        if (lane == 0) {
            place = nvshmem_uint_atomic_fetch_add(count, 1, to);
            nvshmem_int_p(origin + place, me * tokens + token, to);
        }
        place = __shfl_sync(~0u, place, 0);
        nvshmemx_float_put_nbi_warp(inbox + place * width, mine + token * width, width, to);
        if (lane == 0) {
            nvshmem_fence();
            nvshmemx_signal_op(sent, 1, NVSHMEM_SIGNAL_ADD, to);
        }
    }
}

__global__ void combine(float *results, const float *inbox, const int *origin, const unsigned *count, float *work,
                        uint64_t *sent, uint64_t *back, uint64_t expected) {
    const int lane = threadIdx.x % 32;
    if (threadIdx.x == 0) nvshmem_signal_wait_until(sent, NVSHMEM_CMP_EQ, expected);
    __syncthreads();
    const unsigned n = *count;
    for (unsigned i = threadIdx.x / 32; i < n; i += blockDim.x / 32) {
        for (int k = lane; k < width; k += 32) work[i * width + k] = 2 * inbox[i * width + k] + nvshmem_my_pe();
        __syncwarp();
        const int from = origin[i] / tokens, token = origin[i] % tokens;
        nvshmemx_putmem_signal_nbi_warp(results + token * width, work + i * width, width * sizeof(float), back, 1,
                                        NVSHMEM_SIGNAL_ADD, from);
    }
    if (threadIdx.x == 0) nvshmem_signal_wait_until(back, NVSHMEM_CMP_EQ, tokens);
}

int main() {
    begin();
    const int me = nvshmem_my_pe(), n = nvshmem_n_pes();
    const size_t room = (size_t)tokens * n;
    float *inbox = (float *)nvshmem_malloc(room * width * 4), *results = (float *)nvshmem_malloc(tokens * width * 4);
    int *origin = (int *)nvshmem_malloc(room * 4);
    unsigned *count = (unsigned *)nvshmem_calloc(1, 4);
    uint64_t *signals = (uint64_t *)nvshmem_calloc(2, 8);
    float *mine, *work;
    CUDA(cudaMalloc(&mine, tokens * width * 4));
    CUDA(cudaMalloc(&work, room * width * 4));
    std::vector<float> values(tokens * width);
    for (int i = 0; i < tokens * width; ++i) values[i] = (float)(me * 100000 + i);
    CUDA(cudaMemcpy(mine, values.data(), values.size() * 4, cudaMemcpyHostToDevice));
    uint64_t expected = 0;
    for (int pe = 0; pe < n; ++pe)
        for (int token = 0; token < tokens; ++token) expected += expert(pe, token, n) == me;
    nvshmem_barrier_all();
    dispatch<<<1, 256>>>(inbox, origin, count, mine, signals);
    combine<<<1, 256>>>(results, inbox, origin, count, work, signals, signals + 1, expected);
    CUDA(cudaDeviceSynchronize());
    const auto got = host(results, tokens * width);
    for (int token = 0; token < tokens; ++token)
        for (int k = 0; k < width; ++k)
            CHECK_EQ(got[token * width + k], 2 * values[token * width + k] + expert(me, token, n));
    return end("shuffle");
}
