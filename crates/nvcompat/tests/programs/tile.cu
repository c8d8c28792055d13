// Tiles: put and get on this PE and another, gathering and broadcast, by every scope; strides of both sides, bounds, sizes
// and places that are no multiple of a wide word, numbers that the compiler knows. The whole destination is looked at, so
// that what lies beside a tile counts.
#include "check.h"
#include <cuda_fp16.h>

using nvshmemx::make_layout;
using nvshmemx::make_shape;
using nvshmemx::make_stride;
using nvshmemx::tile_algo_t;
using nvshmemx::tile_coll_algo_t;
using extents = nvshmemx::shape<int, int>;
using steps = nvshmemx::stride<int, long>;
template <class T> using tile = nvshmemx::Tensor<T, nvshmemx::Layout<extents, steps>>;
struct unbounded {};

static int me, n;

// What a kernel calls, by its scope. The second warp of two, and the second group of 128 threads, is the one that calls.
#define SCOPE_KERNELS(FORM, CALLS)                                                                                        \
    template <class T, class B>                                                                                           \
    __global__ void put##FORM(tile<T> s, tile<T> d, B start, B bound, int pe, int *status) {                              \
        if (!(CALLS)) return;                                                                                             \
        *status = nvshmemx::tile_put##FORM<tile<T>, tile<T>, B, tile_algo_t::PEER_PUSH_NBI>(s, d, start, bound, pe, 0);   \
    }                                                                                                                     \
    template <class T, class B>                                                                                           \
    __global__ void get##FORM(tile<T> s, tile<T> d, B start, B bound, int pe, int *status) {                              \
        if (!(CALLS)) return;                                                                                             \
        *status = nvshmemx::tile_get##FORM<tile<T>, tile<T>, B, tile_algo_t::REMOTE_PULL_NBI>(s, d, start, bound, pe, 0); \
    }                                                                                                                     \
    template <class T> __global__ void gather##FORM(tile<T> s, tile<T> d, int *status) {                                  \
        if (!(CALLS)) return;                                                                                             \
        constexpr auto how = tile_coll_algo_t::NVLS_ONE_SHOT_PUSH_NBI;                                                    \
        const int done = nvshmemx::tile_allgather##FORM<tile<T>, tile<T>, unbounded, how>(NVSHMEM_TEAM_WORLD, s, d, {},   \
                                                                                          {}, 0);                         \
        *status = done | nvshmemx::tile_collective_wait##FORM<how>(NVSHMEM_TEAM_WORLD, 0);                                \
    }                                                                                                                     \
    template <class T> __global__ void broadcast##FORM(tile<T> s, tile<T> d, bool sends, int *status) {                   \
        if (!(CALLS)) return;                                                                                             \
        constexpr auto how = tile_coll_algo_t::NVLS_ONE_SHOT_PUSH_NBI;                                                    \
        int done = 0;                                                                                                     \
        if (sends)                                                                                                        \
            done = nvshmemx::tile_broadcast##FORM<tile<T>, tile<T>, unbounded, how>(NVSHMEM_TEAM_WORLD, s, d, {}, {}, 0); \
        *status = done | nvshmemx::tile_collective_wait##FORM<how>(NVSHMEM_TEAM_WORLD, 0);                                \
    }
SCOPE_KERNELS(, threadIdx.x == 0)
SCOPE_KERNELS(_warp, threadIdx.x / 32 == 1)
SCOPE_KERNELS(_warpgroup, threadIdx.x / 128 == 1)
SCOPE_KERNELS(_block, true)

constexpr int area = 1 << 14;
template <class T> struct memory {
    T *source, *dest;
    int *status;
    memory() : source((T *)nvshmem_malloc(area * sizeof(T))), dest((T *)nvshmem_malloc(area * sizeof(T))) {
        CUDA(cudaMalloc(&status, sizeof(int)));
    }
    ~memory() {
        nvshmem_free(source);
        nvshmem_free(dest);
        CUDA(cudaFree(status));
    }
};

