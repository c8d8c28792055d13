// Every operation of every type by every scope, against what it means. PART chooses what is compiled: units of all would
// take minutes. `sets.h` has the types, made from the table.
#include "check.h"
#include "sets.h"
#include <type_traits>

#ifndef PART
#error "PART is 0 to 7"
#endif
#define PART_IS(a) (PART == (a))

static int me, n_pes;

[[maybe_unused]] static double number(__half x) { return __half2float(x); }
[[maybe_unused]] static double number(__nv_bfloat16 x) { return __bfloat162float(x); }
template <class T> static double number(T x) { return (double)x; }
template <class T> static T make(long x) { return (T)x; }
template <> [[maybe_unused]] __half make<__half>(long x) { return __float2half((float)x); }
template <> [[maybe_unused]] __nv_bfloat16 make<__nv_bfloat16>(long x) { return __float2bfloat16((float)x); }

// Small numbers, exact in every type, other ones for every PE and place.
[[maybe_unused]] static long value(int pe, size_t i) { return (long)((pe * 7 + i * 3) % 19 + 1); }

static void *heap;
[[maybe_unused]] static uint64_t *signals;
[[maybe_unused]] static const size_t sizes[] = {0, 1, 7, 1000};

template <class T> static void fill(T *device, size_t n, int pe, long times = 1) {
    std::vector<T> values(n);
    for (size_t i = 0; i < n; ++i) values[i] = make<T>(value(pe, i) * times);
    CUDA(cudaMemcpy(device, values.data(), n * sizeof(T), cudaMemcpyHostToDevice));
}
static void finish() {
    CUDA(cudaDeviceSynchronize());
    nvshmem_barrier_all();
}

// ---- Puts, gets, signals: areas of W elements one behind the other; the tenth is what gets read.
#define RMA_KERNEL(NAME, T, P, F)                                                                        \
    __global__ void rma_##NAME##F(T *a, const T *s, size_t n, size_t w, int pe, uint64_t *g) {           \
        P##_##NAME##_put##F(a, s, n, pe);                                                                \
        P##_##NAME##_put_nbi##F(a + w, s, n, pe);                                                        \
        P##_##NAME##_iput##F(a + 2 * w, s, 2, 1, n, pe);                                                 \
        P##_##NAME##_put_signal##F(a + 3 * w, s, n, g, 5, NVSHMEM_SIGNAL_SET, pe);                       \
        P##_##NAME##_put_signal_nbi##F(a + 4 * w, s, n, g + 1, 3, NVSHMEM_SIGNAL_ADD, pe);               \
        nvshmem_quiet();                                                                                 \
        P##_barrier_all##F();                                                                            \
        P##_##NAME##_get##F(a + 5 * w, a + 9 * w, n, pe);                                                \
        P##_##NAME##_get_nbi##F(a + 6 * w, a + 9 * w, n, pe);                                            \
        P##_##NAME##_iget##F(a + 7 * w, a + 9 * w, 1, 2, n, pe);                                         \
        if (threadIdx.x == 0 && n > 0) {                                                                 \
            nvshmem_##NAME##_p(a + 8 * w, s[n - 1], pe);                                                 \
            (a + 8 * w)[1] = nvshmem_##NAME##_g(a + 9 * w + n - 1, pe);                                  \
        }                                                                                                \
    }
