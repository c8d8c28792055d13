/* Deprecated names: active sets with every kind of collective, old atomics, old allocation. */
#include "check.h"

enum { N = 40 };
static long sync_array[SHMEM_SYNC_SIZE], other_sync[SHMEM_SYNC_SIZE];
static int32_t s32[N * 8], d32[N * 8];
static int64_t s64[N * 8], d64[N * 8];
static long flag;

#define WORK (N > SHMEM_REDUCE_MIN_WRKDATA_SIZE ? N : SHMEM_REDUCE_MIN_WRKDATA_SIZE)

#define REDUCTION(NAME, T, OP, INITIAL, COMBINE) \
    do { \
        static T s[N], d[N], work[WORK]; \
        int i_, pe_; \
        T expected = (T)(INITIAL); \
        for (i_ = 0; i_ < N; i_++) \
            s[i_] = (T)(me % 3 + 1); \
        shmem_barrier_all(); \
        if (inside) { \
            for (pe_ = 0; pe_ < size; pe_++) { \
                const int one = (start + pe_ * stride) % 3 + 1; \
                expected = (T)(COMBINE); \
            } \
            shmem_##NAME##_##OP##_to_all(d, s, N, start, log_stride, size, work, sync_array); \
            for (i_ = 0; i_ < N; i_++) \
                CHECK(d[i_] == expected); \
        } \
        shmem_barrier_all(); \
    } while (0)

#define REAL(NAME, T) \
    REDUCTION(NAME, T, sum, 0, expected + (T)one); \
    REDUCTION(NAME, T, prod, 1, expected * (T)one); \
    REDUCTION(NAME, T, max, 0, expected > (T)one ? expected : (T)one); \
    REDUCTION(NAME, T, min, 9, expected < (T)one ? expected : (T)one)
#define INTEGER(NAME, T) \
    REAL(NAME, T); \
    REDUCTION(NAME, T, and, 255, expected & (T)one); \
    REDUCTION(NAME, T, or, 0, expected | (T)one); \
    REDUCTION(NAME, T, xor, 0, expected ^ (T)one)