// Element `i` of PE `pe`: small whole numbers, which all types have.
template <class T> static T value(int pe, size_t i) { return (T)(float)(i * 7 % 61 + pe * 62 % 60 + 1); }

// Fills the source and clears the destination.
template <class T> static void fill(const memory<T> &m) {
    std::vector<T> values(area);
    for (size_t i = 0; i < area; ++i) values[i] = value<T>(me, i);
    CUDA(cudaMemcpy(m.source, values.data(), area * sizeof(T), cudaMemcpyDefault));
    CUDA(cudaMemset(m.dest, 0, area * sizeof(T)));
    CUDA(cudaDeviceSynchronize());
    nvshmem_barrier_all();
}
// Waits for the kernels of all PEs, then compares.
template <class T> static void compare(const memory<T> &m, const std::vector<T> &expected, int status, const char *what) {
    CUDA(cudaDeviceSynchronize());
    nvshmem_barrier_all();
    CHECK_EQ(host(m.status, 1)[0], status);
    const std::vector<T> got = host(m.dest, area);
    for (size_t i = 0; i < area; ++i) {
        if ((float)got[i] == (float)expected[i]) continue;
        if (failures++ < 20)
            fprintf(stderr, "PE %d: %s: element %zu is %g, expected %g\n", me, what, i, (float)got[i], (float)expected[i]);
        break;
    }
    nvshmem_barrier_all();
}

// Places and sizes of a tile on both sides, and what is there of it.
struct lies {
    int rows, columns, from, to;  // of the first elements
    long from_row, from_column, to_row, to_column;
    int start_row, start_column, bound_row, bound_column;  // no bounds: 0
};
static const lies cases[] = {
    {16, 32, 0, 0, 32, 1, 32, 1, 0, 0, 0, 0},      // One block of memory
    {7, 13, 3, 5, 50, 1, 61, 1, 0, 0, 0, 0},       // Nothing aligned
    {7, 13, 4, 8, 48, 1, 64, 1, 0, 0, 0, 0},       // Rows aligned, with a rest
    {40, 24, 1, 1, 1, 40, 1, 44, 0, 0, 0, 0},      // The first dimension is the close one
    {9, 11, 2, 0, 1, 9, 11, 1, 0, 0, 0, 0},        // A transposition
    {9, 11, 0, 7, 100, 3, 60, 5, 0, 0, 0, 0},      // Steps in both dimensions
    {1, 50, 0, 0, 50, 1, 50, 1, 0, 0, 0, 0},       // A row
    {50, 1, 0, 0, 1, 50, 8, 1, 0, 0, 0, 0},        // A column
    {16, 32, 0, 0, 64, 1, 64, 1, 96, 200, 100, 219},  // Both bounds inside
    {16, 32, 8, 8, 64, 1, 64, 1, 0, 0, 16, 32},    // Bounds at the edge
    {16, 32, 0, 0, 64, 1, 64, 1, 32, 0, 20, 32},   // All outside
    {64, 128, 0, 0, 128, 1, 128, 1, 0, 0, 0, 0},   // More words than a block takes in a round
};

