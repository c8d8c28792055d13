// What is newer than most of the interface: functions with queue pairs by every type and scope, a warpgroup's barrier, teams
// that their members make without a parent, and the place of the greatest value.
#include "check.h"
#include "sets.h"

static int me, n;

// What a PE is at. Of a run that hangs these are the last lines.
static void at(const char *what) { fprintf(stderr, "PE %d: %s\n", me, what); }

// ---- Queue pairs. Areas of 40 elements: put, put_nbi, put_signal, put_signal_nbi, get, get_nbi, and p and g; the eighth
// is what gets read.
constexpr size_t width = 40, count = 33;
#define QP_KERNEL(NAME, T, F)                                                                                         \
    __global__ void qp_##NAME##F(T *a, const T *s, int pe, uint64_t *g, nvshmemx_qp_handle_t qp) {                    \
        nvshmemx_qp_##NAME##_put##F(a, s, count, pe, qp);                                                             \
        nvshmemx_qp_##NAME##_put_nbi##F(a + width, s, count, pe, NVSHMEMX_QP_DEFAULT);                                \
        nvshmemx_qp_##NAME##_put_signal##F(a + 2 * width, s, count, g, 5, NVSHMEM_SIGNAL_SET, pe, qp);                \
        nvshmemx_qp_##NAME##_put_signal_nbi##F(a + 3 * width, s, count, g + 1, 3, NVSHMEM_SIGNAL_ADD, pe, qp);        \
        nvshmemx_qp_fence##F(pe, &qp, 1);                                                                             \
        nvshmemx_qp_##NAME##_get##F(a + 4 * width, a + 7 * width, count, pe, qp);                                     \
        nvshmemx_qp_##NAME##_get_nbi##F(a + 5 * width, a + 7 * width, count, pe, NVSHMEMX_QP_ANY);                    \
        if (threadIdx.x == 0) {                                                                                       \
            nvshmemx_qp_##NAME##_p(a + 6 * width, s[count - 1], pe, qp);                                              \
            (a + 6 * width)[1] = nvshmemx_qp_##NAME##_g(a + 7 * width + 1, pe, qp);                                   \
            nvshmemx_qp_signal_op(g + 1, 4, NVSHMEM_SIGNAL_ADD, pe, qp);                                              \
        }                                                                                                             \
        nvshmemx_qp_quiet##F(NVSHMEMX_PE_ALL, &qp, 1);                                                                \
    }
#define QP_KERNELS(NAME, T) QP_KERNEL(NAME, T, ) QP_KERNEL(NAME, T, _warp) QP_KERNEL(NAME, T, _block)
EACH_rma(QP_KERNELS)

// Bits are compared: every type has other ones for every PE and place.
template <class T, class Kernel> static void qp(const char *name, Kernel kernel, int threads, void *heap, uint64_t *signals,
                                                nvshmemx_qp_handle_t pair) {
    const size_t all = 8 * width;
    T *a = (T *)heap, *s;
    CUDA(cudaMalloc(&s, count * sizeof(T)));
    auto bytes = [](int pe, size_t i) { return (unsigned char)(pe * 89 + i * 7 + 1); };
    auto fill = [&](T *to, int pe) {
        std::vector<unsigned char> some(count * sizeof(T));
        for (size_t i = 0; i < some.size(); ++i) some[i] = bytes(pe, i);
        CUDA(cudaMemcpy(to, some.data(), some.size(), cudaMemcpyHostToDevice));
    };
    const int to = (me + 1) % n, from = (me + n - 1) % n;
    CUDA(cudaMemset(a, 0, all * sizeof(T)));
    CUDA(cudaMemset(signals, 0, 16));
    fill(s, me);
    fill(a + 7 * width, me + 100);
    meet_with_copies();
    kernel<<<1, threads>>>(a, s, to, signals, pair);
    CUDA(cudaDeviceSynchronize());
    nvshmem_barrier_all();
    const auto got = host((unsigned char *)a, all * sizeof(T));
    const int before = failures;
    auto area = [&](size_t at, int pe, size_t first, size_t bytes_of) {
        for (size_t i = 0; i < bytes_of; ++i) CHECK_EQ(got[at * sizeof(T) + i], bytes(pe, first * sizeof(T) + i));
    };
    for (size_t part = 0; part < 4; ++part) area(part * width, from, 0, count * sizeof(T));
    for (size_t part = 4; part < 6; ++part) area(part * width, to + 100, 0, count * sizeof(T));
    area(6 * width, from, count - 1, sizeof(T));
    area(6 * width + 1, to + 100, 1, sizeof(T));
    for (size_t part = 0; part < 6; ++part) CHECK_EQ(got[(part * width + count) * sizeof(T)], 0);
    CHECK_EQ(host(signals, 2)[0], 5);
    CHECK_EQ(host(signals, 2)[1], 7);
    if (failures != before) fprintf(stderr, "  in queue pairs of %s, %d threads\n", name, threads);
    CUDA(cudaFree(s));
    nvshmem_barrier_all();
}

