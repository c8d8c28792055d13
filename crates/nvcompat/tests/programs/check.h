// What the programs share: a world, a device, and a verdict.
#pragma once
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>
#include <nvshmem.h>
#include <nvshmemx.h>

#define CUDA(call)                                                                                 \
    do {                                                                                           \
        cudaError_t error_ = (call);                                                               \
        if (error_ != cudaSuccess) {                                                               \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(error_)); \
            exit(3);                                                                               \
        }                                                                                          \
    } while (0)

// PEs may be threads.
static std::atomic<int> failures{0};
#define CHECK(what)                                                                                \
    do {                                                                                           \
        if (!(what) && failures++ < 20)                                                            \
            fprintf(stderr, "PE %d: %s:%d: not so: %s\n", nvshmem_my_pe(), __FILE__, __LINE__, #what); \
    } while (0)
#define CHECK_EQ(a, b)                                                                             \
    do {                                                                                           \
        const double a_ = (double)(a), b_ = (double)(b);                                           \
        if (!(a_ == b_) && failures++ < 20)                                                        \
            fprintf(stderr, "PE %d: %s:%d: %s is %.17g, expected %.17g\n", nvshmem_my_pe(), __FILE__, __LINE__, #a, a_, b_); \
    } while (0)

// PE i of a node takes GPU i, around. Nodes that are played by one machine share its GPUs out.
static void begin() {
    nvshmem_init();
    int devices = 0;
    CUDA(cudaGetDeviceCount(&devices));
    const nvshmem_team_t node = getenv("CROSSWARP_FAKE_HOSTS") ? NVSHMEM_TEAM_WORLD : NVSHMEMX_TEAM_NODE;
    CUDA(cudaSetDevice(nvshmem_team_my_pe(node) % devices));
}

// A barrier of the host, with what `cudaMemcpy` brings: of pageable memory that may arrive after the call has returned, much
// later where PEs share a GPU, and then another PE would not see it.
[[maybe_unused]] static void meet_with_copies() {
    CUDA(cudaDeviceSynchronize());
    nvshmem_barrier_all();
}

// Whether `pe` is on this PE's node, so that its memory is mapped here.
[[maybe_unused]] static bool is_near(int pe) {
    return nvshmem_team_translate_pe(NVSHMEM_TEAM_WORLD, pe, NVSHMEMX_TEAM_NODE) >= 0;
}

static int end(const char *name) {
    const int me = nvshmem_my_pe(), n = nvshmem_n_pes();
    nvshmem_barrier_all();
    nvshmem_finalize();
    printf("%s %s, PE %d of %d\n", failures == 0 ? "PASS" : "FAIL", name, me, n);
    return failures != 0;
}

template <class T> static std::vector<T> host(const T *device, size_t n) {
    std::vector<T> out(n);
    CUDA(cudaMemcpy(out.data(), device, n * sizeof(T), cudaMemcpyDefault));
    return out;
}
