/* The type-generic forms of C11, which are overloads in C++: every form, every type it is for. */
#include "check.h"

static uint64_t sig;

#define TYPE(NAME, T) \
    static T a_##NAME[8], b_##NAME[64]; \
    static void test_##NAME(shmem_ctx_t ctx) \
    { \
        const int me = shmem_my_pe(), n = shmem_n_pes(), right = (me + 1) % n; \
        const T source[4] = {(T)1, (T)2, (T)3, (T)4}; \
        T got[8]; \
        sig = 0; \
        shmem_barrier_all(); \
        shmem_put(a_##NAME, source, 4, right); \
        shmem_put(ctx, a_##NAME + 4, source, 4, right); \
        shmem_barrier_all(); \
        CHECK(a_##NAME[3] == (T)4 && a_##NAME[7] == (T)4); \
        shmem_get(got, a_##NAME, 4, right); \
        shmem_get(ctx, got + 4, a_##NAME, 4, right); \
        CHECK(got[3] == (T)4 && got[4] == (T)1); \
        CHECK(shmem_g(&a_##NAME[1], right) == (T)2 && shmem_g(ctx, &a_##NAME[1], right) == (T)2); \
        shmem_barrier_all(); \
        shmem_p(&a_##NAME[0], (T)9, right); \
        shmem_p(ctx, &a_##NAME[1], (T)8, right); \
        shmem_iput(a_##NAME + 2, source, 2, 1, 2, right); \
        shmem_iput(ctx, a_##NAME + 3, source, 2, 1, 2, right); \
        shmem_put_nbi(a_##NAME + 6, source, 1, right); \
        shmem_put_nbi(ctx, a_##NAME + 7, source, 1, right); \
        shmem_ctx_quiet(ctx); \
        shmem_barrier_all(); \
        CHECK(a_##NAME[0] == (T)9 && a_##NAME[1] == (T)8 && a_##NAME[2] == (T)1 && a_##NAME[5] == (T)2 && a_##NAME[7] == (T)1); \
        shmem_iget(got, a_##NAME, 1, 2, 2, right); \
        shmem_iget(ctx, got + 2, a_##NAME, 1, 2, 2, right); \
        shmem_get_nbi(got + 4, a_##NAME, 2, right); \
        shmem_get_nbi(ctx, got + 6, a_##NAME, 2, right); \
        shmem_ctx_quiet(ctx); \
        shmem_quiet(); \
        CHECK(got[0] == (T)9 && got[1] == (T)1 && got[2] == (T)9 && got[5] == (T)8 && got[6] == (T)9); \
        shmem_barrier_all(); \
        shmem_ibput(a_##NAME, source, 2, 2, 2, 2, right); \
        shmem_ibput(ctx, a_##NAME + 4, source, 2, 2, 2, 2, right); \
        shmem_barrier_all(); \
        shmem_ibget(got, a_##NAME, 2, 2, 2, 2, right); \
        shmem_ibget(ctx, got + 4, a_##NAME, 2, 2, 2, 2, right); \
        CHECK(got[3] == (T)4 && got[7] == (T)4); \
        shmem_put_signal(a_##NAME, source, 1, &sig, 1, SHMEM_SIGNAL_ADD, right); \
        shmem_put_signal(ctx, a_##NAME, source, 1, &sig, 1, SHMEM_SIGNAL_ADD, right); \
        shmem_put_signal_nbi(a_##NAME, source, 1, &sig, 1, SHMEM_SIGNAL_ADD, right); \
        shmem_put_signal_nbi(ctx, a_##NAME, source, 1, &sig, 1, SHMEM_SIGNAL_ADD, right); \
        shmem_signal_wait_until(&sig, SHMEM_CMP_EQ, 4); \
        shmem_barrier_all(); \
        CHECK(shmem_broadcast(SHMEM_TEAM_WORLD, b_##NAME, a_##NAME, 4, 0) == 0); \
        shmem_barrier_all(); \
        CHECK(shmem_collect(SHMEM_TEAM_WORLD, b_##NAME, a_##NAME, 1) == 0); \
        shmem_barrier_all(); \
        CHECK(shmem_fcollect(SHMEM_TEAM_WORLD, b_##NAME, a_##NAME, 1) == 0); \
        CHECK(b_##NAME[n - 1] == (T)1); \
        shmem_barrier_all(); \
        a_##NAME[me % 8] = (T)1; \
        CHECK(shmem_alltoall(SHMEM_TEAM_WORLD, b_##NAME, a_##NAME, 1) == 0); \
        shmem_barrier_all(); \
        CHECK(shmem_alltoalls(SHMEM_TEAM_WORLD, b_##NAME, a_##NAME, 1, 1, 1) == 0); \
        shmem_barrier_all(); \
        a_##NAME[0] = (T)(me + 1); \
        CHECK(shmem_sum_reduce(SHMEM_TEAM_WORLD, b_##NAME, a_##NAME, 1) == 0 && b_##NAME[0] == (T)(n * (n + 1) / 2)); \
        shmem_barrier_all(); \
        CHECK(shmem_prod_reduce(SHMEM_TEAM_WORLD, b_##NAME, a_##NAME, 1) == 0); \
        shmem_barrier_all(); \
        CHECK(shmem_max_reduce(SHMEM_TEAM_WORLD, b_##NAME, a_##NAME, 1) == 0 && b_##NAME[0] == (T)n); \
        shmem_barrier_all(); \
        CHECK(shmem_min_reduce(SHMEM_TEAM_WORLD, b_##NAME, a_##NAME, 1) == 0 && b_##NAME[0] == (T)1); \
        shmem_barrier_all(); \
        CHECK(shmem_sum_inscan(SHMEM_TEAM_WORLD, b_##NAME, a_##NAME, 1) == 0 && b_##NAME[0] == (T)((me + 1) * (me + 2) / 2)); \
        shmem_barrier_all(); \
        CHECK(shmem_sum_exscan(SHMEM_TEAM_WORLD, b_##NAME, a_##NAME, 1) == 0 && b_##NAME[0] == (T)(me * (me + 1) / 2)); \
        shmem_barrier_all(); \
    }
DISTINCT_TYPES(TYPE)

#define SWAPS(NAME, T) \
    static void swaps_##NAME(shmem_ctx_t ctx) \
    { \
        static T v; \
        const int me = shmem_my_pe(), right = (me + 1) % shmem_n_pes(); \
        T old; \
        shmem_barrier_all(); \
        shmem_atomic_set(&v, (T)1, right); \
        shmem_atomic_set(ctx, &v, (T)2, right); \
        CHECK(shmem_atomic_swap(&v, (T)3, right) == (T)2 && shmem_atomic_swap(ctx, &v, (T)4, right) == (T)3); \
        CHECK(shmem_atomic_fetch(&v, right) == (T)4 && shmem_atomic_fetch(ctx, &v, right) == (T)4); \
        shmem_atomic_swap_nbi(&old, &v, (T)5, right); \
        shmem_quiet(); \
        CHECK(old == (T)4); \
        shmem_atomic_swap_nbi(ctx, &old, &v, (T)6, right); \
        shmem_ctx_quiet(ctx); \
        CHECK(old == (T)5); \
        shmem_atomic_fetch_nbi(&old, &v, right); \
        shmem_quiet(); \
        shmem_atomic_fetch_nbi(ctx, &old, &v, right); \
        shmem_ctx_quiet(ctx); \
        CHECK(old == (T)6); \
        shmem_barrier_all(); \
    }
SWAPS(float, float) SWAPS(double, double)
DISTINCT_AMO_TYPES(SWAPS)

#define AMO(NAME, T) \
    static void amo_##NAME(shmem_ctx_t ctx) \
    { \
        static T v; \
        const int me = shmem_my_pe(), right = (me + 1) % shmem_n_pes(); \
        T old; \
        shmem_barrier_all(); \
        CHECK(shmem_atomic_compare_swap(&v, (T)0, (T)1, right) == 0 && shmem_atomic_compare_swap(ctx, &v, (T)1, (T)2, right) == (T)1); \
        CHECK(shmem_atomic_fetch_inc(&v, right) == (T)2 && shmem_atomic_fetch_inc(ctx, &v, right) == (T)3); \
        CHECK(shmem_atomic_fetch_add(&v, (T)2, right) == (T)4 && shmem_atomic_fetch_add(ctx, &v, (T)2, right) == (T)6); \
        shmem_atomic_inc(&v, right); \
        shmem_atomic_inc(ctx, &v, right); \
        shmem_atomic_add(&v, (T)1, right); \
        shmem_atomic_add(ctx, &v, (T)1, right); \
        shmem_atomic_compare_swap_nbi(&old, &v, (T)12, (T)13, right); \
        shmem_quiet(); \
        CHECK(old == (T)12); \
        shmem_atomic_compare_swap_nbi(ctx, &old, &v, (T)13, (T)14, right); \
        shmem_ctx_quiet(ctx); \
        CHECK(old == (T)13); \
        shmem_atomic_fetch_inc_nbi(&old, &v, right); \
        shmem_quiet(); \
        shmem_atomic_fetch_inc_nbi(ctx, &old, &v, right); \
        shmem_ctx_quiet(ctx); \
        CHECK(old == (T)15); \
        shmem_atomic_fetch_add_nbi(&old, &v, (T)4, right); \
        shmem_quiet(); \
        shmem_atomic_fetch_add_nbi(ctx, &old, &v, (T)4, right); \
        shmem_ctx_quiet(ctx); \
        CHECK(old == (T)20); \
        shmem_barrier_all(); \
    }
DISTINCT_AMO_TYPES(AMO)

/* Waiting and testing take the short types, too. */
#define WAITS(NAME, T) \
    static void waits_##NAME(void) \
    { \
        static T v = 1, many[2]; \
        T both[2] = {0, 0}; \
        size_t indices[2]; \
        shmem_wait_until(&v, SHMEM_CMP_GE, (T)1); \
        CHECK(shmem_test(&v, SHMEM_CMP_NE, (T)0)); \
        CHECK(shmem_test_all(many, 2, NULL, SHMEM_CMP_EQ, (T)0) && shmem_test_all_vector(many, 2, NULL, SHMEM_CMP_EQ, both)); \
        CHECK(shmem_test_any(many, 2, NULL, SHMEM_CMP_EQ, (T)0) < 2 && shmem_test_any_vector(many, 2, NULL, SHMEM_CMP_EQ, both) < 2); \
        CHECK(shmem_test_some(many, 2, indices, NULL, SHMEM_CMP_EQ, (T)0) == 2); \
        CHECK(shmem_test_some_vector(many, 2, indices, NULL, SHMEM_CMP_EQ, both) == 2); \
        shmem_wait_until_all(many, 2, NULL, SHMEM_CMP_EQ, (T)0); \
        shmem_wait_until_all_vector(many, 2, NULL, SHMEM_CMP_EQ, both); \
        CHECK(shmem_wait_until_any(many, 2, NULL, SHMEM_CMP_EQ, (T)0) < 2); \
        CHECK(shmem_wait_until_any_vector(many, 2, NULL, SHMEM_CMP_EQ, both) < 2); \
        CHECK(shmem_wait_until_some(many, 2, indices, NULL, SHMEM_CMP_EQ, (T)0) == 2); \
        CHECK(shmem_wait_until_some_vector(many, 2, indices, NULL, SHMEM_CMP_EQ, both) == 2); \
    }
DISTINCT_AMO_TYPES(WAITS)
WAITS(short, short) WAITS(ushort, unsigned short)

#define BITS(NAME, T) \
    static void bits_##NAME(shmem_ctx_t ctx) \
    { \
        static T v, d, s; \
        const int me = shmem_my_pe(), right = (me + 1) % shmem_n_pes(); \
        T old; \
        shmem_barrier_all(); \
        shmem_atomic_or(&v, (T)3, right); \
        shmem_atomic_or(ctx, &v, (T)12, right); \
        shmem_atomic_and(&v, (T)14, right); \
        shmem_atomic_and(ctx, &v, (T)15, right); \
        shmem_atomic_xor(&v, (T)1, right); \
        shmem_atomic_xor(ctx, &v, (T)2, right); \
        CHECK(shmem_atomic_fetch_or(&v, (T)0, right) == (T)13 && shmem_atomic_fetch_or(ctx, &v, (T)0, right) == (T)13); \
        CHECK(shmem_atomic_fetch_and(&v, (T)15, right) == (T)13 && shmem_atomic_fetch_and(ctx, &v, (T)15, right) == (T)13); \
        CHECK(shmem_atomic_fetch_xor(&v, (T)0, right) == (T)13 && shmem_atomic_fetch_xor(ctx, &v, (T)0, right) == (T)13); \
        shmem_atomic_fetch_or_nbi(&old, &v, (T)0, right); \
        shmem_atomic_fetch_or_nbi(ctx, &old, &v, (T)0, right); \
        shmem_atomic_fetch_and_nbi(&old, &v, (T)15, right); \
        shmem_atomic_fetch_and_nbi(ctx, &old, &v, (T)15, right); \
        shmem_atomic_fetch_xor_nbi(&old, &v, (T)0, right); \
        shmem_atomic_fetch_xor_nbi(ctx, &old, &v, (T)0, right); \
        shmem_ctx_quiet(ctx); \
        shmem_quiet(); \
        CHECK(old == (T)13); \
        s = (T)(me + 1); \
        CHECK(shmem_or_reduce(SHMEM_TEAM_WORLD, &d, &s, 1) == 0); \
        shmem_barrier_all(); \
        CHECK(shmem_and_reduce(SHMEM_TEAM_WORLD, &d, &s, 1) == 0); \
        shmem_barrier_all(); \
        CHECK(shmem_xor_reduce(SHMEM_TEAM_WORLD, &d, &s, 1) == 0); \
        shmem_barrier_all(); \
    }
BITS(uint, unsigned int) BITS(ulong, unsigned long) BITS(ulonglong, unsigned long long) BITS(int, int32_t) BITS(long, int64_t)

#ifdef __cplusplus
__extension__ typedef float _Complex c_complexf;
__extension__ typedef double _Complex c_complexd;
typedef std::complex<float> complexf;
typedef std::complex<double> complexd;
#else
typedef float _Complex c_complexf;
typedef double _Complex c_complexd;
typedef float _Complex complexf;
typedef double _Complex complexd;
#endif

/* C's complex types and, in C++, its own beside them: type-generic and by name. */
#define COMPLEX(NAME, T, LONG_NAME) \
    static void complex_##NAME(void) \
    { \
        static T s[2], d[2], work[SHMEM_REDUCE_MIN_WRKDATA_SIZE]; \
        static long psync[SHMEM_REDUCE_SYNC_SIZE]; \
        const int me = shmem_my_pe(), n = shmem_n_pes(); \
        s[0] = s[1] = (T)(me + 1); \
        shmem_barrier_all(); \
        CHECK(shmem_sum_reduce(SHMEM_TEAM_WORLD, d, s, 2) == 0 && d[1] == (T)(n * (n + 1) / 2)); \
        shmem_barrier_all(); \
        CHECK(shmem_##LONG_NAME##_sum_reduce(SHMEM_TEAM_WORLD, d, s, 1) == 0 && d[0] == (T)(n * (n + 1) / 2)); \
        shmem_barrier_all(); \
        CHECK(shmem_prod_reduce(SHMEM_TEAM_WORLD, d, s, 2) == 0 && d[0] == d[1]); \
        shmem_barrier_all(); \
        CHECK(shmem_sum_inscan(SHMEM_TEAM_WORLD, d, s, 1) == 0 && d[0] == (T)((me + 1) * (me + 2) / 2)); \
        shmem_barrier_all(); \
        CHECK(shmem_sum_exscan(SHMEM_TEAM_WORLD, d, s, 1) == 0 && d[0] == (T)(me * (me + 1) / 2)); \
        shmem_barrier_all(); \
        shmem_##LONG_NAME##_sum_to_all(d, s, 1, 0, 0, n, work, psync); \
        CHECK(d[0] == (T)(n * (n + 1) / 2)); \
        shmem_barrier_all(); \
    }
COMPLEX(complexf, complexf, complexf) COMPLEX(complexd, complexd, complexd)
COMPLEX(c_complexf, c_complexf, complexf) COMPLEX(c_complexd, c_complexd, complexd)

int main(void)
{
    static long psync[SHMEM_SYNC_SIZE], old;
    shmem_ctx_t ctx;
    int right, i;
    shmem_init();
    right = (shmem_my_pe() + 1) % shmem_n_pes();
    CHECK(shmem_ctx_create(0, &ctx) == 0);
#define RUN(NAME, T) test_##NAME(ctx);
    DISTINCT_TYPES(RUN)
#define RUN_AMO(NAME, T) swaps_##NAME(ctx), amo_##NAME(ctx), waits_##NAME();
    swaps_float(ctx), swaps_double(ctx);
    DISTINCT_AMO_TYPES(RUN_AMO)
    waits_short(), waits_ushort();
    bits_uint(ctx), bits_ulong(ctx), bits_ulonglong(ctx), bits_int(ctx), bits_long(ctx);
    complex_complexf(), complex_complexd(), complex_c_complexf(), complex_c_complexd();
    /* One name for teams and for active sets. */
    for (i = 0; i < SHMEM_SYNC_SIZE; i++)
        psync[i] = SHMEM_SYNC_VALUE;
    CHECK(shmem_sync(SHMEM_TEAM_WORLD) == 0);
    shmem_sync(0, 0, shmem_n_pes(), psync);
    /* Deprecated forms. */
    shmem_barrier_all();
    shmem_set(&old, 3L, right);
    shmem_add(&old, 1L, right);
    shmem_inc(&old, right);
    CHECK(shmem_fadd(&old, 1L, right) == 5 && shmem_finc(&old, right) == 6 && shmem_swap(&old, 9L, right) == 7);
    CHECK(shmem_cswap(&old, 9L, 10L, right) == 9 && shmem_fetch(&old, right) == 10);
    shmem_ctx_destroy(ctx);
    return verdict();
}