#define SIZED(SIZE) \
    static void collectives_##SIZE(int start, int log_stride, int size, int index) \
    { \
        const int me = shmem_my_pe(), stride = 1 << log_stride; \
        int i, pe, at; \
        for (i = 0; i < N * 8; i++) \
            s##SIZE[i] = me * 1000 + i, d##SIZE[i] = -1; \
        shmem_barrier_all(); \
        if (index >= 0) { \
            /* The root's own destination is left alone. */ \
            shmem_broadcast##SIZE(d##SIZE, s##SIZE, N, size - 1, start, log_stride, size, sync_array); \
            for (i = 0; i < N; i++) \
                CHECK(d##SIZE[i] == (index == size - 1 ? -1 : (start + (size - 1) * stride) * 1000 + i)); \
            shmem_barrier(start, log_stride, size, other_sync); \
            shmem_fcollect##SIZE(d##SIZE, s##SIZE, N, start, log_stride, size, sync_array); \
            for (pe = 0; pe < size; pe++) \
                for (i = 0; i < N; i++) \
                    CHECK(d##SIZE[pe * N + i] == (start + pe * stride) * 1000 + i); \
            shmem_sync(start, log_stride, size, other_sync); \
            shmem_collect##SIZE(d##SIZE, s##SIZE, (size_t)index, start, log_stride, size, sync_array); \
            for (pe = 0, at = 0; pe < size; pe++) \
                for (i = 0; i < pe; i++, at++) \
                    CHECK(d##SIZE[at] == (start + pe * stride) * 1000 + i); \
            shmem_barrier(start, log_stride, size, other_sync); \
            shmem_alltoall##SIZE(d##SIZE, s##SIZE, N, start, log_stride, size, sync_array); \
            for (pe = 0; pe < size; pe++) \
                for (i = 0; i < N; i++) \
                    CHECK(d##SIZE[pe * N + i] == (start + pe * stride) * 1000 + index * N + i); \
            shmem_barrier(start, log_stride, size, other_sync); \
            shmem_alltoalls##SIZE(d##SIZE, s##SIZE, 2, 1, N / 2, start, log_stride, size, sync_array); \
            for (pe = 0; pe < size; pe++) \
                for (i = 0; i < N / 2; i++) \
                    CHECK(d##SIZE[2 * (pe * (N / 2) + i)] == (start + pe * stride) * 1000 + index * (N / 2) + i); \
            shmem_barrier(start, log_stride, size, other_sync); \
        } \
        shmem_barrier_all(); \
    }
SIZED(32)
SIZED(64)

static void on_set(int start, int log_stride, int size)
{
    const int me = shmem_my_pe(), stride = 1 << log_stride;
    const int inside = me >= start && (me - start) % stride == 0 && (me - start) / stride < size;
    const int index = inside ? (me - start) / stride : -1;
    int i;
    collectives_32(start, log_stride, size, index);
    collectives_64(start, log_stride, size, index);
    INTEGER(short, short);
    INTEGER(int, int);
    INTEGER(long, long);
    INTEGER(longlong, long long);
    REAL(float, float);
    REAL(double, double);
    REAL(longdouble, long double);
    for (i = 0; i < SHMEM_SYNC_SIZE; i++)
        CHECK(sync_array[i] == SHMEM_SYNC_VALUE && other_sync[i] == SHMEM_SYNC_VALUE);
}

#define OLD_AMO(NAME, T) \
    do { \
        static T v; \
        v = (T)5; \
        shmem_barrier_all(); \
        CHECK(shmem_##NAME##_swap(&v, (T)6, right) == (T)5); \
        shmem_##NAME##_set(&v, (T)7, right); \
        CHECK(shmem_##NAME##_fetch(&v, right) == (T)7); \
        shmem_barrier_all(); \
    } while (0)
#define OLD_INTEGER_AMO(NAME, T) \
    do { \
        static T v; \
        OLD_AMO(NAME, T); \
        v = (T)5; \
        shmem_barrier_all(); \
        CHECK(shmem_##NAME##_cswap(&v, (T)5, (T)8, right) == (T)5); \
        CHECK(shmem_##NAME##_fadd(&v, (T)2, right) == (T)8); \
        CHECK(shmem_##NAME##_finc(&v, right) == (T)10); \
        shmem_##NAME##_add(&v, (T)4, right); \
        shmem_##NAME##_inc(&v, right); \
        CHECK(shmem_##NAME##_fetch(&v, right) == (T)16); \
        shmem_barrier_all(); \
    } while (0)

int main(void)
{
    int me, n, right, i;
    void *memory;
    static short small;
    static int medium;
    static long long large;
    start_pes(0);
    me = _my_pe(), n = _num_pes(), right = (me + 1) % n;
    for (i = 0; i < SHMEM_SYNC_SIZE; i++)
        sync_array[i] = other_sync[i] = _SHMEM_SYNC_VALUE;
    shmem_barrier_all();
    on_set(0, 0, n);
    on_set(0, 1, (n + 1) / 2);
    if (n > 1)
        on_set(1, 0, n - 1);
    if (n > 4)
        on_set(1, 1, 2), on_set(0, 2, 2);
    OLD_INTEGER_AMO(int, int);
    OLD_INTEGER_AMO(long, long);
    OLD_INTEGER_AMO(longlong, long long);
    OLD_AMO(float, float);
    OLD_AMO(double, double);
    memory = shmalloc(100);
    CHECK(memory != NULL);
    memory = shrealloc(memory, 1000);
    CHECK(memory != NULL);
    shfree(memory);
    memory = shmemalign(256, 10);
    CHECK(memory != NULL && (uintptr_t)memory % 256 == 0);
    shfree(memory);
    shmem_short_p(&small, 1, right);
    shmem_int_p(&medium, 1, right);
    shmem_longlong_p(&large, 1, right);
    shmem_long_p(&flag, 1, right);
    shmem_short_wait(&small, 0);
    shmem_int_wait(&medium, 0);
    shmem_longlong_wait(&large, 0);
    shmem_long_wait(&flag, 0);
    shmem_wait(&flag, 0);
    shmem_wait_until(&flag, _SHMEM_CMP_EQ, 1);
    CHECK(flag == 1 && small == 1 && medium == 1 && large == 1);
    shmem_clear_cache_inv();
    shmem_set_cache_inv();
    shmem_clear_cache_line_inv(&flag);
    shmem_set_cache_line_inv(&flag);
    shmem_udcflush();
    shmem_udcflush_line(&flag);
    shmem_barrier_all();
    /* The end of the program finalises. */
    return failures ? 1 : 0;
}
