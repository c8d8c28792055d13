/* Barrier, broadcast, collect, fcollect, alltoall(s) of every type over the world, small and large. */
#include "check.h"

#define LONG 1500
enum { MOST = 8 };
static char source_bytes[LONG * 16 * MOST] __attribute__((aligned(16))), dest_bytes[LONG * 16 * MOST] __attribute__((aligned(16)));

/* An element that tells its PE, its block and its place, within 0..127. */
#define VALUE(T, pe, block, i) ((T)(((pe) * 13 + (block) * 5 + (int)(i)) % 120))

#define TYPE(NAME, T) \
    static void test_##NAME(size_t count) \
    { \
        const int me = shmem_my_pe(), n = shmem_n_pes(); \
        T *s = (T *)(void *)source_bytes, *d = (T *)(void *)dest_bytes; \
        size_t i, at, mine; \
        int pe; \
        for (pe = 0; pe < n; pe++) \
            for (i = 0; i < count; i++) \
                s[(size_t)pe * count + i] = VALUE(T, me, pe, i), d[(size_t)pe * count + i] = (T)121; \
        shmem_barrier_all(); \
        /* The root's destination is written too. */ \
        CHECK(shmem_##NAME##_broadcast(SHMEM_TEAM_WORLD, d, s, count, n - 1) == 0); \
        for (i = 0; i < count; i++) \
            CHECK(d[i] == VALUE(T, n - 1, 0, i)); \
        shmem_barrier_all(); \
        CHECK(shmem_##NAME##_fcollect(SHMEM_TEAM_WORLD, d, s, count) == 0); \
        for (pe = 0; pe < n; pe++) \
            for (i = 0; i < count; i++) \
                CHECK(d[(size_t)pe * count + i] == VALUE(T, pe, 0, i)); \
        shmem_barrier_all(); \
        /* Parts of different lengths, some of them empty. */ \
        mine = me % 3 == 1 ? 0 : count * (size_t)(me + 1) / (size_t)n; \
        CHECK(shmem_##NAME##_collect(SHMEM_TEAM_WORLD, d, s, mine) == 0); \
        for (pe = 0, at = 0; pe < n; pe++) { \
            size_t theirs = pe % 3 == 1 ? 0 : count * (size_t)(pe + 1) / (size_t)n; \
            for (i = 0; i < theirs; i++, at++) \
                CHECK(d[at] == VALUE(T, pe, 0, i)); \
        } \
        shmem_barrier_all(); \
        CHECK(shmem_##NAME##_alltoall(SHMEM_TEAM_WORLD, d, s, count) == 0); \
        for (pe = 0; pe < n; pe++) \
            for (i = 0; i < count; i++) \
                CHECK(d[(size_t)pe * count + i] == VALUE(T, pe, me, i)); \
        shmem_barrier_all(); \
        for (i = 0; i < count * (size_t)n; i++) \
            d[i] = (T)121; \
        shmem_barrier_all(); \
        /* Every third source element goes to every second destination element. */ \
        { \
            const size_t few = count / 3; \
            CHECK(shmem_##NAME##_alltoalls(SHMEM_TEAM_WORLD, d, s, 2, 3, few) == 0); \
            for (pe = 0; pe < n; pe++) \
                for (i = 0; i < few; i++) { \
                    size_t from = 3 * ((size_t)me * few + i); \
                    T expected = VALUE(T, pe, (int)(from / count), from % count); \
                    CHECK(d[2 * ((size_t)pe * few + i)] == expected); \
                } \
            for (i = 0; i + 1 < 2 * few * (size_t)n; i += 2) \
                CHECK(d[i + 1] == (T)121); \
        } \
        shmem_barrier_all(); \
        /* Onto itself. */ \
        CHECK(shmem_##NAME##_broadcast(SHMEM_TEAM_WORLD, s, s, count, 0) == 0); \
        for (i = 0; i < count; i++) \
            CHECK(s[i] == VALUE(T, 0, 0, i)); \
        shmem_barrier_all(); \
    }
RMA_TYPES(TYPE)

static void test_mem(size_t bytes)
{
    const int me = shmem_my_pe(), n = shmem_n_pes();
    unsigned char *s = (unsigned char *)source_bytes, *d = (unsigned char *)dest_bytes;
    size_t i;
    int pe;
    memset(s, me + 1, bytes * (size_t)n);
    shmem_barrier_all();
    CHECK(shmem_broadcastmem(SHMEM_TEAM_WORLD, d, s, bytes, n / 2) == 0);
    for (i = 0; i < bytes; i++)
        CHECK(d[i] == n / 2 + 1);
    shmem_barrier_all();
    CHECK(shmem_fcollectmem(SHMEM_TEAM_WORLD, d, s, bytes) == 0);
    for (pe = 0; pe < n; pe++)
        for (i = 0; i < bytes; i++)
            CHECK(d[(size_t)pe * bytes + i] == pe + 1);
    shmem_barrier_all();
    CHECK(shmem_collectmem(SHMEM_TEAM_WORLD, d, s, (size_t)me) == 0);
    for (pe = 0, i = 0; pe < n; pe++) {
        int k;
        for (k = 0; k < pe; k++, i++)
            CHECK(d[i] == pe + 1);
    }
    shmem_barrier_all();
    CHECK(shmem_alltoallmem(SHMEM_TEAM_WORLD, d, s, bytes) == 0);
    for (pe = 0; pe < n; pe++)
        for (i = 0; i < bytes; i++)
            CHECK(d[(size_t)pe * bytes + i] == pe + 1);
    shmem_barrier_all();
    CHECK(shmem_alltoallsmem(SHMEM_TEAM_WORLD, d, s, 1, 1, bytes) == 0);
    for (pe = 0; pe < n; pe++)
        CHECK(bytes == 0 || d[(size_t)pe * bytes] == pe + 1);
    shmem_barrier_all();
}

int main(void)
{
    static const size_t counts[] = {1, 9, LONG, 0};
    size_t k;
    int i;
    shmem_init();
    for (k = 0; k < sizeof counts / sizeof *counts; k++) {
#define RUN(NAME, T) test_##NAME(counts[k]);
        RMA_TYPES(RUN)
        test_mem(counts[k]);
    }
    for (i = 0; i < 50; i++) {
        shmem_sync_all();
        CHECK(shmem_team_sync(SHMEM_TEAM_WORLD) == 0);
    }
    CHECK(shmem_team_sync(SHMEM_TEAM_INVALID) != 0);
    CHECK(shmem_long_broadcast(SHMEM_TEAM_INVALID, NULL, NULL, 1, 0) != 0);
    return verdict();
}
