// Every collective of a million elements, by every scope and in stream order, over all PEs and over a team of the even ones.
// The matrix has all types and operations of up to a thousand, by all scopes; here each scope has a type or more.
#include "check.h"

static constexpr size_t count = 1000000;
enum what { move_broadcast, move_fcollect, move_alltoall, sum, scattered_sum, kinds };

// A team of `size`, whose rank `size - 1` is the root.
#define KERNEL(NAME, T, P, F)                                                                                    \
    __global__ void large_##NAME##F(nvshmem_team_t team, int size, T *dest, const T *source, size_t n, int kind) { \
        switch (kind) {                                                                                          \
            case move_broadcast: P##_##NAME##_broadcast##F(team, dest, source, n, size - 1); break;              \
            case move_fcollect: P##_##NAME##_fcollect##F(team, dest, source, n); break;                          \
            case move_alltoall: P##_##NAME##_alltoall##F(team, dest, source, n); break;                          \
            case sum: P##_##NAME##_sum_reduce##F(team, dest, source, n); break;                                  \
            default: P##_##NAME##_sum_reducescatter##F(team, dest, source, n);                                   \
        }                                                                                                        \
    }
#define STREAM(NAME, T)                                                                                               \
    static int large_##NAME##_on(nvshmem_team_t team, int size, T *dest, const T *source, size_t n, int kind,         \
                                 cudaStream_t stream) {                                                               \
        switch (kind) {                                                                                               \
            case move_broadcast: return nvshmemx_##NAME##_broadcast_on_stream(team, dest, source, n, size - 1, stream); \
            case move_fcollect: return nvshmemx_##NAME##_fcollect_on_stream(team, dest, source, n, stream);           \
            case move_alltoall: return nvshmemx_##NAME##_alltoall_on_stream(team, dest, source, n, stream);           \
            case sum: return nvshmemx_##NAME##_sum_reduce_on_stream(team, dest, source, n, stream);                   \
            default: return nvshmemx_##NAME##_sum_reducescatter_on_stream(team, dest, source, n, stream);             \
        }                                                                                                             \
    }
KERNEL(int, int, nvshmem, )
KERNEL(float, float, nvshmemx, _warp)
KERNEL(float, float, nvshmemx, _block)
KERNEL(uint8, uint8_t, nvshmemx, _block)
KERNEL(half, __half, nvshmemx, _block)
STREAM(int, int)
STREAM(float, float)
STREAM(uint8, uint8_t)
STREAM(half, __half)

static double number(__half x) { return __half2float(x); }
template <class T> static double number(T x) { return (double)x; }
template <class T> static T make(int x) { return (T)x; }
template <> __half make<__half>(int x) { return __float2half((float)x); }

// Small whole numbers, whose sums are exact in every type.
static int value(int rank, size_t i) { return (int)((i * 5 + (size_t)rank * 11) % 23); }

template <class T> using kernel_of = void (*)(nvshmem_team_t, int, T *, const T *, size_t, int);

// By `on` in stream order, and by the kernels that are not null, of one thread, a warp and a block.
template <class T, class Stream>
static void all(const char *name, nvshmem_team_t team, void *heap, Stream on, std::vector<kernel_of<T>> kernels) {
    const int size = nvshmem_team_n_pes(team), rank = nvshmem_team_my_pe(team);
    T *source = (T *)heap, *dest = source + count * nvshmem_n_pes();
    std::vector<T> in(count * size);
    for (size_t i = 0; i < in.size(); ++i) in[i] = make<T>(value(rank, i));
    CUDA(cudaMemcpy(source, in.data(), in.size() * sizeof(T), cudaMemcpyHostToDevice));
    for (int kind = 0; kind < kinds; ++kind) {
        for (int way = 0; way < 4; ++way) {
            const int threads[] = {1, 32, 256};
            if (way < 3 && kernels[way] == nullptr) continue;
            CUDA(cudaMemset(dest, 0x55, in.size() * sizeof(T)));
            CUDA(cudaDeviceSynchronize());
            // Nobody sends before all are ready.
            nvshmem_team_sync(team);
            if (way < 3) kernels[way]<<<1, threads[way]>>>(team, size, dest, source, count, kind);
            if (way == 3) CHECK_EQ(on(team, size, dest, source, count, kind, 0), 0);
            CUDA(cudaDeviceSynchronize());
            const bool whole = kind == move_fcollect || kind == move_alltoall;
            const std::vector<T> out = host(dest, whole ? in.size() : count);
            size_t wrong = 0;
            for (size_t i = 0; i < out.size(); ++i) {
                int expected = 0;
                const int from = (int)(i / count);
                switch (kind) {
                    case move_broadcast: expected = value(size - 1, i); break;
                    case move_fcollect: expected = value(from, i % count); break;
                    case move_alltoall: expected = value(from, rank * count + i % count); break;
                    case sum:
                        for (int pe = 0; pe < size; ++pe) expected += value(pe, i);
                        break;
                    default:
                        for (int pe = 0; pe < size; ++pe) expected += value(pe, rank * count + i);
                }
                wrong += number(out[i]) != expected;
            }
            if (wrong != 0) fprintf(stderr, "%s, collective %d, way %d, %d PEs:\n", name, kind, way, size);
            CHECK_EQ(wrong, 0);
            // And nobody clears what is still being read.
            nvshmem_team_sync(team);
        }
    }
}

int main() {
    begin();
    const int n = nvshmem_n_pes();
    void *heap = nvshmem_malloc(2 * count * n * sizeof(float));
    CHECK(heap != nullptr);
    nvshmem_team_t even;
    CHECK_EQ(nvshmem_team_split_strided(NVSHMEM_TEAM_WORLD, 0, 2, (n + 1) / 2, nullptr, 0, &even), 0);
    for (nvshmem_team_t team : {(nvshmem_team_t)NVSHMEM_TEAM_WORLD, even}) {
        nvshmem_barrier_all();
        if (heap == nullptr || team == NVSHMEM_TEAM_INVALID) continue;
        all<int>("int", team, heap, large_int_on, {large_int, nullptr, nullptr});
        all<float>("float", team, heap, large_float_on, {nullptr, large_float_warp, large_float_block});
        all<uint8_t>("uint8", team, heap, large_uint8_on, {nullptr, nullptr, large_uint8_block});
        all<__half>("half", team, heap, large_half_on, {nullptr, nullptr, large_half_block});
    }
    return end("large");
}
