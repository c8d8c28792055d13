// Memory of the program's own becomes symmetric: puts, gets, atomics and a collective in it, by kernels, the host and in
// stream order; what can't is refused on all PEs; it comes and goes, beside memory of nvshmem_malloc.
#include "check.h"
#include <cuda.h>

static int me, n;

// The driver's functions, by the runtime: programs are not linked with the driver.
template <class F> static F driver(const char *name) {
    void *found = nullptr;
    cudaDriverEntryPointQueryResult how;
    CUDA(cudaGetDriverEntryPointByVersion(name, &found, 12000, cudaEnableDefault, &how));
    if (found == nullptr) exit(3);
    return (F)found;
}
#define DRIVER(function, ...)                                                                  \
    do {                                                                                       \
        const CUresult result_ = driver<decltype(&function)>(#function)(__VA_ARGS__);         \
        if (result_ != CUDA_SUCCESS) {                                                         \
            fprintf(stderr, "%s:%d: " #function " failed: %d\n", __FILE__, __LINE__, result_); \
            exit(3);                                                                           \
        }                                                                                      \
    } while (0)

static CUmemAllocationProp properties(bool shared) {
    CUmemAllocationProp p = {};
    int device = 0;
    CUDA(cudaGetDevice(&device));
    p.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    p.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    p.location.id = device;
    p.requestedHandleTypes = shared ? CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR : CU_MEM_HANDLE_TYPE_NONE;
    return p;
}

struct own_memory {
    CUmemGenericAllocationHandle handle;
    CUdeviceptr at;
    size_t bytes;

    own_memory(size_t size, bool shared) : at(0), bytes(size) {
        CUmemAllocationProp p = properties(shared);
        DRIVER(cuMemCreate, &handle, bytes, &p, 0ull);
        DRIVER(cuMemAddressReserve, &at, bytes, (size_t)0, (CUdeviceptr)0, 0ull);
        DRIVER(cuMemMap, at, bytes, (size_t)0, handle, 0ull);
        CUmemAccessDesc access = {};
        access.location = p.location;
        access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
        DRIVER(cuMemSetAccess, at, bytes, &access, (size_t)1);
        CUDA(cudaMemset((void *)at, 0, bytes));
    }
    ~own_memory() {
        CUDA(cudaDeviceSynchronize());
        DRIVER(cuMemUnmap, at, bytes);
        DRIVER(cuMemAddressFree, at, bytes);
        DRIVER(cuMemRelease, handle);
    }
    void *address() const { return (void *)at; }
};

__global__ void moves(int *own, int *heap, size_t count, int other, int me) {
    nvshmemx_int_put_block(own, heap, count, other);
    nvshmemx_int_get_block(own + count, heap, count, other);
    if (threadIdx.x == 0) {
        nvshmem_int_p(own + 2 * count, me + 1, other);
        nvshmem_int_atomic_add(own + 2 * count + 1, me + 5, other);
    }
    nvshmemx_barrier_all_block();
    if (threadIdx.x == 0) own[2 * count + 2] = nvshmem_int_g(own + 2 * count, other);
}
__global__ void reaches(int *own, int pe, bool *yes) { *yes = nvshmem_ptr(own, pe) != nullptr; }

// Where kernels find `pe`'s part is where the host does, or neither finds one.
__global__ void find(void *const *at, int n, int pe, void **found) {
    for (int i = threadIdx.x; i < n; i += blockDim.x) found[i] = nvshmem_ptr(at[i], pe);
}
static void same_answers(const std::vector<void *> &places) {
    const int count = (int)places.size();
    void **at, **found;
    CUDA(cudaMallocManaged(&at, count * sizeof(void *)));
    CUDA(cudaMallocManaged(&found, count * sizeof(void *)));
    memcpy(at, places.data(), count * sizeof(void *));
    for (int pe = -1; pe <= n; ++pe) {
        find<<<1, 32>>>(at, count, pe, found);
        CUDA(cudaDeviceSynchronize());
        for (int i = 0; i < count; ++i) CHECK_EQ((uintptr_t)found[i], (uintptr_t)nvshmem_ptr(places[i], pe));
    }
    CUDA(cudaFree(at));
    CUDA(cudaFree(found));
    nvshmem_barrier_all();
}
static void *behind(void *at, ptrdiff_t bytes) { return (char *)at + bytes; }

// Uses the memory at `own`, which other PEs and the program's own address `also` see.
static void use(int *own, const int *also, int *heap) {
    constexpr size_t count = 3001;
    const int other = (me + 1) % n, before = (me + n - 1) % n;
    std::vector<int> values(count);
    for (size_t i = 0; i < count; ++i) values[i] = (int)i * 3 + me;
    CUDA(cudaMemcpy(heap, values.data(), count * sizeof(int), cudaMemcpyDefault));
    CUDA(cudaMemset(own, 0, (2 * count + 4) * sizeof(int)));
    CUDA(cudaDeviceSynchronize());
    nvshmem_barrier_all();
    moves<<<1, 160>>>(own, heap, count, other, me);
    CUDA(cudaDeviceSynchronize());
    nvshmem_barrier_all();
    // By the address that the program has had before, too.
    for (const int *from : {(const int *)own, also}) {
        const std::vector<int> got = host(from, 2 * count + 4);
        for (size_t i = 0; i < count; i += 7) {
            CHECK_EQ(got[i], (int)i * 3 + before);
            CHECK_EQ(got[count + i], (int)i * 3 + other);
        }
        CHECK_EQ(got[2 * count], before + 1);
        CHECK_EQ(got[2 * count + 1], before + 5);
        CHECK_EQ(got[2 * count + 2], me + 1);
    }
    // From the host, and in stream order.
    nvshmem_barrier_all();
    nvshmem_int_put(own + 2 * count + 3, heap + 1, 1, other);
    nvshmem_barrier_all();
    CHECK_EQ(host(own + 2 * count + 3, 1)[0], 3 + before);
    nvshmemx_int_sum_reduce_on_stream(NVSHMEM_TEAM_WORLD, heap + count, own + 2 * count + 3, 1, 0);
    CUDA(cudaDeviceSynchronize());
    CHECK_EQ(host(heap + count, 1)[0], 3 * n + n * (n - 1) / 2);
    CHECK((nvshmem_ptr(own, other) == own) == (other == me));
    bool *yes;
    CUDA(cudaMallocManaged(&yes, sizeof(bool)));
    reaches<<<1, 1>>>(own, other, yes);
    CUDA(cudaDeviceSynchronize());
    CHECK_EQ(*yes, is_near(other));
    CUDA(cudaFree(yes));
    nvshmem_barrier_all();
}

int main() {
    begin();
    me = nvshmem_my_pe(), n = nvshmem_n_pes();
    int *heap = (int *)nvshmem_malloc(1 << 16);
    size_t unit = 0;
    CUmemAllocationProp p = properties(true);
    DRIVER(cuMemGetAllocationGranularity, &unit, &p, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED);
    {
        own_memory one(2 * unit, true), two(unit, true);
        int *first = (int *)nvshmemx_buffer_register_symmetric(one.address(), one.bytes, 0);
        CHECK(first != nullptr);
        int *second = (int *)nvshmemx_buffer_register_symmetric(two.address(), two.bytes, 0);
        CHECK(second != nullptr && second != first);
        if (first == nullptr || second == nullptr) return end("register");
        use(first, (const int *)one.address(), heap);
        use(second, (const int *)two.address(), heap);
        // The last bytes of it, too.
        int *last = first + one.bytes / sizeof(int) - 1;
        nvshmem_int_p(last, me + 10, (me + 1) % n);
        nvshmem_barrier_all();
        CHECK_EQ(host(last, 1)[0], (me + n - 1) % n + 10);
        // Both ends of each, what the heap has not yet, and memory of others.
        const std::vector<void *> places = {
            heap, behind(heap, -1), behind(heap, (1 << 16) - 1), behind(heap, 3ull << 30), behind(heap, 1ull << 50),
            first, behind(first, -1), behind(first, one.bytes - 1), behind(first, one.bytes),
            second, behind(second, two.bytes - 1), behind(second, two.bytes), one.address(), &n, nullptr};
        same_answers(places);
        // What is not so, and stays.
        CHECK(nvshmemx_buffer_unregister_symmetric(first, unit) != 0);
        CHECK(nvshmemx_buffer_unregister_symmetric(first + 1, 2 * unit) != 0);
        CHECK(nvshmemx_buffer_unregister_symmetric(heap, unit) != 0);
        if (n > 1) {
            // Not the same on all PEs: refused on each, though each says what is there.
            void *other = me == 0 ? second : first;
            CHECK(nvshmemx_buffer_unregister_symmetric(other, me == 0 ? two.bytes : one.bytes) != 0);
            use(second, (const int *)two.address(), heap);
        }
        use(first, (const int *)one.address(), heap);
        CHECK_EQ(nvshmemx_buffer_unregister_symmetric(first, one.bytes), 0);
        CHECK(nvshmem_ptr(first, me) == nullptr && nvshmem_ptr(second, me) == second);
        same_answers(places);
        CHECK(nvshmemx_buffer_unregister_symmetric(first, one.bytes) != 0);
        use(second, (const int *)two.address(), heap);
        // Once more, with memory of the heap taken meanwhile.
        int *more = (int *)nvshmem_malloc(100 << 20);
        first = (int *)nvshmemx_buffer_register_symmetric(one.address(), one.bytes, 0);
        CHECK(first != nullptr && more != nullptr);
        if (first != nullptr) use(first, (const int *)one.address(), heap);
        use(more, more, heap);
        same_answers(places);
        same_answers({more, behind(more, (100 << 20) - 1), behind(more, 100 << 20), behind(more, 1ull << 30)});
        nvshmem_free(more);
        if (first != nullptr) CHECK_EQ(nvshmemx_buffer_unregister_symmetric(first, one.bytes), 0);
        CHECK_EQ(nvshmemx_buffer_unregister_symmetric(second, two.bytes), 0);
    }
    // What can't be: memory that others can't map, of the runtime's, a part, of no whole size, that of one PE.
    {
        own_memory alone(unit, false), one(2 * unit, true);
        void *of_runtime;
        CUDA(cudaMalloc(&of_runtime, unit));
        CHECK(nvshmemx_buffer_register_symmetric(alone.address(), unit, 0) == nullptr);
        CHECK(nvshmemx_buffer_register_symmetric(of_runtime, unit, 0) == nullptr);
        CHECK(nvshmemx_buffer_register_symmetric((char *)one.address() + unit, unit, 0) == nullptr);
        CHECK(nvshmemx_buffer_register_symmetric(one.address(), 4 * unit, 0) == nullptr);
        CHECK(nvshmemx_buffer_register_symmetric(one.address(), 1000, 0) == nullptr);
        CHECK(nvshmemx_buffer_register_symmetric(one.address(), 0, 0) == nullptr);
        CHECK(nvshmemx_buffer_register_symmetric(me == 0 ? of_runtime : one.address(), unit, 0) == nullptr);
        CUDA(cudaFree(of_runtime));
    }
    // A world ends with what is still registered in it.
    own_memory left(unit, true);
    int *symmetric = (int *)nvshmemx_buffer_register_symmetric(left.address(), left.bytes, 0);
    CHECK(symmetric != nullptr);
    if (symmetric != nullptr) use(symmetric, (const int *)left.address(), heap);
    nvshmem_free(heap);
    return end("register");
}
