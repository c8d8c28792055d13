/* Sample sort of doubles: splitters from everyone's samples, sizes by alltoall, data by put. */
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>

enum { MINE = 4000, SAMPLES = 16, MOST = 64 };

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double samples[SAMPLES], all_samples[SAMPLES * MOST];
static long give[MOST], take[MOST], places[MOST], where[MOST];
static double sums[2], total[2];
static double lowest;

int main(void)
{
    shmem_init();
    const int me = shmem_my_pe(), n = shmem_n_pes();
    double *data = (double *)malloc(MINE * sizeof *data);
    double *sorted = (double *)shmem_malloc((size_t)MINE * (size_t)n * sizeof *sorted);
    unsigned long long state = 88172645463325252ull + (unsigned long long)me * 7919ull;
    for (int i = 0; i < MINE; i++) {
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        data[i] = (double)(state % 1000003);
        sums[0] += data[i];
    }
    qsort(data, MINE, sizeof *data, by_value);
    for (int i = 0; i < SAMPLES; i++)
        samples[i] = data[i * (MINE / SAMPLES)];
    shmem_fcollect(SHMEM_TEAM_WORLD, all_samples, samples, SAMPLES);
    qsort(all_samples, (size_t)(SAMPLES * n), sizeof *all_samples, by_value);
    for (int pe = 0, i = 0; pe < n; pe++) {
        const int start = i;
        while (i < MINE && (pe == n - 1 || data[i] < all_samples[(pe + 1) * SAMPLES]))
            i++;
        give[pe] = i - start;
    }
    shmem_alltoall(SHMEM_TEAM_WORLD, take, give, 1);
    long count = 0;
    for (int pe = 0; pe < n; pe++) {
        places[pe] = count;
        count += take[pe];
    }
    shmem_alltoall(SHMEM_TEAM_WORLD, where, places, 1);
    for (int pe = 0, i = 0; pe < n; pe++) {
        shmem_put(sorted + where[pe], data + i, (size_t)give[pe], pe);
        i += (int)give[pe];
    }
    shmem_barrier_all();
    qsort(sorted, (size_t)count, sizeof *sorted, by_value);
    int wrong = 0;
    for (long i = 0; i < count; i++)
        sums[1] += sorted[i];
    lowest = count ? sorted[0] : 1e300;
    shmem_barrier_all();
    if (me + 1 < n && count)
        wrong |= sorted[count - 1] > shmem_g(&lowest, me + 1);
    shmem_sum_reduce(SHMEM_TEAM_WORLD, total, sums, 2);
    wrong |= total[0] != total[1];
    if (wrong)
        fprintf(stderr, "samplesort: PE %d is wrong\n", me);
    shmem_barrier_all();
    shmem_free(sorted);
    free(data);
    shmem_finalize();
    return wrong;
}
