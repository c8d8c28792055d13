/* Atomics of every type: results, old values, wrap-around under contention, heap and static. */
#include "check.h"

enum { ROUNDS = 200 };

#define COMMON(NAME, T) \
    static T static_##NAME[2]; \
    static void test_##NAME(T *a, shmem_ctx_t ctx) \
    { \
        const int me = shmem_my_pe(), n = shmem_n_pes(), right = (me + 1) % n; \
        T old = 0; \
        int i; \
        a[0] = (T)5, a[1] = 0; \
        shmem_barrier_all(); \
        CHECK(shmem_##NAME##_atomic_fetch(&a[0], right) == (T)5); \
        CHECK(shmem_ctx_##NAME##_atomic_fetch(ctx, &a[0], right) == (T)5); \
        shmem_barrier_all(); \
        shmem_##NAME##_atomic_set(&a[0], (T)(me + 10), right); \
        shmem_ctx_##NAME##_atomic_set(ctx, &a[0], (T)(me + 11), right); \
        CHECK(shmem_##NAME##_atomic_swap(&a[0], (T)(me + 12), right) == (T)(me + 11)); \
        CHECK(shmem_ctx_##NAME##_atomic_swap(ctx, &a[0], (T)(me + 13), right) == (T)(me + 12)); \
        shmem_##NAME##_atomic_swap_nbi(&old, &a[0], (T)(me + 14), right); \
        shmem_quiet(); \
        CHECK(old == (T)(me + 13)); \
        shmem_ctx_##NAME##_atomic_swap_nbi(ctx, &old, &a[0], (T)(me + 15), right); \
        shmem_ctx_quiet(ctx); \
        CHECK(old == (T)(me + 14)); \
        shmem_##NAME##_atomic_fetch_nbi(&old, &a[0], right); \
        shmem_quiet(); \
        CHECK(old == (T)(me + 15)); \
        old = 0; \
        shmem_ctx_##NAME##_atomic_fetch_nbi(ctx, &old, &a[0], right); \
        shmem_ctx_quiet(ctx); \
        CHECK(old == (T)(me + 15)); \
        /* One token goes round: swaps neither lose nor double it. */ \
        shmem_barrier_all(); \
        if (me == 0) \
            a[1] = (T)7; \
        shmem_barrier_all(); \
        for (i = 0; i < ROUNDS; i++) { \
            old = shmem_##NAME##_atomic_swap(&a[1], 0, 0); \
            if (old != 0) { \
                CHECK(old == (T)7); \
                shmem_##NAME##_atomic_set(&a[1], (T)7, 0); \
            } \
        } \
        shmem_barrier_all(); \
        CHECK(me != 0 || a[1] == (T)7); \
        shmem_barrier_all(); \
    }
COMMON(float, float) COMMON(double, double)
AMO_TYPES(COMMON)

#define ARITHMETIC(NAME, T) \
    static void arithmetic_##NAME(T *a, shmem_ctx_t ctx) \
    { \
        const int me = shmem_my_pe(), n = shmem_n_pes(), right = (me + 1) % n; \
        T old = 0, sum = 0; \
        int i; \
        a[0] = (T)1, a[1] = 0; \
        shmem_barrier_all(); \
        CHECK(shmem_##NAME##_atomic_compare_swap(&a[0], (T)2, (T)9, right) == (T)1); \
        CHECK(shmem_##NAME##_atomic_compare_swap(&a[0], (T)1, (T)3, right) == (T)1); \
        CHECK(shmem_ctx_##NAME##_atomic_compare_swap(ctx, &a[0], (T)3, (T)4, right) == (T)3); \
        shmem_##NAME##_atomic_compare_swap_nbi(&old, &a[0], (T)4, (T)5, right); \
        shmem_quiet(); \
        CHECK(old == (T)4); \
        shmem_ctx_##NAME##_atomic_compare_swap_nbi(ctx, &old, &a[0], (T)5, (T)6, right); \
        shmem_ctx_quiet(ctx); \
        CHECK(old == (T)5); \
        CHECK(shmem_##NAME##_atomic_fetch_inc(&a[0], right) == (T)6); \
        CHECK(shmem_ctx_##NAME##_atomic_fetch_inc(ctx, &a[0], right) == (T)7); \
        shmem_##NAME##_atomic_fetch_inc_nbi(&old, &a[0], right); \
        shmem_quiet(); \
        CHECK(old == (T)8); \
        shmem_ctx_##NAME##_atomic_fetch_inc_nbi(ctx, &old, &a[0], right); \
        shmem_ctx_quiet(ctx); \
        CHECK(old == (T)9); \
        shmem_##NAME##_atomic_inc(&a[0], right); \
        shmem_ctx_##NAME##_atomic_inc(ctx, &a[0], right); \
        CHECK(shmem_##NAME##_atomic_fetch_add(&a[0], (T)3, right) == (T)12); \
        CHECK(shmem_ctx_##NAME##_atomic_fetch_add(ctx, &a[0], (T)3, right) == (T)15); \
        shmem_##NAME##_atomic_fetch_add_nbi(&old, &a[0], (T)3, right); \
        shmem_quiet(); \
        CHECK(old == (T)18); \
        shmem_ctx_##NAME##_atomic_fetch_add_nbi(ctx, &old, &a[0], (T)3, right); \
        shmem_ctx_quiet(ctx); \
        CHECK(old == (T)21); \
        shmem_##NAME##_atomic_add(&a[0], (T)1, right); \
        shmem_ctx_##NAME##_atomic_add(ctx, &a[0], (T)(-2), right); \
        CHECK(shmem_##NAME##_atomic_fetch(&a[0], right) == (T)23); \
        /* Everyone adds to the same place; a put and a fence before an atomic to the same PE. */ \
        for (i = 0; i < ROUNDS; i++) { \
            shmem_##NAME##_atomic_add(&a[1], (T)(me + 1), n - 1); \
            shmem_##NAME##_atomic_inc(&a[1], n - 1); \
        } \
        shmem_barrier_all(); \
        for (i = 0; i < n; i++) \
            sum = (T)(sum + (T)(ROUNDS * (i + 2))); \
        CHECK(me != n - 1 || a[1] == sum); \
        shmem_barrier_all(); \
        shmem_##NAME##_p(&a[1], (T)100, right); \
        shmem_fence(); \
        shmem_##NAME##_atomic_add(&a[1], (T)11, right); \
        shmem_barrier_all(); \
        CHECK(a[1] == (T)111); \
        shmem_barrier_all(); \
    }
AMO_TYPES(ARITHMETIC)

#define BITWISE(NAME, T) \
    static void bitwise_##NAME(T *a, shmem_ctx_t ctx) \
    { \
        const int me = shmem_my_pe(), n = shmem_n_pes(), right = (me + 1) % n; \
        T old = 0; \
        a[0] = (T)0xff; \
        shmem_barrier_all(); \
        CHECK(shmem_##NAME##_atomic_fetch_and(&a[0], (T)0x7f, right) == (T)0xff); \
        CHECK(shmem_ctx_##NAME##_atomic_fetch_and(ctx, &a[0], (T)0x3f, right) == (T)0x7f); \
        shmem_##NAME##_atomic_fetch_and_nbi(&old, &a[0], (T)0x1f, right); \
        shmem_quiet(); \
        CHECK(old == (T)0x3f); \
        shmem_ctx_##NAME##_atomic_fetch_and_nbi(ctx, &old, &a[0], (T)0x0f, right); \
        shmem_ctx_quiet(ctx); \
        CHECK(old == (T)0x1f); \
        shmem_##NAME##_atomic_and(&a[0], (T)0x07, right); \
        shmem_ctx_##NAME##_atomic_and(ctx, &a[0], (T)0x03, right); \
        CHECK(shmem_##NAME##_atomic_fetch_or(&a[0], (T)0x10, right) == (T)0x03); \
        CHECK(shmem_ctx_##NAME##_atomic_fetch_or(ctx, &a[0], (T)0x20, right) == (T)0x13); \
        shmem_##NAME##_atomic_fetch_or_nbi(&old, &a[0], (T)0x40, right); \
        shmem_quiet(); \
        CHECK(old == (T)0x33); \
        shmem_ctx_##NAME##_atomic_fetch_or_nbi(ctx, &old, &a[0], (T)0x80, right); \
        shmem_ctx_quiet(ctx); \
        CHECK(old == (T)0x73); \
        shmem_##NAME##_atomic_or(&a[0], (T)0x100, right); \
        shmem_ctx_##NAME##_atomic_or(ctx, &a[0], (T)0x200, right); \
        CHECK(shmem_##NAME##_atomic_fetch_xor(&a[0], (T)0x3, right) == (T)0x3f3); \
        CHECK(shmem_ctx_##NAME##_atomic_fetch_xor(ctx, &a[0], (T)0xf0, right) == (T)0x3f0); \
        shmem_##NAME##_atomic_fetch_xor_nbi(&old, &a[0], (T)0x300, right); \
        shmem_quiet(); \
        CHECK(old == (T)0x300); \
        shmem_ctx_##NAME##_atomic_fetch_xor_nbi(ctx, &old, &a[0], (T)0x1, right); \
        shmem_ctx_quiet(ctx); \
        CHECK(old == 0); \
        shmem_##NAME##_atomic_xor(&a[0], (T)0x2, right); \
        shmem_ctx_##NAME##_atomic_xor(ctx, &a[0], (T)0x4, right); \
        CHECK(shmem_##NAME##_atomic_fetch(&a[0], right) == (T)0x7); \
        shmem_barrier_all(); \
        /* Each PE sets a bit of its own. */ \
        a[0] = 0; \
        shmem_barrier_all(); \
        shmem_##NAME##_atomic_or(&a[0], (T)((T)1 << me), 0); \
        shmem_barrier_all(); \
        CHECK(me != 0 || a[0] == (T)(((T)1 << n) - 1)); \
        shmem_barrier_all(); \
    }
BITWISE_TYPES(BITWISE)

int main(void)
{
    void *heap;
    shmem_ctx_t ctx;
    shmem_init();
    heap = shmem_malloc(64);
    CHECK(shmem_ctx_create(SHMEM_CTX_PRIVATE, &ctx) == 0);
#define RUN(NAME, T) \
    test_##NAME((T *)heap, ctx); \
    test_##NAME(static_##NAME, SHMEM_CTX_DEFAULT);
    RUN(float, float) RUN(double, double)
    AMO_TYPES(RUN)
#define RUN_ARITHMETIC(NAME, T) \
    arithmetic_##NAME((T *)heap, SHMEM_CTX_DEFAULT); \
    arithmetic_##NAME(static_##NAME, ctx);
    AMO_TYPES(RUN_ARITHMETIC)
#define RUN_BITWISE(NAME, T) \
    bitwise_##NAME((T *)heap, ctx); \
    bitwise_##NAME(static_##NAME, SHMEM_CTX_DEFAULT);
    BITWISE_TYPES(RUN_BITWISE)
    shmem_ctx_destroy(ctx);
    shmem_free(heap);
    return verdict();
}
