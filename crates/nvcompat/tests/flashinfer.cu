// FlashInfer's all-reduce over two nodes of two ranks each, on made-up values: `flashinfer.sh` compiles it with FlashInfer's
// sources and runs it. Four processes start themselves, on as many GPUs as there are, around; within a node FlashInfer's
// kernels write into one another's buffers, between nodes they use nvshmem_put128_signal_nbi and nvshmem_signal_wait_until.
// FlashInfer's Python does the same with buffers of its own; here they are symmetric memory, of which each knows the others'.
#include <sys/wait.h>
#include <unistd.h>
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <nvshmem.h>
#include <nvshmemx.h>
#include "flashinfer/comm/mixed_comm.cuh"

using namespace flashinfer::mixed_comm;

#define CHECK(what)                                                                          \
    do {                                                                                     \
        if (!(what)) {                                                                       \
            fprintf(stderr, "PE %d, line %d: not so: %s\n", nvshmem_my_pe(), __LINE__, #what); \
            exit(1);                                                                         \
        }                                                                                    \
    } while (0)
#define CUDA(call) CHECK((call) == cudaSuccess)

constexpr int local_size = 2, inter_size = 2, world_size = local_size * inter_size, grid = 4;
constexpr auto mode = MixedCommMode::OPT_WAITS_UC;
using T = nv_half;
using Args = MixedCommArgs<local_size, 1, true, false, mode, T>;

static size_t up(size_t bytes, size_t to = 16384) { return (bytes + to - 1) / to * to; }
// Small whole numbers, so that sums of four in half precision are exact in any order.
static int value(int pe, size_t i, int round) { return (int)((i * 7 + (size_t)pe * 31 + (size_t)round * 3) % 127) - 63; }

static void rank(int me, const nvshmemx_uniqueid_t *id) {
    int devices = 0;
    CUDA(cudaGetDeviceCount(&devices));
    const int local = me % local_size, inter = me / local_size;
    CUDA(cudaSetDevice(me % devices));
    nvshmemx_init_attr_t attributes = NVSHMEMX_INIT_ATTR_INITIALIZER;
    CHECK(nvshmemx_set_attr_uniqueid_args(me, world_size, id, &attributes) == 0);
    CHECK(nvshmemx_init_attr(NVSHMEMX_INIT_WITH_UNIQUEID, &attributes) == 0);

    auto *kernel = allreduce_kernel<1, local_size, 1, true, false, mode, T>;
    cudaFuncAttributes of_kernel;
    cudaDeviceProp device;
    CUDA(cudaFuncGetAttributes(&of_kernel, kernel));
    CUDA(cudaGetDeviceProperties(&device, me % devices));
    const int most = of_kernel.maxThreadsPerBlock / WARP_SIZE * WARP_SIZE;
    // As FlashInfer's Python lays its buffers out: for each block, four times over.
    const size_t step = (size_t)most * ACCESS_BYTES;
    const size_t vm_block = up((size_t)world_size * 2 * step + sizeof(uint32_t)), vm_all = NUM_BUFFERS * grid * vm_block;
    const size_t ns_data = grid * up(2 * inter_size * step), ns_signal = up(grid * 2 * sizeof(uint64_t));
    char *vm = (char *)nvshmem_malloc(vm_all + up(grid * sizeof(uint64_t)));
    char *ns = (char *)nvshmem_malloc(NUM_BUFFERS * (ns_data + ns_signal));
    CHECK(vm != nullptr && ns != nullptr);
    // Minus zero says that nothing has come.
    std::vector<uint16_t> none(vm_all / 2, 0x8000);
    CUDA(cudaMemcpy(vm, none.data(), vm_all, cudaMemcpyHostToDevice));
    CUDA(cudaMemset(vm + vm_all, 0, up(grid * sizeof(uint64_t))));
    CUDA(cudaMemset(ns + NUM_BUFFERS * ns_data, 0, NUM_BUFFERS * ns_signal));
    // The ranks of this node, from the next one on around.
    void *peers[local_size], **peers_there;
    for (int i = 0; i < local_size; ++i) {
        peers[i] = nvshmem_ptr(vm, inter * local_size + (local + 1 + i) % local_size);
        CHECK(peers[i] != nullptr);
    }
    CUDA(cudaMalloc(&peers_there, sizeof(peers)));
    CUDA(cudaMemcpy(peers_there, peers, sizeof(peers), cudaMemcpyHostToDevice));
    CUDA(cudaDeviceSynchronize());
    nvshmem_barrier_all();

    tvm::ffi::Map<int, int> blocks;
    blocks.Set(1, most);
    // So much that two blocks never share a multiprocessor.
    const int shared = (int)std::min(device.sharedMemPerMultiprocessor / 2,
                                     device.sharedMemPerMultiprocessor - device.reservedSharedMemPerBlock);
    CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared));
    int round = 0;
    for (size_t n : {(size_t)8, (size_t)1000, (size_t)8192, (size_t)(5 * 8192), (size_t)(64 * 8192)}) {
        for (int again = 0; again < 3; ++again, ++round) {
            std::vector<T> in(n), out(n);
            for (size_t i = 0; i < n; ++i) in[i] = __float2half((float)value(me, i, round));
            T *source, *dest;
            CUDA(cudaMalloc(&source, n * sizeof(T)));
            CUDA(cudaMalloc(&dest, n * sizeof(T)));
            CUDA(cudaMemcpy(source, in.data(), n * sizeof(T), cudaMemcpyHostToDevice));
            CUDA(cudaMemset(dest, 0xff, n * sizeof(T)));
            Args args(dest, source, peers_there, vm, nullptr, nullptr, ns, (int)vm_block, (int64_t)ns_data, (int)ns_signal,
                      grid, blocks, 256, 4, (int64_t)n, local, 0, inter, 0, inter_size, 1);
            CHECK(args.block_size_y == 1);
            void *arguments[] = {&args};
            CUDA(cudaLaunchCooperativeKernel((const void *)kernel, dim3(grid), dim3(args.block_size_x), arguments, shared, 0));
            CUDA(cudaDeviceSynchronize());
            CUDA(cudaMemcpy(out.data(), dest, n * sizeof(T), cudaMemcpyDeviceToHost));
            for (size_t i = 0; i < n; ++i) {
                int sum = 0;
                for (int pe = 0; pe < world_size; ++pe) sum += value(pe, i, round);
                CHECK(__half2float(out[i]) == (float)sum);
            }
            CUDA(cudaFree(source));
            CUDA(cudaFree(dest));
        }
    }
    nvshmem_barrier_all();
    nvshmem_free(ns);
    nvshmem_free(vm);
    nvshmem_finalize();
}

int main() {
    // Before anything touches a GPU.
    nvshmemx_uniqueid_t id = NVSHMEMX_UNIQUEID_INITIALIZER;
    CHECK(nvshmemx_get_uniqueid(&id) == 0);
    int status = 0, failed = 0;
    for (int me = 0; me < world_size; ++me) {
        if (fork() != 0) continue;
        rank(me, &id);
        exit(0);
    }
    while (wait(&status) > 0) failed += status != 0;
    if (failed != 0) return fprintf(stderr, "%d of %d processes failed\n", failed, world_size), 1;
    printf("FlashInfer's all-reduce of two nodes by two: all values as expected, passed\n");
    return 0;
}