// ---- A warpgroup's barrier, round after round: what the left neighbour put before it is there after it. The other
// warpgroups of the block meet the block only.
__global__ void warpgroups(nvshmem_team_t team, int *box, int rounds, int right, int group, int *wrong) {
    if ((int)threadIdx.x / 128 == group) {
        for (int round = 1; round <= rounds; ++round) {
            // Each thread its own word; a thread of another warp looks.
            nvshmem_int_p(box + threadIdx.x, round * 1000 + (int)threadIdx.x, right);
            if (nvshmemx_barrier_warpgroup(team) != 0) atomicAdd(wrong, 1);
            const int other = group * 128 + (threadIdx.x + 37) % 128;
            if (*(volatile int *)(box + other) != round * 1000 + other) atomicAdd(wrong, 1);
            nvshmemx_barrier_warpgroup(team);
        }
    }
    __syncthreads();
}

// ---- Teams without a parent.
__global__ void team_sum(nvshmem_team_t team, int *dest, const int *source) {
    nvshmemx_int_sum_reduce_block(team, dest, source, 1);
}
static void sum_in(nvshmem_team_t team, int expected, int *dest, const int *source) {
    team_sum<<<1, 64>>>(team, dest, source);
    CUDA(cudaDeviceSynchronize());
    CHECK_EQ(host(dest, 1)[0], expected);
}

// ---- The greatest value and where it is.
__global__ void maxloc(double2 *dest, const double2 *source, size_t k) {
    nvshmemx_double2_maxloc_reduce_block(NVSHMEM_TEAM_WORLD, dest, source, k);
}

