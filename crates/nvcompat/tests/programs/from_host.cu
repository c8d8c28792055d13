// The host's functions: memory, puts and gets, atomics, waits, teams, collectives; in streams, in a graph, and without.
#include "check.h"

__global__ void team_sum(nvshmem_team_t team, int *dest, const int *source, int *who) {
    nvshmemx_int_sum_reduce_block(team, dest, source, 3);
    if (threadIdx.x == 0) {
        who[0] = nvshmem_team_my_pe(team);
        who[1] = nvshmem_team_n_pes(team);
        who[2] = nvshmem_team_translate_pe(team, nvshmem_team_n_pes(team) - 1, NVSHMEM_TEAM_WORLD);
        who[3] = nvshmem_ptr(dest, nvshmem_my_pe()) == (void *)dest;
        int local;
        who[4] = nvshmem_ptr(&local, 0) == nullptr;
    }
}

template <class T> static T *symmetric(size_t n) { return (T *)nvshmem_calloc(n, sizeof(T)); }

int main() {
    begin();
    const int me = nvshmem_my_pe(), n = nvshmem_n_pes(), right = (me + 1) % n, left = (me + n - 1) % n;
    CHECK_EQ(nvshmemx_init_status(), NVSHMEM_STATUS_IS_BOOTSTRAPPED);
    const size_t count = 1000;
    long *a = symmetric<long>(count * n), *b = symmetric<long>(count * n);
    CHECK_EQ(nvshmemx_init_status(), NVSHMEM_STATUS_IS_INITIALIZED);
    CHECK(nvshmem_malloc(0) == nullptr);
    CHECK(((uintptr_t)nvshmem_align(4096, 100) & 4095) == 0);
    CHECK(nvshmem_ptr(a, me) == a);
    CHECK(nvshmem_ptr(&count, me) == nullptr);
    CHECK(nvshmem_ptr(a, n) == nullptr);
    std::vector<long> values(count * n);
    for (size_t i = 0; i < values.size(); ++i) values[i] = 1000000 * me + (long)i;
    CUDA(cudaMemcpy(a, values.data(), values.size() * sizeof(long), cudaMemcpyHostToDevice));
    meet_with_copies();

    // Without a stream.
    nvshmem_long_put(b, a, count, right);
    nvshmem_barrier_all();
    CHECK_EQ(host(b, count)[999], 1000000 * left + 999);
    nvshmem_long_get(b + count, a + 5, 10, left);
    if (n > 1) CHECK_EQ(host(b + count, 10)[9], 1000000 * left + 14);
    nvshmem_long_p(b, 77 + me, right);
    nvshmem_barrier_all();
    CHECK_EQ(host(b, 1)[0], 77 + left);
    CHECK_EQ(nvshmem_long_g(b, right), 77 + me);
    nvshmem_long_iput(b, a, 3, 2, 20, right);
    nvshmem_barrier_all();
    CHECK_EQ(host(b, 60)[57], 1000000 * left + 38);
    nvshmem_barrier_all();
    CHECK_EQ(nvshmem_long_atomic_fetch_add(b, 5, right) >= 1000000 * me, 1);
    nvshmem_barrier_all();
    CHECK_EQ(nvshmem_long_g(b, right), 1000000 * me + 5);
    CHECK_EQ(nvshmem_long_atomic_compare_swap(b, 1000000L * me + 5, 9, right), 1000000 * me + 5);
    nvshmem_barrier_all();
    CHECK_EQ(nvshmem_long_atomic_fetch(b, me), 9);
    nvshmem_barrier_all();

    // In a stream, and in a graph of it.
    cudaStream_t stream;
    CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    uint64_t *signal = symmetric<uint64_t>(2);
    nvshmemx_putmem_signal_nbi_on_stream(b, a, count * sizeof(long), signal, 3, NVSHMEM_SIGNAL_SET, right, stream);
    nvshmemx_signal_wait_until_on_stream(signal, NVSHMEM_CMP_EQ, 3, stream);
    CUDA(cudaStreamSynchronize(stream));
    CHECK_EQ(host(b, count)[500], 1000000 * left + 500);
    nvshmem_barrier_all();
    // From memory that is not symmetric; then words alone, behind it.
    long *elsewhere;
    CUDA(cudaMalloc(&elsewhere, 5 * sizeof(long)));
    CUDA(cudaMemset(elsewhere, me + 1, 5 * sizeof(long)));
    nvshmemx_long_put_signal_on_stream(b, elsewhere, 5, signal, 1, NVSHMEM_SIGNAL_ADD, right, stream);
    nvshmemx_signal_wait_until_on_stream(signal, NVSHMEM_CMP_GE, 4, stream);
    nvshmemx_int_p_on_stream((int *)(b + 7), -3 - me, right, stream);
    nvshmemx_long_p_on_stream(b + 8, -4 - me, right, stream);
    nvshmemx_short_p_on_stream((short *)(b + 9), (short)(-5 - me), right, stream);
    nvshmemx_signal_op_on_stream(signal, 9, NVSHMEM_SIGNAL_SET, right, stream);
    nvshmemx_signal_wait_until_on_stream(signal, NVSHMEM_CMP_EQ, 9, stream);
    CUDA(cudaStreamSynchronize(stream));
    CHECK(host(b, 5) == std::vector<long>(5, 0x0101010101010101 * (left + 1)));
    CHECK_EQ((int)host(b, count)[7], -3 - left);
    CHECK_EQ(host(b, count)[8], -4 - left);
    CHECK_EQ((short)host(b, count)[9], -5 - left);
    CUDA(cudaFree(elsewhere));
    nvshmem_barrier_all();
    // A word, and behind it at once a kernel's signal, or a barrier; in the default streams, too.
    nvshmemx_long_p_on_stream(b + 8, 21 + me, right, stream);
    nvshmemx_signal_op_on_stream(signal, 1, NVSHMEM_SIGNAL_ADD, right, stream);
    nvshmemx_signal_wait_until_on_stream(signal, NVSHMEM_CMP_EQ, 10, stream);
    CUDA(cudaStreamSynchronize(stream));
    CHECK_EQ(host(b, 9)[8], 21 + left);
    nvshmem_barrier_all();
    cudaStream_t streams[] = {stream, 0, cudaStreamPerThread};
    for (int i = 0; i < 3; ++i) {
        nvshmemx_long_p_on_stream(b + 8, 30 + 2 * i, right, streams[i]);
        nvshmemx_signal_op_on_stream(signal, 40 + i, NVSHMEM_SIGNAL_SET, right, streams[i]);
        nvshmemx_barrier_all_on_stream(streams[i]);
        CUDA(cudaStreamSynchronize(streams[i]));
        CHECK_EQ(host(b, 9)[8], 30 + 2 * i);
        CHECK_EQ(host(signal, 1)[0], 40 + i);
        nvshmem_barrier_all();
    }
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    nvshmemx_long_put_nbi_on_stream(b, a + 1, 7, right, stream);
    nvshmemx_quiet_on_stream(stream);
    nvshmemx_signal_op_on_stream(signal + 1, 1, NVSHMEM_SIGNAL_ADD, right, stream);
    nvshmemx_signal_op_on_stream(signal, 17, NVSHMEM_SIGNAL_SET, right, stream);
    nvshmemx_long_p_on_stream(b + 9, 18 + me, right, stream);
    nvshmemx_barrier_all_on_stream(stream);
    CUDA(cudaStreamEndCapture(stream, &graph));
    CUDA(cudaGraphInstantiate(&executable, graph, 0));
    for (int i = 0; i < 3; ++i) CUDA(cudaGraphLaunch(executable, stream));
    CUDA(cudaStreamSynchronize(stream));
    CHECK_EQ(host(b, 7)[6], 1000000 * left + 7);
    CHECK_EQ(host(signal + 1, 1)[0], 3);
    CHECK_EQ(host(signal, 1)[0], 17);
    CHECK_EQ(host(b, 10)[9], 18 + left);
    // The default stream, and the thread's own.
    nvshmemx_barrier_all_on_stream(0);
    nvshmemx_sync_all_on_stream(cudaStreamPerThread);
    CUDA(cudaDeviceSynchronize());

    // Collectives of all.
    CHECK_EQ(nvshmemx_long_fcollect_on_stream(NVSHMEM_TEAM_WORLD, b, a, count, stream), 0);
    CUDA(cudaStreamSynchronize(stream));
    for (int pe = 0; pe < n; ++pe) CHECK_EQ(host(b + pe * count, 3)[2], 1000000 * pe + 2);
    CHECK_EQ(nvshmem_long_alltoall(NVSHMEM_TEAM_WORLD, b, a, 3), 0);
    for (int pe = 0; pe < n; ++pe) CHECK_EQ(host(b + pe * 3, 3)[1], 1000000 * pe + 3 * me + 1);
    nvshmem_barrier_all();
    CHECK_EQ(nvshmem_long_broadcast(NVSHMEM_TEAM_WORLD, b, a, 11, n - 1), 0);
    CHECK_EQ(host(b, 11)[10], 1000000 * (n - 1) + 10);
    nvshmem_barrier_all();
    CHECK_EQ(nvshmemx_long_sum_reduce_on_stream(NVSHMEM_TEAM_WORLD, b, a, count, stream), 0);
    CUDA(cudaStreamSynchronize(stream));
    CHECK_EQ(host(b, count)[999], 1000000L * n * (n - 1) / 2 + 999L * n);
    nvshmem_barrier_all();
    unsigned char *c = symmetric<unsigned char>(64 * n), *d = symmetric<unsigned char>(64);
    CUDA(cudaMemset(c, 1 << me, 64 * n));
    meet_with_copies();
    CHECK_EQ(nvshmem_uchar_or_reducescatter(NVSHMEM_TEAM_WORLD, d, c, 64), 0);
    CHECK_EQ(host(d, 64)[63], (1 << n) - 1);
    CHECK_EQ(nvshmem_uchar_sum_reduce(NVSHMEM_TEAM_WORLD, d, c, 64), 0);
    CHECK_EQ(host(d, 64)[0], (1 << n) - 1);
    __half *h = symmetric<__half>(32), *k = symmetric<__half>(32);
    std::vector<__half> halves(32, __float2half(1.5f * (me + 1)));
    CUDA(cudaMemcpy(h, halves.data(), 64, cudaMemcpyHostToDevice));
    meet_with_copies();
    CHECK_EQ(nvshmemx_half_sum_reduce_on_stream(NVSHMEM_TEAM_WORLD, k, h, 32, stream), 0);
    CUDA(cudaStreamSynchronize(stream));
    CHECK_EQ(__half2float(host(k, 32)[31]), 1.5f * n * (n + 1) / 2);

    // Teams: duplicates of all, each PE alone, rows and columns.
    int *source = symmetric<int>(3), *dest = symmetric<int>(3), *who;
    const int ones[] = {1, me, 10};
    CUDA(cudaMemcpy(source, ones, 12, cudaMemcpyHostToDevice));
    CUDA(cudaMalloc(&who, 5 * sizeof(int)));
    meet_with_copies();
    nvshmem_team_t teams[20];
    for (auto &team : teams) CHECK_EQ(nvshmem_team_split_strided(NVSHMEM_TEAM_WORLD, 0, 1, n, nullptr, 0, &team), 0);
    for (auto &team : teams) {
        team_sum<<<1, 96>>>(team, dest, source, who);
        CUDA(cudaDeviceSynchronize());
        CHECK_EQ(host(dest, 3)[1], n * (n - 1) / 2);
        CHECK_EQ(host(who, 5)[0], me);
        CHECK_EQ(host(who, 5)[2], n - 1);
        CHECK_EQ(host(who, 5)[3], 1);
        CHECK_EQ(host(who, 5)[4], 1);
    }
    CHECK_EQ(nvshmemx_barrier_on_stream(teams[3], stream), 0);
    CHECK_EQ(nvshmem_team_sync(teams[4]), 0);
    for (auto team : teams) nvshmem_team_destroy(team);
    nvshmem_team_t even;
    CHECK_EQ(nvshmem_team_split_strided(NVSHMEM_TEAM_WORLD, 0, 2, (n + 1) / 2, nullptr, 0, &even), 0);
    CHECK_EQ(even == NVSHMEM_TEAM_INVALID, me % 2 != 0);
    if (even != NVSHMEM_TEAM_INVALID) {
        team_sum<<<1, 32>>>(even, dest, source, who);
        CUDA(cudaDeviceSynchronize());
        CHECK_EQ(host(dest, 3)[0], (n + 1) / 2);
        nvshmem_team_destroy(even);
    }
    nvshmem_team_t x, y;
    CHECK_EQ(nvshmem_team_split_2d(NVSHMEM_TEAM_WORLD, 2, nullptr, 0, &x, nullptr, 0, &y), 0);
    CHECK_EQ(nvshmem_team_my_pe(x), me % 2);
    CHECK_EQ(nvshmem_team_my_pe(y), me / 2);
    team_sum<<<1, 32>>>(x, dest, source, who);
    CUDA(cudaDeviceSynchronize());
    CHECK_EQ(host(dest, 3)[0], nvshmem_team_n_pes(x));
    nvshmem_barrier_all();
    return end("from_host");
}
