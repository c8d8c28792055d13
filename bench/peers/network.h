/* What network_mpi.c and network_openshmem.c share: medians of rounds, and rows as crates/shmem/examples/network.rs
 * writes them. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { LARGE = 4 << 20 };

static int me, n;
static const char *implementation;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e6 * (double)t.tv_sec + 1e-3 * (double)t.tv_nsec;
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Median, quartiles and mean of `count` times, each of `of` operations. */
static void row(const char *what, double *times, int count, int of)
{
    double sum = 0;
    for (int i = 0; i < count; i++)
        sum += times[i];
    qsort(times, (size_t)count, sizeof *times, ascending);
    if (me == 0) {
        printf("{\"impl\":\"%s\",\"what\":\"%s\",\"us\":%.2f,\"quartiles\":[%.2f,%.2f],\"mean\":%.2f,\"pes\":%d}\n",
               implementation, what, times[count / 2] / of, times[count / 4] / of, times[3 * count / 4] / of,
               sum / count / of, n);
        fflush(stdout);
    }
}

/* `work` `count` times on whichever PEs come here; each round is `of` operations. */
#define ROUNDS(what, count, of, work) \
    do { \
        const int rounds_ = (count) > 0 ? (count) : 1; \
        double *times_ = malloc(sizeof *times_ * (size_t)rounds_); \
        for (int r_ = 0; r_ < rounds_; r_++) { \
            const double start_ = now(); \
            work; \
            times_[r_] = now() - start_; \
        } \
        row(what, times_, rounds_, of); \
        free(times_); \
    } while (0)