int main() {
    begin();
    me = nvshmem_my_pe(), n = nvshmem_n_pes();
    void *heap = nvshmem_calloc(8 * width, 16);
    uint64_t *signals = (uint64_t *)nvshmem_calloc(2, 8);
    nvshmemx_qp_handle_t *pairs = nullptr;
    CHECK_EQ(nvshmemx_qp_create(3, &pairs), 0);
    CHECK(pairs != nullptr && pairs[0] != pairs[1] && pairs[1] != pairs[2] && pairs[0] != pairs[2]);
    at("queue pairs");
#define RUN(NAME, T)                                             \
    qp<T>(#NAME, qp_##NAME, 1, heap, signals, pairs[0]);         \
    qp<T>(#NAME, qp_##NAME##_warp, 32, heap, signals, pairs[1]); \
    qp<T>(#NAME, qp_##NAME##_block, 160, heap, signals, pairs[2]);
    EACH_rma(RUN)

    int *box = (int *)nvshmem_calloc(1024, sizeof(int)), *wrong;
    CUDA(cudaMalloc(&wrong, sizeof(int)));
    CUDA(cudaMemset(wrong, 0, sizeof(int)));
    for (int group : {0, 1, 7}) {
        at(group == 0 ? "a warpgroup alone" : "a warpgroup among others");
        warpgroups<<<1, group == 0 ? 128 : 1024>>>(NVSHMEM_TEAM_WORLD, box, 50, (me + 1) % n, group, wrong);
        CUDA(cudaDeviceSynchronize());
        nvshmem_barrier_all();
    }
    CHECK_EQ(host(wrong, 1)[0], 0);

    // Everybody, the even ones (twice over), and each alone. Ids travel as a program's do.
    int *source = (int *)nvshmem_calloc(1, sizeof(int)), *dest = (int *)nvshmem_calloc(1, sizeof(int));
    uint64_t *ids = (uint64_t *)nvshmem_calloc(6, 8);
    const int next = me + 1;
    CUDA(cudaMemcpy(source, &next, sizeof(int), cudaMemcpyHostToDevice));
    at("ids");
    nvshmemx_team_uniqueid_t mine[3];
    for (auto &id : mine) CHECK_EQ(nvshmemx_team_get_uniqueid(&id), 0);
    if (me == 0) CUDA(cudaMemcpy(ids, mine, sizeof(mine), cudaMemcpyHostToDevice));
    CUDA(cudaDeviceSynchronize());
    CHECK_EQ(nvshmem_uint64_broadcast(NVSHMEM_TEAM_WORLD, ids + 3, ids, 3, 0), 0);
    const auto common = host(ids + 3, 3);
    nvshmem_barrier_all();
    auto make = [&](uint64_t id, int size, int index) {
        nvshmem_team_config_t config = NVSHMEM_TEAM_CONFIG_INITIALIZER;
        config.uniqueid = id;
        nvshmem_team_t team = NVSHMEM_TEAM_INVALID;
        CHECK_EQ(nvshmemx_team_init(&team, &config, NVSHMEM_TEAM_CONFIG_MASK_UNIQUEID, size, index), 0);
        CHECK_EQ(nvshmem_team_my_pe(team), index);
        CHECK_EQ(nvshmem_team_n_pes(team), size);
        return team;
    };
    at("a team of all");
    const nvshmem_team_t everyone = make(common[0], n, me);
    at("its sum");
    sum_in(everyone, n * (n + 1) / 2, dest, source);
    at("teams of some");
    if (me % 2 == 0) {
        const int evens = (n + 1) / 2;
        const nvshmem_team_t one = make(common[1], evens, me / 2), other = make(common[2], evens, me / 2);
        CHECK(one != other);
        sum_in(one, evens * evens, dest, source);
        sum_in(other, evens * evens, dest, source);
        nvshmem_team_destroy(other);
        sum_in(one, evens * evens, dest, source);
        nvshmem_team_destroy(one);
    }
    const nvshmem_team_t alone = make(mine[0] ^ 1, 1, 0);
    sum_in(alone, me + 1, dest, source);
    nvshmem_team_destroy(alone);
    nvshmem_team_destroy(everyone);

    at("the greatest");
    const size_t k = 300;
    double2 *from = (double2 *)nvshmem_calloc(k, sizeof(double2)), *to = (double2 *)nvshmem_calloc(k, sizeof(double2));
    // PE i % n has the greatest of place i; place 0 is the same for all: then the first PE's place counts.
    std::vector<double2> values(k);
    for (size_t i = 0; i < k; ++i) values[i] = make_double2(i == 0 ? 2.5 : (int)(i % n) == me ? 100.0 + i : 1.0 * me, 1000.0 * me + i);
    CUDA(cudaMemcpy(from, values.data(), k * sizeof(double2), cudaMemcpyHostToDevice));
    meet_with_copies();
    maxloc<<<1, 96>>>(to, from, k);
    CUDA(cudaDeviceSynchronize());
    const auto greatest = host(to, k);
    for (size_t i = 0; i < k; ++i) {
        CHECK_EQ(greatest[i].x, i == 0 ? 2.5 : 100.0 + i);
        CHECK_EQ(greatest[i].y, i == 0 ? 0.0 : 1000.0 * (int)(i % n) + i);
    }
    return end("newer");
}