template <class T, class Kernel> static void rma(const char *name, Kernel kernel, int threads) {
    T *a = (T *)heap, *s;
    CUDA(cudaMalloc(&s, 1000 * sizeof(T)));
    for (int to : {me, (me + 1) % n_pes}) {
        const int from = to == me ? me : (me + n_pes - 1) % n_pes;
        for (size_t n : sizes) {
            const size_t w = 2 * n + 16;
            CUDA(cudaMemset(a, 0, 10 * w * sizeof(T)));
            CUDA(cudaMemset(signals, 0, 16));
            fill(s, n, me);
            fill(a + 9 * w, 2 * n, me + 3);
            finish();
            kernel<<<1, threads>>>(a, s, n, w, to, signals);
            finish();
            const auto got = host(a, 10 * w);
            const int before = failures;
            for (size_t i = 0; i < n; ++i) {
                for (int k : {0, 1, 3, 4}) CHECK_EQ(number(got[k * w + i]), value(from, i));
                CHECK_EQ(number(got[2 * w + 2 * i]), value(from, i));
                for (int k : {5, 6}) CHECK_EQ(number(got[k * w + i]), value(to + 3, i));
                CHECK_EQ(number(got[7 * w + i]), value(to + 3, 2 * i));
            }
            // Not a byte more.
            for (int k : {0, 1, 3, 4, 5, 6, 7}) CHECK_EQ(number(got[k * w + n]), 0);
            if (n > 0) {
                CHECK_EQ(number(got[2 * w + 1]), 0);
                CHECK_EQ(number(got[8 * w]), value(from, n - 1));
                CHECK_EQ(number(got[8 * w + 1]), value(to + 3, n - 1));
            }
            CHECK_EQ(host(signals, 2)[0], 5);
            CHECK_EQ(host(signals, 2)[1], 3);
            if (failures != before) fprintf(stderr, "  in rma of %s, %d threads, %zu elements, to PE %d\n", name, threads, n, to);
        }
    }
    CUDA(cudaFree(s));
}
#if PART_IS(0)
#define DEFINE(NAME, T) RMA_KERNEL(NAME, T, nvshmem, )
#define RUN(NAME, T) rma<T>(#NAME, rma_##NAME, 1);
EACH_rma(DEFINE)
static void run() { EACH_rma(RUN) }
#elif PART_IS(1)
#define DEFINE(NAME, T) RMA_KERNEL(NAME, T, nvshmemx, _warp)
#define RUN(NAME, T) rma<T>(#NAME, rma_##NAME##_warp, 32);
EACH_rma(DEFINE)
static void run() { EACH_rma(RUN) }
#elif PART_IS(2)
#define DEFINE(NAME, T) RMA_KERNEL(NAME, T, nvshmemx, _block)
#define RUN(NAME, T) rma<T>(#NAME, rma_##NAME##_block, 160);
EACH_rma(DEFINE)
static void run() { EACH_rma(RUN) }

// ---- Atomics, waits and tests.
#elif PART_IS(3)
#define AMO_KERNEL(NAME, T)                                                                              \
    __global__ void amo_##NAME(T *w, T *out, int pe) {                                                   \
        out[0] = nvshmem_##NAME##_atomic_compare_swap(w, 3, 40, pe);                                     \
        out[1] = nvshmem_##NAME##_atomic_compare_swap(w, 3, 50, pe);                                     \
        out[2] = nvshmem_##NAME##_atomic_fetch_inc(w, pe);                                               \
        nvshmem_##NAME##_atomic_inc(w, pe);                                                              \
        out[3] = nvshmem_##NAME##_atomic_fetch_add(w, 10, pe);                                           \
        nvshmem_##NAME##_atomic_add(w, 2, pe);                                                           \
        nvshmem_quiet();                                                                                 \
        out[4] = nvshmem_##NAME##_atomic_fetch(w, pe);                                                   \
        out[5] = nvshmem_##NAME##_atomic_swap(w, 7, pe);                                                 \
        nvshmem_##NAME##_atomic_set(w, 9, pe);                                                           \
        nvshmem_quiet();                                                                                 \
        out[6] = nvshmem_##NAME##_g(w, pe);                                                              \
    }                                                                                                    \
    static void test_amo_##NAME() {                                                                      \
        for (int to : {me, (me + 1) % n_pes}) {                                                          \
            T *w = (T *)heap, *out = w + 8;                                                              \
            const T three = 3;                                                                           \
            CUDA(cudaMemcpy(w, &three, sizeof(T), cudaMemcpyHostToDevice));                              \
            finish();                                                                                    \
            amo_##NAME<<<1, 1>>>(w, out, to);                                                            \
            finish();                                                                                    \
            const auto got = host(out, 7);                                                               \
            const long expected[] = {3, 40, 40, 42, 54, 54, 9};                                          \
            for (int i = 0; i < 7; ++i) CHECK_EQ(got[i], expected[i]);                                   \
            const T at_host = 100;                                                                       \
            finish();                                                                                    \
            nvshmem_##NAME##_atomic_set(w, at_host, to);                                                 \
            finish();                                                                                    \
            CHECK_EQ(nvshmem_##NAME##_atomic_fetch_add(w, 5, to), 100);                                  \
            CHECK_EQ(nvshmem_##NAME##_atomic_fetch(w, to), 105);                                         \
            finish();                                                                                    \
        }                                                                                                \
    }
#define REAL_KERNEL(T)                                                                                   \
    __global__ void amo_##T(T *w, T *out, int pe) {                                                      \
        nvshmem_##T##_atomic_set(w, (T)1.5, pe);                                                         \
        out[0] = nvshmem_##T##_atomic_swap(w, (T)2.5, pe);                                               \
        out[1] = nvshmem_##T##_atomic_fetch(w, pe);                                                      \
    }
