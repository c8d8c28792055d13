// A library with kernels that is loaded when the world is there: it learns at the program's next call who it is. PART 1 is
// the library, with a CUDA runtime of its own; it lies beside the program, which PART 0 is.
#include "check.h"

#if PART == 1
__global__ void to_the_right(int *dest, int value, uint64_t *signal) {
    const int me = nvshmem_my_pe(), n = nvshmem_n_pes();
    nvshmem_int_p(dest + me, value, (me + 1) % n);
    nvshmem_fence();
    nvshmemx_signal_op(signal, 1, NVSHMEM_SIGNAL_ADD, (me + 1) % n);
    nvshmem_signal_wait_until(signal, NVSHMEM_CMP_GE, 1);
}
extern "C" int late_send(int *dest, int value, uint64_t *signal) {
    to_the_right<<<1, 1>>>(dest, value, signal);
    return cudaDeviceSynchronize();
}
#else
#include <dlfcn.h>
#include <string>
#include <unistd.h>

int main() {
    begin();
    const int me = nvshmem_my_pe(), n = nvshmem_n_pes(), left = (me + n - 1) % n;
    int *dest = (int *)nvshmem_calloc(n, sizeof(int));
    uint64_t *signal = (uint64_t *)nvshmem_calloc(1, 8);
    char own[4096] = {0};
    CHECK(readlink("/proc/self/exe", own, sizeof(own) - 1) > 0);
    const std::string path = std::string(own) + ".unit.so";
    for (int round = 1; round <= 2; ++round) {
        void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
        if (library == nullptr) {
            fprintf(stderr, "%s\n", dlerror());
            return 1;
        }
        auto send = (int (*)(int *, int, uint64_t *))dlsym(library, "late_send");
        CUDA(cudaMemset(signal, 0, 8));
        meet_with_copies();
        CHECK_EQ(send(dest, 100 * round + me, signal), 0);
        CHECK_EQ(host(dest, n)[left], 100 * round + left);
        nvshmem_barrier_all();
        dlclose(library);
    }
    return end("late");
}
#endif
