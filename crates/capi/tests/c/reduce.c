/* Reductions of every type and operation over the world, in place and not, short and long; scans. */
#include "check.h"
#ifdef __cplusplus
typedef std::complex<double> complexd;
typedef std::complex<float> complexf;
#else
typedef double _Complex complexd;
typedef float _Complex complexf;
#endif

#define LONG 3000
static char source_bytes[LONG * 16] __attribute__((aligned(16))), dest_bytes[LONG * 16] __attribute__((aligned(16)));

#define ORDERED(NAME, T) \
    static void ordered_##NAME(size_t count) \
    { \
        const int me = shmem_my_pe(), n = shmem_n_pes(); \
        T *s = (T *)(void *)source_bytes, *d = (T *)(void *)dest_bytes; \
        size_t i; \
        for (i = 0; i < count; i++) \
            s[i] = (T)((me + (int)(i % 20)) % n), d[i] = (T)99; \
        shmem_barrier_all(); \
        CHECK(shmem_##NAME##_max_reduce(SHMEM_TEAM_WORLD, d, s, count) == 0); \
        for (i = 0; i < count; i++) \
            CHECK(d[i] == (T)(n - 1)); \
        shmem_barrier_all(); \
        CHECK(shmem_##NAME##_min_reduce(SHMEM_TEAM_WORLD, d, s, count) == 0); \
        for (i = 0; i < count; i++) \
            CHECK(d[i] == (T)0); \
        shmem_barrier_all(); \
        CHECK(shmem_##NAME##_max_reduce(SHMEM_TEAM_WORLD, s, s, count) == 0); \
        for (i = 0; i < count; i++) \
            CHECK(s[i] == (T)(n - 1)); \
        shmem_barrier_all(); \
    }
RMA_TYPES(ORDERED)

#define ARITHMETIC(NAME, T) \
    static void arithmetic_##NAME(size_t count) \
    { \
        const int me = shmem_my_pe(), n = shmem_n_pes(); \
        T *s = (T *)(void *)source_bytes, *d = (T *)(void *)dest_bytes; \
        T sum = (T)0, before = (T)0, product = (T)1; \
        size_t i; \
        int pe; \
        for (pe = 0; pe < n; pe++) { \
            sum = (T)(sum + (T)(pe + 1)); \
            product = (T)(product * (T)(pe % 2 + 1)); \
            if (pe < me) \
                before = (T)(before + (T)(pe + 1)); \
        } \
        for (i = 0; i < count; i++) \
            s[i] = (T)(me + 1), d[i] = (T)99; \
        shmem_barrier_all(); \
        CHECK(shmem_##NAME##_sum_reduce(SHMEM_TEAM_WORLD, d, s, count) == 0); \
        for (i = 0; i < count; i++) \
            CHECK(d[i] == sum); \
        shmem_barrier_all(); \
        CHECK(shmem_##NAME##_sum_inscan(SHMEM_TEAM_WORLD, d, s, count) == 0); \
        for (i = 0; i < count; i++) \
            CHECK(d[i] == (T)(before + (T)(me + 1))); \
        shmem_barrier_all(); \
        CHECK(shmem_##NAME##_sum_exscan(SHMEM_TEAM_WORLD, d, s, count) == 0); \
        for (i = 0; i < count; i++) \
            CHECK(d[i] == before); \
        shmem_barrier_all(); \
        CHECK(shmem_##NAME##_sum_reduce(SHMEM_TEAM_WORLD, s, s, count) == 0); \
        for (i = 0; i < count; i++) \
        { \
            CHECK(s[i] == sum); \
            s[i] = (T)(me % 2 + 1); \
        } \
        shmem_barrier_all(); \
        CHECK(shmem_##NAME##_prod_reduce(SHMEM_TEAM_WORLD, d, s, count) == 0); \
        for (i = 0; i < count; i++) \
            CHECK(d[i] == product); \
        shmem_barrier_all(); \
    }
RMA_TYPES(ARITHMETIC)
#define COMPLEX(NAME, T, F) \
    static void complex_##NAME(size_t count) \
    { \
        const int me = shmem_my_pe(), n = shmem_n_pes(); \
        F *s = (F *)(void *)source_bytes, *d = (F *)(void *)dest_bytes, re = 1, im = 0; \
        size_t i; \
        int pe; \
        for (i = 0; i < count; i++) \
            s[2 * i] = (F)(me + 1), s[2 * i + 1] = (F)(-me); \
        shmem_barrier_all(); \
        CHECK(shmem_##NAME##_sum_reduce(SHMEM_TEAM_WORLD, (T *)(void *)d, (T *)(void *)s, count) == 0); \
        for (i = 0; i < count; i++) \
            CHECK(d[2 * i] == (F)(n * (n + 1) / 2) && d[2 * i + 1] == (F)(-(n * (n - 1) / 2))); \
        shmem_barrier_all(); \
        for (i = 0; i < count; i++) \
            s[2 * i] = 1, s[2 * i + 1] = 1; \
        for (pe = 0; pe < n; pe++) { \
            F next = re - im; \
            im = re + im, re = next; \
        } \
        shmem_barrier_all(); \
        CHECK(shmem_##NAME##_prod_reduce(SHMEM_TEAM_WORLD, (T *)(void *)d, (T *)(void *)s, count) == 0); \
        for (i = 0; i < count; i++) \
            CHECK(d[2 * i] == re && d[2 * i + 1] == im); \
        shmem_barrier_all(); \
        for (i = 0; i < count; i++) \
            s[2 * i] = 1, s[2 * i + 1] = 2; \
        shmem_barrier_all(); \
        CHECK(shmem_##NAME##_sum_inscan(SHMEM_TEAM_WORLD, (T *)(void *)s, (T *)(void *)s, count) == 0); \
        CHECK(count == 0 || (s[0] == (F)(me + 1) && s[1] == (F)(2 * (me + 1)))); \
        shmem_barrier_all(); \
    }
COMPLEX(complexd, complexd, double)
COMPLEX(complexf, complexf, float)

#define BITWISE(NAME, T) \
    static void bitwise_##NAME(size_t count) \
    { \
        const int me = shmem_my_pe(), n = shmem_n_pes(); \
        T *s = (T *)(void *)source_bytes, *d = (T *)(void *)dest_bytes; \
        size_t i; \
        for (i = 0; i < count; i++) \
            s[i] = (T)(0x41 | (1 << (me % 5))); \
        shmem_barrier_all(); \
        CHECK(shmem_##NAME##_and_reduce(SHMEM_TEAM_WORLD, d, s, count) == 0); \
        for (i = 0; i < count; i++) \
            CHECK(d[i] == (T)(n == 1 ? 0x41 : 0x41 & ~0x1e)); \
        shmem_barrier_all(); \
        CHECK(shmem_##NAME##_or_reduce(SHMEM_TEAM_WORLD, d, s, count) == 0); \
        for (i = 0; i < count; i++) \
            CHECK(d[i] == (T)(0x40 | ((1 << (n > 5 ? 5 : n)) - 1))); \
        shmem_barrier_all(); \
        for (i = 0; i < count; i++) \
            s[i] = (T)(me + 1); \
        shmem_barrier_all(); \
        CHECK(shmem_##NAME##_xor_reduce(SHMEM_TEAM_WORLD, d, s, count) == 0); \
        { \
            int pe, x = 0; \
            for (pe = 0; pe < n; pe++) \
                x ^= pe + 1; \
            for (i = 0; i < count; i++) \
                CHECK(d[i] == (T)x); \
        } \
        shmem_barrier_all(); \
    }
REDUCE_BITWISE_TYPES(BITWISE)

int main(void)
{
    static const size_t counts[] = {1, 7, LONG, 0};
    size_t k;
    shmem_init();
    for (k = 0; k < sizeof counts / sizeof *counts; k++) {
#define RUN(NAME, T) ordered_##NAME(counts[k]), arithmetic_##NAME(counts[k]);
        RMA_TYPES(RUN)
#define RUN_BITWISE(NAME, T) bitwise_##NAME(counts[k]);
        REDUCE_BITWISE_TYPES(RUN_BITWISE)
        complex_complexd(counts[k]);
        complex_complexf(counts[k]);
    }
    CHECK(shmem_int_sum_reduce(SHMEM_TEAM_INVALID, NULL, NULL, 1) != 0);
    return verdict();
}