#define BITS_KERNEL(NAME, T)                                                                             \
    __global__ void bits_##NAME(T *w, T *out, int pe) {                                                  \
        out[0] = nvshmem_##NAME##_atomic_fetch_or(w, 12, pe);                                            \
        out[1] = nvshmem_##NAME##_atomic_fetch_and(w, 10, pe);                                           \
        out[2] = nvshmem_##NAME##_atomic_fetch_xor(w, 6, pe);                                            \
        nvshmem_##NAME##_atomic_or(w, 1, pe);                                                            \
        nvshmem_##NAME##_atomic_and(w, 13, pe);                                                          \
        nvshmem_##NAME##_atomic_xor(w, 16, pe);                                                          \
        nvshmem_quiet();                                                                                 \
        out[3] = nvshmem_##NAME##_g(w, pe);                                                              \
    }                                                                                                    \
    static void test_bits_##NAME() {                                                                     \
        const int to = (me + 1) % n_pes;                                                                 \
        T *w = (T *)heap, *out = w + 8;                                                                  \
        const T three = 3;                                                                               \
        CUDA(cudaMemcpy(w, &three, sizeof(T), cudaMemcpyHostToDevice));                                  \
        finish();                                                                                        \
        bits_##NAME<<<1, 1>>>(w, out, to);                                                               \
        finish();                                                                                        \
        const auto got = host(out, 4);                                                                   \
        const long expected[] = {3, 15, 10, 29};                                                         \
        for (int i = 0; i < 4; ++i) CHECK_EQ(got[i], expected[i]);                                       \
    }
// w: five words 1 2 3 4 5 that the neighbour puts, after a while; results of each form of waiting and testing.
#define WAIT_KERNEL(NAME, T)                                                                             \
    __global__ void wait_##NAME(T *w, long *out, size_t *indices, int *status, T *vector, int pe) {      \
        if (threadIdx.x == 32) {                                                                         \
            for (int i = 0; i < 5; ++i) nvshmem_##NAME##_p(w + i, (T)(i + 1), pe);                       \
            return;                                                                                      \
        }                                                                                                \
        if (threadIdx.x != 0) return;                                                                    \
        nvshmem_##NAME##_wait_until(w, NVSHMEM_CMP_EQ, 1);                                               \
        nvshmem_##NAME##_wait_until_all(w, 5, nullptr, NVSHMEM_CMP_GT, 0);                               \
        nvshmem_##NAME##_wait_until_all_vector(w, 5, nullptr, NVSHMEM_CMP_GE, vector);                   \
        out[0] = (long)nvshmem_##NAME##_wait_until_any(w, 5, nullptr, NVSHMEM_CMP_GE, 5);                \
        out[1] = (long)nvshmem_##NAME##_wait_until_any(w, 5, status, NVSHMEM_CMP_LE, 2);                 \
        out[2] = (long)nvshmem_##NAME##_wait_until_some(w, 5, indices, nullptr, NVSHMEM_CMP_LT, 3);      \
        out[3] = (long)indices[1];                                                                       \
        out[4] = nvshmem_##NAME##_test(w, NVSHMEM_CMP_NE, 1);                                            \
        out[5] = nvshmem_##NAME##_test_all(w, 5, status, NVSHMEM_CMP_GT, 1);                             \
        out[6] = (long)nvshmem_##NAME##_test_any(w, 5, nullptr, NVSHMEM_CMP_GT, 9);                      \
        out[7] = (long)nvshmem_##NAME##_test_some(w, 5, indices, status, NVSHMEM_CMP_GE, 1);             \
        out[8] = nvshmem_##NAME##_test_all_vector(w, 5, nullptr, NVSHMEM_CMP_EQ, vector);                \
        out[9] = (long)nvshmem_##NAME##_test_some_vector(w, 5, indices, nullptr, NVSHMEM_CMP_EQ, vector);\
        out[10] = (long)nvshmem_##NAME##_wait_until_some_vector(w, 5, indices, nullptr, NVSHMEM_CMP_EQ, vector); \
        out[11] = (long)nvshmem_##NAME##_wait_until_any_vector(w, 1, nullptr, NVSHMEM_CMP_EQ, vector);   \
        out[12] = (long)nvshmem_##NAME##_test_any_vector(w, 5, nullptr, NVSHMEM_CMP_NE, vector);         \
    }                                                                                                    \
    static void test_wait_##NAME() {                                                                     \
        T *w = (T *)heap;                                                                                \
        long *out;                                                                                       \
        size_t *indices;                                                                                 \
        int *status, leave[] = {1, 0, 0, 0, 0};                                                          \
        T *vector, numbers[] = {1, 2, 3, 4, 5};                                                          \
        CUDA(cudaMalloc(&out, 13 * sizeof(long)));                                                       \
        CUDA(cudaMalloc(&indices, 5 * sizeof(size_t)));                                                  \
        CUDA(cudaMalloc(&status, sizeof(leave)));                                                        \
        CUDA(cudaMalloc(&vector, sizeof(numbers)));                                                      \
        CUDA(cudaMemcpy(status, leave, sizeof(leave), cudaMemcpyHostToDevice));                          \
        CUDA(cudaMemcpy(vector, numbers, sizeof(numbers), cudaMemcpyHostToDevice));                      \
        CUDA(cudaMemset(w, 0, 5 * sizeof(T)));                                                           \
        finish();                                                                                        \
        wait_##NAME<<<1, 64>>>(w, out, indices, status, vector, (me + 1) % n_pes);                       \
        finish();                                                                                        \
        const auto got = host(out, 13);                                                                  \
        const long expected[] = {4, 1, 2, 1, 0, 1, -1, 4, 1, 5, 5, 0, -1};                               \
        for (int i = 0; i < 13; ++i)                                                                     \
            if (got[i] != expected[i] && failures++ < 20)                                                \
                fprintf(stderr, "PE %d: wait of " #NAME ", form %d: %ld, expected %ld\n", me, i, got[i], expected[i]); \
        CUDA(cudaFree(out));                                                                             \
        CUDA(cudaFree(indices));                                                                         \
        CUDA(cudaFree(status));                                                                          \
        CUDA(cudaFree(vector));                                                                          \
    }
