/* Put with signal in every form: the signal never comes before the data; set and add. */
#include "check.h"

#define N 300
static uint64_t signals[4];

#define TYPE(NAME, T) \
    static T data_##NAME[N]; \
    static void test_##NAME(shmem_ctx_t ctx) \
    { \
        const int me = shmem_my_pe(), n = shmem_n_pes(), right = (me + 1) % n, left = (me + n - 1) % n; \
        T mine[N]; \
        int i; \
        for (i = 0; i < N; i++) \
            mine[i] = (T)(me + i % 100); \
        signals[0] = signals[1] = signals[2] = signals[3] = 0; \
        shmem_barrier_all(); \
        shmem_##NAME##_put_signal(data_##NAME, mine, N, &signals[0], 5, SHMEM_SIGNAL_SET, right); \
        CHECK(shmem_signal_wait_until(&signals[0], SHMEM_CMP_EQ, 5) == 5); \
        CHECK(data_##NAME[0] == (T)left && data_##NAME[N - 1] == (T)(left + (N - 1) % 100)); \
        shmem_barrier_all(); \
        memset(data_##NAME, 0, sizeof data_##NAME); \
        shmem_barrier_all(); \
        shmem_ctx_##NAME##_put_signal(ctx, data_##NAME, mine, 10, &signals[1], 2, SHMEM_SIGNAL_ADD, right); \
        shmem_##NAME##_put_signal_nbi(data_##NAME + 10, mine, 10, &signals[1], 3, SHMEM_SIGNAL_ADD, right); \
        shmem_ctx_##NAME##_put_signal_nbi(ctx, data_##NAME + 20, mine, 10, &signals[1], 4, SHMEM_SIGNAL_ADD, right); \
        CHECK(shmem_signal_wait_until(&signals[1], SHMEM_CMP_GE, 9) == 9); \
        CHECK(shmem_signal_fetch(&signals[1]) == 9); \
        for (i = 0; i < 30; i++) \
            CHECK(data_##NAME[i] == (T)(left + i % 10)); \
        shmem_barrier_all(); \
    }
RMA_TYPES(TYPE)

#define SIZED(SIZE) \
    static void test_##SIZE(shmem_ctx_t ctx) \
    { \
        enum { WIDE = SIZE / 8 }; \
        static unsigned char data[8 * WIDE]; \
        const int me = shmem_my_pe(), n = shmem_n_pes(), right = (me + 1) % n, left = (me + n - 1) % n; \
        unsigned char mine[2 * WIDE]; \
        int i; \
        memset(mine, me + 1, sizeof mine); \
        signals[0] = 0; \
        shmem_barrier_all(); \
        shmem_put##SIZE##_signal(data, mine, 2, &signals[0], 1, SHMEM_SIGNAL_ADD, right); \
        shmem_ctx_put##SIZE##_signal(ctx, data + 2 * WIDE, mine, 2, &signals[0], 1, SHMEM_SIGNAL_ADD, right); \
        shmem_put##SIZE##_signal_nbi(data + 4 * WIDE, mine, 2, &signals[0], 1, SHMEM_SIGNAL_ADD, right); \
        shmem_ctx_put##SIZE##_signal_nbi(ctx, data + 6 * WIDE, mine, 2, &signals[0], 1, SHMEM_SIGNAL_ADD, right); \
        shmem_signal_wait_until(&signals[0], SHMEM_CMP_EQ, 4); \
        for (i = 0; i < 8 * WIDE; i++) \
            CHECK(data[i] == (unsigned char)(left + 1)); \
        shmem_barrier_all(); \
    }
SIZED(8) SIZED(16) SIZED(32) SIZED(64) SIZED(128)

int main(void)
{
    shmem_ctx_t ctx;
    int me, n, right, i;
    static unsigned char data[404];
    unsigned char mine[101];
    shmem_init();
    me = shmem_my_pe(), n = shmem_n_pes(), right = (me + 1) % n;
    CHECK(shmem_ctx_create(0, &ctx) == 0);
#define RUN(NAME, T) test_##NAME(ctx);
    RMA_TYPES(RUN)
    test_8(ctx), test_16(ctx), test_32(ctx), test_64(ctx), test_128(ctx);

    memset(mine, me + 1, sizeof mine);
    signals[0] = 0;
    shmem_barrier_all();
    shmem_putmem_signal(data, mine, 101, &signals[0], 1, SHMEM_SIGNAL_ADD, right);
    shmem_ctx_putmem_signal(ctx, data + 101, mine, 101, &signals[0], 1, SHMEM_SIGNAL_ADD, right);
    shmem_putmem_signal_nbi(data + 202, mine, 101, &signals[0], 1, SHMEM_SIGNAL_ADD, right);
    shmem_ctx_putmem_signal_nbi(ctx, data + 303, mine, 101, &signals[0], 1, SHMEM_SIGNAL_ADD, right);
    shmem_signal_wait_until(&signals[0], SHMEM_CMP_EQ, 4);
    for (i = 0; i < 404; i++)
        CHECK(data[i] == (unsigned char)((me + n - 1) % n + 1));
    shmem_barrier_all();

    /* Adds of all PEs to one word are atomic, those of signals and of atomics together. */
    signals[2] = 0;
    shmem_barrier_all();
    for (i = 0; i < 500; i++) {
        shmem_putmem_signal(data + me, mine, 1, &signals[2], 1, SHMEM_SIGNAL_ADD, 0);
        shmem_uint64_atomic_add(&signals[2], 1, 0);
        shmem_signal_add(&signals[2], 1, 0);
        shmem_ctx_signal_add(ctx, &signals[2], 1, 0);
    }
    shmem_barrier_all();
    CHECK(me != 0 || signals[2] == (uint64_t)2000 * (uint64_t)n);
    shmem_barrier_all();
    shmem_signal_set(&signals[3], 3 + (uint64_t)me, right);
    shmem_barrier_all();
    CHECK(signals[3] == 3 + (uint64_t)((me + n - 1) % n));
    shmem_barrier_all();
    shmem_ctx_signal_set(ctx, &signals[3], 77, right);
    shmem_barrier_all();
    CHECK(signals[3] == 77);
    /* A signal with no data. */
    shmem_putmem_signal(data, mine, 0, &signals[1], 123, SHMEM_SIGNAL_SET, right);
    shmem_signal_wait_until(&signals[1], SHMEM_CMP_EQ, 123);
    shmem_ctx_destroy(ctx);
    return verdict();
}