template <class T> static void one_sided(const memory<T> &m) {
    for (const lies &c : cases) {
        const bool bounded = c.bound_row != 0;
        const extents size = make_shape(c.rows, c.columns), start = make_shape(c.start_row, c.start_column),
                      bound = make_shape(c.bound_row, c.bound_column);
        const tile<T> s(m.source + c.from, make_layout(size, make_stride((int)c.from_row, c.from_column)));
        const tile<T> d(m.dest + c.to, make_layout(size, make_stride((int)c.to_row, c.to_column)));
        for (int away = 0; away < (n > 1 ? 2 : 1); ++away) {
            const int other = (me + away) % n, from = (me + n - away) % n;
            auto expected = [&](int pe) {
                std::vector<T> all(area, (T)0.f);
                for (int i = 0; i < c.rows; ++i)
                    for (int j = 0; j < c.columns; ++j)
                        if (!bounded || (c.start_row + i < c.bound_row && c.start_column + j < c.bound_column))
                            all[c.to + i * c.to_row + j * c.to_column] =
                                value<T>(pe, c.from + i * c.from_row + j * c.from_column);
                return all;
            };
#define BY_SCOPE(WHAT, THREADS, PE)                                                                             \
    fill(m);                                                                                                    \
    if (bounded)                                                                                                \
        WHAT<T, extents><<<1, THREADS>>>(s, d, start, bound, other, m.status);                                  \
    else                                                                                                        \
        WHAT<T, unbounded><<<1, THREADS>>>(s, d, {}, {}, other, m.status);                                      \
    compare(m, expected(PE), 0, #WHAT " by " #THREADS " threads");
            BY_SCOPE(put, 32, from)
            BY_SCOPE(put_warp, 64, from)
            BY_SCOPE(put_warpgroup, 256, from)
            BY_SCOPE(put_block, 96, from)
            BY_SCOPE(put_block, 250, from)
            BY_SCOPE(get, 32, other)
            BY_SCOPE(get_warp, 64, other)
            BY_SCOPE(get_warpgroup, 200, other)
            BY_SCOPE(get_block, 512, other)
#undef BY_SCOPE
        }
    }
}

// Every PE's tile, one behind the other along either dimension; and one's to all.
template <class T> static void collectives(const memory<T> &m) {
    constexpr int rows = 5, columns = 12;
    const extents size = make_shape(rows, columns);
    const tile<T> s(m.source + 1, make_layout(size, make_stride(20, 1L)));
    for (int along = 0; along < 2; ++along) {
        const extents all = along == 0 ? make_shape(rows * n, columns) : make_shape(rows, columns * n);
        const int step = along == 0 ? 16 : columns * n + 3;
        const tile<T> d(m.dest + 2, make_layout(all, make_stride(step, 1L)));
        std::vector<T> expected(area, (T)0.f);
        for (int pe = 0; pe < n; ++pe)
            for (int i = 0; i < rows; ++i)
                for (int j = 0; j < columns; ++j) {
                    const int row = i + (along == 0 ? pe * rows : 0), column = j + (along == 1 ? pe * columns : 0);
                    expected[2 + row * step + column] = value<T>(pe, 1 + i * 20 + j);
                }
#define BY_SCOPE(FORM, THREADS)                            \
    fill(m);                                               \
    gather##FORM<T><<<1, THREADS>>>(s, d, m.status);       \
    compare(m, expected, 0, "tile_allgather" #FORM);
        BY_SCOPE(, 32)
        BY_SCOPE(_warp, 64)
        BY_SCOPE(_warpgroup, 256)
        BY_SCOPE(_block, 160)
#undef BY_SCOPE
    }
    const tile<T> d(m.dest + 4, make_layout(size, make_stride(columns, 1L)));
    std::vector<T> expected(area, (T)0.f);
    for (int i = 0; i < rows; ++i)
        for (int j = 0; j < columns; ++j) expected[4 + i * columns + j] = value<T>(n - 1, 1 + i * 20 + j);
#define BY_SCOPE(FORM, THREADS)                                           \
    fill(m);                                                              \
    broadcast##FORM<T><<<1, THREADS>>>(s, d, me == n - 1, m.status);      \
    compare(m, expected, 0, "tile_broadcast" #FORM);
    BY_SCOPE(, 32)
    BY_SCOPE(_warp, 64)
    BY_SCOPE(_warpgroup, 256)
    BY_SCOPE(_block, 160)
#undef BY_SCOPE
}

// Three dimensions and one, with numbers that the compiler knows; what is wrong is refused and changes nothing.
template <int N> using fixed = nvshmemx::ConstInt<N>;
__global__ void other_ranks(float *from, float *to, int pe, int *status) {
    auto size = make_shape(fixed<3>(), 4, fixed<5>());
    nvshmemx::Tensor s(from, make_layout(size, make_stride(fixed<40>(), 8, fixed<1>())));
    nvshmemx::Tensor d(to, make_layout(size, make_stride(fixed<1>(), 3, fixed<12>())));
    auto none = make_shape();
    *status |= nvshmemx::tile_put_block<decltype(s), decltype(d), decltype(none), tile_algo_t::REMOTE_PUSH_NBI>(s, d, none,
                                                                                                               none, pe, 0);
    auto line = make_layout(make_shape(fixed<33>()), make_stride(fixed<1>()));
    nvshmemx::Tensor s1(from, line), d1(to + 100, line);
    using one = nvshmemx::shape<int>;
    *status |= nvshmemx::tile_put_block<decltype(s1), decltype(d1), one, tile_algo_t::PEER_PUSH_NBI>(
        s1, d1, make_shape(10), make_shape(40), pe, 0);
}
__global__ void refused(tile<float> s, tile<float> d, tile<float> small, int pes, int *status) {
    using T = tile<float>;
    constexpr auto push = tile_algo_t::PEER_PUSH_NBI, pull = tile_algo_t::PEER_PULL_NBI;
    constexpr auto all = tile_coll_algo_t::NVLS_ONE_SHOT_PUSH_NBI;
    int wrong = 0;
    wrong += nvshmemx::tile_put_block<T, T, unbounded, push>(s, d, {}, {}, pes, 0) != 0;
    wrong += nvshmemx::tile_get_block<T, T, unbounded, pull>(s, d, {}, {}, -1, 0) != 0;
    wrong += nvshmemx::tile_put_block<T, T, unbounded, push>(s, small, {}, {}, 0, 0) != 0;
    wrong += nvshmemx::tile_allgather_block<T, T, unbounded, all>(NVSHMEM_TEAM_INVALID, s, d, {}, {}, 0) != 0;
    wrong += nvshmemx::tile_allgather_block<T, T, unbounded, all>(NVSHMEM_TEAM_WORLD, s, small, {}, {}, 0) != 0;
    wrong += nvshmemx::tile_collective_wait_block<all>(NVSHMEM_TEAM_INVALID, 0) != 0;
    *status = wrong;
}

static void odd_ones(const memory<float> &m) {
    fill(m);
    CUDA(cudaMemset(m.status, 0, sizeof(int)));
    const int other = (me + 1) % n, from = (me + n - 1) % n;
    other_ranks<<<1, 64>>>(m.source, m.dest, other, m.status);
    std::vector<float> expected(area);
    for (int i = 0; i < 3; ++i)
        for (int j = 0; j < 4; ++j)
            for (int k = 0; k < 5; ++k) expected[i + j * 3 + k * 12] = value<float>(from, i * 40 + j * 8 + k);
    for (int i = 0; i < 30; ++i) expected[100 + i] = value<float>(from, i);
    compare(m, expected, 0, "three dimensions and one");
    fill(m);
    const tile<float> s(m.source, make_layout(make_shape(4, 4), make_stride(4, 1L))),
        d(m.dest, make_layout(make_shape(4, 4), make_stride(4, 1L))),
        small(m.dest, make_layout(make_shape(4, 3), make_stride(4, 1L)));
    refused<<<1, 64>>>(s, d, small, n, m.status);
    compare(m, std::vector<float>(area), 6, "what is wrong");
}

int main() {
    begin();
    me = nvshmem_my_pe(), n = nvshmem_n_pes();
    {
        memory<__half> halves;
        one_sided(halves);
        collectives(halves);
        memory<float> floats;
        one_sided(floats);
        collectives(floats);
        odd_ones(floats);
        memory<signed char> bytes;
        one_sided(bytes);
    }
    return end("tile");
}