#define RUN_AMO(NAME, T) test_amo_##NAME();
#define RUN_BITS(NAME, T) test_bits_##NAME();
#define RUN_WAIT(NAME, T) test_wait_##NAME();
EACH_amo(AMO_KERNEL)
EACH_bits(BITS_KERNEL)
EACH_wait(WAIT_KERNEL)
REAL_KERNEL(float)
REAL_KERNEL(double)
template <class T, class Kernel> static void real(Kernel kernel) {
    T *w = (T *)heap;
    kernel<<<1, 1>>>(w, w + 8, (me + 1) % n_pes);
    finish();
    CHECK_EQ(host(w + 8, 2)[0], 1.5);
    CHECK_EQ(host(w + 8, 2)[1], 2.5);
    finish();
}
static void run() {
    EACH_amo(RUN_AMO) EACH_bits(RUN_BITS) EACH_wait(RUN_WAIT)
    real<float>(amo_float);
    real<double>(amo_double);
}

// ---- Collectives, over several teams.
#else
struct team_case {
    const char *name;
    nvshmem_team_t team;
    std::vector<int> pes;
    // All PEs meet around a team's collectives, those that are not in it, too.
    bool has_me() const { return team != NVSHMEM_TEAM_INVALID; }
};
static std::vector<team_case> teams;
[[maybe_unused]] static void make_teams() {
    std::vector<int> all, row;
    for (int pe = 0; pe < n_pes; ++pe) all.push_back(pe);
    nvshmem_team_t twin, x, y, even;
    CHECK_EQ(nvshmem_team_split_strided(NVSHMEM_TEAM_WORLD, 0, 1, n_pes, nullptr, 0, &twin), 0);
    CHECK_EQ(nvshmem_team_split_2d(NVSHMEM_TEAM_WORLD, 2, nullptr, 0, &x, nullptr, 0, &y), 0);
    CHECK_EQ(nvshmem_team_split_strided(NVSHMEM_TEAM_WORLD, 0, 2, (n_pes + 1) / 2, nullptr, 0, &even), 0);
    for (int pe = me / 2 * 2; pe < n_pes && pe < me / 2 * 2 + 2; ++pe) row.push_back(pe);
    teams.push_back({"world", NVSHMEM_TEAM_WORLD, all});
    teams.push_back({"duplicate", twin, all});
    teams.push_back({"row", x, row});
    if (n_pes > 2) {
        std::vector<int> evens;
        for (int pe = 0; pe < n_pes; pe += 2) evens.push_back(pe);
        teams.push_back({"even", even, evens});
    }
}

