/* Put and get of every type and size, to the heap and to static variables, with and without a context. */
#include "check.h"

#define N 37

/* The functions of one type on symmetric arrays `a` (N elements). Everyone writes to its right neighbour. */
#define TYPE(NAME, T) \
    static T static_##NAME[N]; \
    static void test_##NAME(T *a, shmem_ctx_t ctx) \
    { \
        const int me = shmem_my_pe(), n = shmem_n_pes(), right = (me + 1) % n, left = (me + n - 1) % n; \
        T mine[N], got[N]; \
        int i; \
        for (i = 0; i < N; i++) \
            mine[i] = (T)(me + i), got[i] = 0, a[i] = (T)99; \
        shmem_barrier_all(); \
        shmem_##NAME##_put(a, mine, N, right); \
        shmem_barrier_all(); \
        for (i = 0; i < N; i++) \
            CHECK(a[i] == (T)(left + i)); \
        shmem_##NAME##_get(got, a, N, right); \
        for (i = 0; i < N; i++) \
            CHECK(got[i] == (T)(me + i)); \
        CHECK(shmem_##NAME##_g(&a[3], right) == (T)(me + 3)); \
        CHECK(shmem_ctx_##NAME##_g(ctx, &a[4], right) == (T)(me + 4)); \
        shmem_barrier_all(); \
        shmem_##NAME##_p(&a[0], (T)(me + 50), right); \
        shmem_ctx_##NAME##_p(ctx, &a[1], (T)(me + 51), right); \
        shmem_ctx_##NAME##_put(ctx, &a[2], mine, 2, right); \
        shmem_##NAME##_put_nbi(&a[4], mine, 2, right); \
        shmem_ctx_##NAME##_put_nbi(ctx, &a[6], mine, 2, right); \
        shmem_ctx_quiet(ctx); \
        shmem_barrier_all(); \
        CHECK(a[0] == (T)(left + 50) && a[1] == (T)(left + 51)); \
        for (i = 2; i < 8; i++) \
            CHECK(a[i] == (T)(left + i % 2)); \
        memset(got, 0, sizeof got); \
        shmem_ctx_##NAME##_get(ctx, got, a, 2, right); \
        shmem_##NAME##_get_nbi(got + 2, a, 2, right); \
        shmem_ctx_##NAME##_get_nbi(ctx, got + 4, a, 2, right); \
        shmem_ctx_quiet(ctx); \
        shmem_quiet(); \
        for (i = 0; i < 6; i++) \
            CHECK(got[i] == (T)(me + 50 + i % 2)); \
        shmem_barrier_all(); \
        for (i = 0; i < N; i++) \
            a[i] = (T)99, got[i] = 0; \
        shmem_barrier_all(); \
        shmem_##NAME##_iput(a, mine, 3, 2, 5, right); \
        shmem_ctx_##NAME##_iput(ctx, a + 1, mine, 3, 1, 5, right); \
        shmem_barrier_all(); \
        for (i = 0; i < 5; i++) \
            CHECK(a[3 * i] == (T)(left + 2 * i) && a[3 * i + 1] == (T)(left + i) && a[3 * i + 2] == (T)99); \
        shmem_##NAME##_iget(got, a, 2, 3, 5, right); \
        shmem_ctx_##NAME##_iget(ctx, got + 1, a + 1, 2, 3, 5, right); \
        for (i = 0; i < 5; i++) \
            CHECK(got[2 * i] == (T)(me + 2 * i) && got[2 * i + 1] == (T)(me + i)); \
        shmem_barrier_all(); \
        shmem_##NAME##_ibput(a, mine, 4, 3, 2, 4, right); \
        shmem_ctx_##NAME##_ibput(ctx, a + 20, mine, 2, 2, 2, 2, right); \
        shmem_barrier_all(); \
        for (i = 0; i < 4; i++) \
            CHECK(a[4 * i] == (T)(left + 3 * i) && a[4 * i + 1] == (T)(left + 3 * i + 1)); \
        for (i = 0; i < 4; i++) \
            CHECK(a[20 + i] == (T)(left + i)); \
        shmem_##NAME##_ibget(got, a, 3, 4, 2, 4, right); \
        shmem_ctx_##NAME##_ibget(ctx, got + 20, a + 20, 2, 2, 2, 2, right); \
        for (i = 0; i < 4; i++) \
            CHECK(got[3 * i] == (T)(me + 3 * i) && got[3 * i + 1] == (T)(me + 3 * i + 1) && got[20 + i] == (T)(me + i)); \
        shmem_barrier_all(); \
        /* Nothing happens with no elements, whatever the pointers. */ \
        shmem_##NAME##_put(a, NULL, 0, right); \
        shmem_##NAME##_get(NULL, a, 0, right); \
        shmem_##NAME##_iput(a, NULL, 1, 1, 0, right); \
        /* To itself, onto itself. */ \
        shmem_##NAME##_put(a, a, N, me); \
        shmem_barrier_all(); \
    }
RMA_TYPES(TYPE)

#define BITS 64
static unsigned char bytes[BITS * 16];

/* Sizes: N elements of SIZE bits are N * SIZE / 8 bytes. */
#define SIZED(SIZE) \
    static void test_##SIZE(unsigned char *a, shmem_ctx_t ctx) \
    { \
        enum { WIDE = SIZE / 8 }; \
        const int me = shmem_my_pe(), n = shmem_n_pes(), right = (me + 1) % n, left = (me + n - 1) % n; \
        unsigned char mine[BITS * WIDE], got[BITS * WIDE]; \
        int i; \
        for (i = 0; i < BITS * WIDE; i++) \
            mine[i] = (unsigned char)(me + i), a[i] = 0, got[i] = 0; \
        shmem_barrier_all(); \
        shmem_put##SIZE(a, mine, 8, right); \
        shmem_ctx_put##SIZE(ctx, a + 8 * WIDE, mine, 8, right); \
        shmem_put##SIZE##_nbi(a + 16 * WIDE, mine, 8, right); \
        shmem_ctx_put##SIZE##_nbi(ctx, a + 24 * WIDE, mine, 8, right); \
        shmem_iput##SIZE(a + 32 * WIDE, mine, 2, 1, 4, right); \
        shmem_ctx_iput##SIZE(ctx, a + 40 * WIDE, mine, 1, 2, 4, right); \
        shmem_ibput##SIZE(a + 48 * WIDE, mine, 2, 2, 2, 2, right); \
        shmem_ctx_ibput##SIZE(ctx, a + 56 * WIDE, mine, 2, 2, 2, 2, right); \
        shmem_ctx_quiet(ctx); \
        shmem_barrier_all(); \
        for (i = 0; i < 32 * WIDE; i++) \
            CHECK(a[i] == (unsigned char)(left + i % (8 * WIDE))); \
        for (i = 0; i < 4 * WIDE; i++) { \
            CHECK(a[(32 + 2 * (i / WIDE)) * WIDE + i % WIDE] == (unsigned char)(left + i)); \
            CHECK(a[40 * WIDE + i] == (unsigned char)(left + 2 * (i / WIDE) * WIDE + i % WIDE)); \
            CHECK(a[48 * WIDE + i] == (unsigned char)(left + i)); \
            CHECK(a[56 * WIDE + i] == (unsigned char)(left + i)); \
        } \
        shmem_get##SIZE(got, a, 8, right); \
        shmem_ctx_get##SIZE(ctx, got + 8 * WIDE, a, 8, right); \
        shmem_get##SIZE##_nbi(got + 16 * WIDE, a, 8, right); \
        shmem_ctx_get##SIZE##_nbi(ctx, got + 24 * WIDE, a, 8, right); \
        shmem_iget##SIZE(got + 32 * WIDE, a, 1, 2, 4, right); \
        shmem_ctx_iget##SIZE(ctx, got + 40 * WIDE, a, 1, 2, 4, right); \
        shmem_ibget##SIZE(got + 48 * WIDE, a, 2, 2, 2, 2, right); \
        shmem_ctx_ibget##SIZE(ctx, got + 56 * WIDE, a, 2, 2, 2, 2, right); \
        shmem_ctx_quiet(ctx); \
        shmem_quiet(); \
        for (i = 0; i < 32 * WIDE; i++) \
            CHECK(got[i] == (unsigned char)(me + i % (8 * WIDE))); \
        for (i = 0; i < 4 * WIDE; i++) { \
            CHECK(got[32 * WIDE + i] == (unsigned char)(me + 2 * (i / WIDE) * WIDE + i % WIDE)); \
            CHECK(got[40 * WIDE + i] == got[32 * WIDE + i]); \
            CHECK(got[48 * WIDE + i] == (unsigned char)(me + i) && got[56 * WIDE + i] == (unsigned char)(me + i)); \
        } \
        shmem_barrier_all(); \
    }
SIZED(8) SIZED(16) SIZED(32) SIZED(64) SIZED(128)

static void test_mem(shmem_ctx_t ctx)
{
    const int me = shmem_my_pe(), n = shmem_n_pes(), right = (me + 1) % n, left = (me + n - 1) % n;
    unsigned char mine[101], got[404];
    int i;
    memset(mine, me, sizeof mine);
    shmem_putmem(bytes, mine, 101, right);
    shmem_ctx_putmem(ctx, bytes + 101, mine, 101, right);
    shmem_putmem_nbi(bytes + 202, mine, 101, right);
    shmem_ctx_putmem_nbi(ctx, bytes + 303, mine, 101, right);
    shmem_ctx_quiet(ctx);
    shmem_barrier_all();
    for (i = 0; i < 404; i++)
        CHECK(bytes[i] == (unsigned char)left);
    shmem_getmem(got, bytes, 101, right);
    shmem_ctx_getmem(ctx, got + 101, bytes, 101, right);
    shmem_getmem_nbi(got + 202, bytes, 101, right);
    shmem_ctx_getmem_nbi(ctx, got + 303, bytes, 101, right);
    shmem_ctx_quiet(ctx);
    shmem_quiet();
    for (i = 0; i < 404; i++)
        CHECK(got[i] == (unsigned char)me);
    shmem_barrier_all();
}

int main(void)
{
    unsigned char *heap;
    shmem_ctx_t ctx;
    shmem_init();
    heap = (unsigned char *)shmem_malloc(BITS * 16);
    CHECK(heap != NULL && shmem_ctx_create(0, &ctx) == 0);
#define RUN(NAME, T) \
    test_##NAME((T *)heap, ctx); \
    test_##NAME(static_##NAME, SHMEM_CTX_DEFAULT);
    RMA_TYPES(RUN)
#define RUN_SIZED(SIZE) \
    test_##SIZE(heap, ctx); \
    test_##SIZE(bytes, SHMEM_CTX_DEFAULT);
    RUN_SIZED(8) RUN_SIZED(16) RUN_SIZED(32) RUN_SIZED(64) RUN_SIZED(128)
    test_mem(ctx);
    shmem_ctx_destroy(ctx);
    shmem_free(heap);
    return verdict();
}
