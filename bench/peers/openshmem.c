/* One-sided operations and collectives of any OpenSHMEM, in nanoseconds, as medians of repeated batches.
 *
 * PE 0 works on PE 1, which waits in a barrier; collectives are timed on PE 0 while all take part. One row
 * an operation and size: name, bytes, nanoseconds a call. */
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { REPEATS = 11, BIG = 4 << 20 };

static long static_word;
static long lock_word;
static long psync[2][SHMEM_REDUCE_SYNC_SIZE + SHMEM_BCAST_SYNC_SIZE + SHMEM_COLLECT_SYNC_SIZE + SHMEM_ALLTOALL_SYNC_SIZE];
static int me, n;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void report(const char *name, size_t bytes, double *times)
{
    qsort(times, REPEATS, sizeof *times, ascending);
    if (me == 0)
        printf("%-28s %9zu %12.1f\n", name, bytes, times[REPEATS / 2]), fflush(stdout);
}

/* `work` on PE 0 only; the others wait. */
#define ALONE(name, bytes, batch, work) \
    do { \
        double times[REPEATS]; \
        shmem_barrier_all(); \
        if (me == 0) { \
            for (int r = -1; r < REPEATS; r++) { \
                const double start = now(); \
                for (long i = 0; i < (batch); i++) { \
                    work; \
                } \
                shmem_quiet(); \
                if (r >= 0) \
                    times[r] = (now() - start) / (double)(batch); \
            } \
            report(name, bytes, times); \
        } \
        shmem_barrier_all(); \
    } while (0)

/* `work` on all PEs. */
#define TOGETHER(name, bytes, batch, work) \
    do { \
        double times[REPEATS]; \
        for (int r = -1; r < REPEATS; r++) { \
            shmem_barrier_all(); \
            const double start = now(); \
            for (long i = 0; i < (batch); i++) { \
                work; \
            } \
            if (r >= 0) \
                times[r] = (now() - start) / (double)(batch); \
        } \
        report(name, bytes, times); \
    } while (0)

/* Two work arrays in turns, as the active-set collectives ask for. */
#define SYNC psync[i % 2]

#ifdef SHMEM_SIGNAL_SET
/* PE 0 and the last one send each other `bytes` bytes in turns; PE 0 pauses first, which is not counted. */
static void turns(const char *name, size_t bytes, long batch, double pause, char *heap, const char *local, uint64_t *signal)
{
    static uint64_t turn;
    const int peer = n - 1;
    double times[REPEATS];
    for (int r = 0; r < REPEATS; r++) {
        double spent = 0;
        shmem_barrier_all();
        if (me == 0 || me == peer)
            for (long i = 0; i < batch; i++) {
                double start = now();
                while (me == 0 && now() - start < pause)
                    ;
                start = now();
                turn++;
                if (me == 0)
                    shmem_putmem_signal(heap, local, bytes, signal, turn, SHMEM_SIGNAL_SET, peer);
                shmem_signal_wait_until(signal, SHMEM_CMP_GE, turn);
                if (me == peer)
                    shmem_putmem_signal(heap, local, bytes, signal, turn, SHMEM_SIGNAL_SET, 0);
                spent += now() - start;
            }
        times[r] = spent / (2.0 * (double)batch);
    }
    report(name, bytes, times);
}
#endif