#define MOVE_KERNEL(NAME, T, P, F)                                                                       \
    __global__ void move_##NAME##F(nvshmem_team_t t, T *d, const T *s, size_t n, size_t w, int root, int *r) { \
        const int a = P##_##NAME##_fcollect##F(t, d, s, n), b = P##_##NAME##_alltoall##F(t, d + w, s, n), \
                  c = P##_##NAME##_broadcast##F(t, d + 2 * w, s, n, root);                               \
        if (threadIdx.x == 0) *r = a | b | c;                                                            \
    }
template <class T, class Kernel> static void move(const char *name, Kernel kernel, int threads) {
    int *result;
    CUDA(cudaMalloc(&result, sizeof(int)));
    for (const auto &team : teams)
        for (size_t n : sizes) {
            if (!team.has_me()) {
                finish(), finish();
                continue;
            }
            const size_t size = team.pes.size(), w = n * size + 16;
            const int rank = nvshmem_team_my_pe(team.team), root = (int)size - 1;
            T *d = (T *)heap, *s = d + 3 * w;
            CUDA(cudaMemset(d, 0, 3 * w * sizeof(T)));
            fill(s, n * size, me);
            finish();
            kernel<<<1, threads>>>(team.team, d, s, n, w, root, result);
            finish();
            CHECK_EQ(host(result, 1)[0], 0);
            const auto got = host(d, 3 * w);
            const int before = failures;
            for (size_t r = 0; r < size; ++r)
                for (size_t i = 0; i < n; ++i) {
                    CHECK_EQ(number(got[r * n + i]), value(team.pes[r], i));
                    CHECK_EQ(number(got[w + r * n + i]), value(team.pes[r], rank * n + i));
                    if (r == 0) CHECK_EQ(number(got[2 * w + i]), value(team.pes[root], i));
                }
            CHECK_EQ(number(got[n * size]), 0);
            CHECK_EQ(number(got[2 * w + n]), 0);
            if (failures != before) fprintf(stderr, "  in collectives of %s, %d threads, %zu elements, team %s\n", name, threads, n, team.name);
        }
    CUDA(cudaFree(result));
}

#define REDUCE_KERNEL(NAME, T, OP, P, F)                                                                 \
    __global__ void reduce_##OP##_##NAME##F(nvshmem_team_t t, T *d, const T *s, size_t n, size_t w, int *r) {     \
        const int a = P##_##NAME##_##OP##_reduce##F(t, d, s, n),                                         \
                  b = P##_##NAME##_##OP##_reducescatter##F(t, d + w, s, n);                              \
        if (threadIdx.x == 0) *r = a | b;                                                                \
    }
[[maybe_unused]] static long combine(const char *op, long a, long b) {
    switch (op[0] == 's' ? 's' : op[0] == 'p' ? 'p' : op[0] == 'a' ? '&' : op[0] == 'o' ? '|' : op[0] == 'x' ? '^' : op[1]) {
        case 's': return a + b;
        case 'p': return a * b;
        case '&': return a & b;
        case '|': return a | b;
        case '^': return a ^ b;
        case 'i': return a < b ? a : b;
        default: return a > b ? a : b;
    }
}
template <class T, class Kernel, class OnStream>
static void reduce(const char *name, const char *op, Kernel kernel, OnStream on_stream, int threads, bool in_stream) {
    int *result;
    CUDA(cudaMalloc(&result, sizeof(int)));
    // Products of small numbers stay exact.
    const bool product = op[0] == 'p';
    auto number_of = [=](int pe, size_t i) { return product ? value(pe, i) % 2 + 1 : value(pe, i); };
    for (const auto &team : teams)
        for (size_t n : sizes) {
            if (!team.has_me()) {
                finish(), finish();
                if (in_stream) finish();
                continue;
            }
            const size_t size = team.pes.size(), w = n + 16;
            const int rank = nvshmem_team_my_pe(team.team);
            T *d = (T *)heap, *s = d + 3 * w;
            std::vector<T> values(n * size);
            for (size_t i = 0; i < values.size(); ++i) values[i] = make<T>(number_of(me, i));
            CUDA(cudaMemset(d, 0, 3 * w * sizeof(T)));
            CUDA(cudaMemcpy(s, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice));
            finish();
            kernel<<<1, threads>>>(team.team, d, s, n, w, result);
            finish();
            if (in_stream) {
                CHECK_EQ(on_stream(team.team, d + 2 * w, s, n, (cudaStream_t)0), 0);
                finish();
            }
            CHECK_EQ(host(result, 1)[0], 0);
            const auto got = host(d, 3 * w);
            const int before = failures;
            for (size_t i = 0; i < n; ++i) {
                long all = number_of(team.pes[0], i), mine = number_of(team.pes[0], rank * n + i);
                for (size_t r = 1; r < size; ++r) {
                    all = combine(op, all, number_of(team.pes[r], i));
                    mine = combine(op, mine, number_of(team.pes[r], rank * n + i));
                }
                CHECK_EQ(number(got[i]), number(make<T>(all)));
                CHECK_EQ(number(got[w + i]), number(make<T>(mine)));
                if (in_stream) CHECK_EQ(number(got[2 * w + i]), number(make<T>(all)));
            }
            CHECK_EQ(number(got[n]), 0);
            if (failures != before) fprintf(stderr, "  in %s of %s, %d threads, %zu elements, team %s\n", op, name, threads, n, team.name);
        }
    CUDA(cudaFree(result));
}