int main(void)
{
    shmem_init();
    me = shmem_my_pe(), n = shmem_n_pes();
    for (size_t k = 0; k < sizeof psync[0] / sizeof psync[0][0]; k++)
        psync[0][k] = psync[1][k] = SHMEM_SYNC_VALUE;
    char *heap = (char *)shmem_malloc((size_t)BIG * 2), *local = (char *)malloc(BIG);
    double *work = (double *)shmem_malloc((1 << 20) + 1024);
    memset(heap, 1, (size_t)BIG * 2);
    memset(local, 2, BIG);
    long *word = (long *)heap, value = 0;
    const int peer = n - 1;

    ALONE("long_p", 8, 100000, shmem_long_p(&word[i % 64], i, peer));
    ALONE("long_p to a static", 8, 100000, shmem_long_p(&static_word, i, peer));
    ALONE("put + quiet", 8, 20000, (shmem_long_put(word, &value, 1, peer), shmem_quiet()));
    ALONE("get", 8, 100000, shmem_long_get(&value, word, 1, peer));
    ALONE("long_g", 8, 100000, value += shmem_long_g(word, peer));
    ALONE("fetch_add", 8, 20000, value += shmem_long_atomic_fetch_add(word, 1, peer));
    ALONE("fetch_add to a static", 8, 20000, value += shmem_long_atomic_fetch_add(&static_word, 1, peer));
    ALONE("lock + unlock", 8, 20000, (shmem_set_lock(&lock_word), shmem_clear_lock(&lock_word)));
    TOGETHER("lock + unlock by all", 8, 2000, (shmem_set_lock(&lock_word), shmem_clear_lock(&lock_word)));
    TOGETHER("fetch_add by all", 8, 20000, value += shmem_long_atomic_fetch_add(word, 1, 0));
    for (size_t bytes = 8; bytes <= BIG; bytes *= 8) {
        const long batch = bytes <= 4096 ? 20000 : (long)((64 << 20) / bytes);
        ALONE("memcpy", bytes, batch, memcpy(heap + BIG, local, bytes); __asm__ volatile("" ::: "memory"));
        ALONE("putmem", bytes, batch, shmem_putmem(heap, local, bytes, peer));
        ALONE("putmem_nbi", bytes, batch, shmem_putmem_nbi(heap, local, bytes, peer));
        ALONE("getmem", bytes, batch, shmem_getmem(local, heap, bytes, peer));
    }
    /* There and back, halved. */
    if (n > 1) {
        double times[REPEATS];
        *word = -1;
        for (int r = 0; r < REPEATS; r++) {
            shmem_barrier_all();
            const double start = now();
            if (me == 0 || me == peer)
                for (long i = 0; i < 2000; i++) {
                    const long turn = 2000L * r + i;
                    if (me == 0)
                        shmem_long_p(word, turn, peer);
                    shmem_long_wait_until(word, SHMEM_CMP_GE, turn);
                    if (me == peer)
                        shmem_long_p(word, turn, 0);
                }
            times[r] = (now() - start) / 4000;
        }
        report("p + wait, one way", 8, times);
    }
#ifdef SHMEM_SIGNAL_SET
    if (n > 1) {
        static uint64_t signal;
        /* The same with data. Then with a pause before each, in which a library may have its waiters sleep. */
        for (size_t bytes = 8; bytes <= 4096; bytes *= 8)
            turns("put_signal + wait, one way", bytes, 2000, 0, heap, local, &signal);
        turns("to one that waited 1 ms", 8, 100, 1000000, heap, local, &signal);
    }
#endif
    TOGETHER("barrier_all", 0, 5000, shmem_barrier_all());
    TOGETHER("sync_all", 0, 5000, shmem_sync_all());
    for (size_t count = 1; count <= 65536; count *= 16) {
        double *s = (double *)heap, *d = (double *)(heap + BIG);
        const long batch = count <= 256 ? 2000 : 50;
#ifdef SHMEM_TEAM_WORLD
        (void)work;
        TOGETHER("double sum", 8 * count, batch, shmem_double_sum_reduce(SHMEM_TEAM_WORLD, d, s, count));
        TOGETHER("broadcast", 8 * count, batch, shmem_double_broadcast(SHMEM_TEAM_WORLD, d, s, count, 0));
        if (count * (size_t)n <= BIG / 8)
            TOGETHER("alltoall", 8 * count, batch, shmem_double_alltoall(SHMEM_TEAM_WORLD, d, s, count));
        if (count * (size_t)n <= BIG / 8)
            TOGETHER("fcollect", 8 * count, batch, shmem_double_fcollect(SHMEM_TEAM_WORLD, d, s, count));
#else
        TOGETHER("double sum", 8 * count, batch, (shmem_double_sum_to_all(d, s, (int)count, 0, 0, n, work, SYNC), shmem_sync_all()));
        TOGETHER("broadcast", 8 * count, batch, (shmem_broadcast64(d, s, count, 0, 0, 0, n, SYNC), shmem_sync_all()));
        if (count * (size_t)n <= BIG / 8)
            TOGETHER("alltoall", 8 * count, batch, (shmem_alltoall64(d, s, count, 0, 0, n, SYNC), shmem_sync_all()));
        if (count * (size_t)n <= BIG / 8)
            TOGETHER("fcollect", 8 * count, batch, (shmem_fcollect64(d, s, count, 0, 0, n, SYNC), shmem_sync_all()));
#endif
    }
    if (value == 42)
        printf("#\n");
    shmem_barrier_all();
    shmem_finalize();
    return 0;
}