#if PART_IS(4)
#define DEFINE(NAME, T) MOVE_KERNEL(NAME, T, nvshmem, ) MOVE_KERNEL(NAME, T, nvshmemx, _warp) MOVE_KERNEL(NAME, T, nvshmemx, _block)
#define RUN(NAME, T) move<T>(#NAME, move_##NAME, 1); move<T>(#NAME, move_##NAME##_warp, 32); move<T>(#NAME, move_##NAME##_block, 160);
EACH_rma(DEFINE)
static void run() { make_teams(); EACH_rma(RUN) }
#else
#if PART_IS(5)
#define P nvshmem
#define F
#define THREADS 1
#elif PART_IS(6)
#define P nvshmemx
#define F _warp
#define THREADS 32
#else
#define P nvshmemx
#define F _block
#define THREADS 160
#endif
#define DEFINE_(NAME, T, OP, P_, F_) REDUCE_KERNEL(NAME, T, OP, P_, F_)
#define DEFINE_OP(NAME, T, OP) DEFINE_(NAME, T, OP, P, F)
#define RUN_(NAME, T, OP, F_) reduce<T>(#NAME, #OP, reduce_##OP##_##NAME##F_, nvshmemx_##NAME##_##OP##_reduce_on_stream, THREADS, PART_IS(6));
#define RUN_OP(NAME, T, OP) RUN__(NAME, T, OP, F)
#define RUN__(NAME, T, OP, F_) RUN_(NAME, T, OP, F_)
#define DEFINE_EXTREMES(NAME, T) DEFINE_OP(NAME, T, min) DEFINE_OP(NAME, T, max)
#define DEFINE_SUMS(NAME, T) DEFINE_OP(NAME, T, sum) DEFINE_OP(NAME, T, prod)
#define DEFINE_BITS(NAME, T) DEFINE_OP(NAME, T, and) DEFINE_OP(NAME, T, or) DEFINE_OP(NAME, T, xor)
#define RUN_EXTREMES(NAME, T) RUN_OP(NAME, T, min) RUN_OP(NAME, T, max)
#define RUN_SUMS(NAME, T) RUN_OP(NAME, T, sum) RUN_OP(NAME, T, prod)
#define RUN_BITS(NAME, T) RUN_OP(NAME, T, and) RUN_OP(NAME, T, or) RUN_OP(NAME, T, xor)
// SLICE compiles a third of them.
#if !defined(SLICE) || SLICE == 0
EACH_arith(DEFINE_EXTREMES)
#endif
#if !defined(SLICE) || SLICE == 1
EACH_arith(DEFINE_SUMS)
#endif
#if !defined(SLICE) || SLICE == 2
EACH_bitwise(DEFINE_BITS)
#endif
static void run() {
    make_teams();
#if !defined(SLICE) || SLICE == 0
    EACH_arith(RUN_EXTREMES)
#endif
#if !defined(SLICE) || SLICE == 1
    EACH_arith(RUN_SUMS)
#endif
#if !defined(SLICE) || SLICE == 2
    EACH_bitwise(RUN_BITS)
#endif
}
#endif
#endif

int main() {
    begin();
    me = nvshmem_my_pe(), n_pes = nvshmem_n_pes();
    heap = nvshmem_malloc(4 << 20);
    signals = (uint64_t *)nvshmem_calloc(2, 8);
    run();
    const char names[] = "matrix 0";
    char name[sizeof(names)];
    snprintf(name, sizeof(name), "matrix %d", PART);
    return end(name);
}
