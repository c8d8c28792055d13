/* Integer sort by buckets, in the style of the NAS benchmark: everyone counts its keys, learns where they
 * go by a fetching add, and puts them there. */
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>

enum { KEYS = 5000, RANGE = 1 << 16 };

static int by_value(const void *a, const void *b)
{
    const int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

static long received;
static long long checksum[2], total[2];
static int edge;

int main(void)
{
    shmem_init();
    const int me = shmem_my_pe(), n = shmem_n_pes();
    int *keys = (int *)malloc(KEYS * sizeof *keys);
    int *bucket = (int *)shmem_malloc((size_t)KEYS * (size_t)n * sizeof *bucket);
    unsigned state = 12345u + (unsigned)me;
    for (int i = 0; i < KEYS; i++) {
        state = state * 1103515245u + 12345u;
        keys[i] = (int)((state >> 8) % RANGE);
        checksum[0] += keys[i];
    }
    const int width = (RANGE + n - 1) / n;
    qsort(keys, KEYS, sizeof *keys, by_value);
    for (int i = 0; i < KEYS;) {
        const int owner = keys[i] / width;
        int end = i;
        while (end < KEYS && keys[end] / width == owner)
            end++;
        const long at = shmem_atomic_fetch_add(&received, (long)(end - i), owner);
        shmem_put_nbi(bucket + at, keys + i, (size_t)(end - i), owner);
        i = end;
    }
    shmem_barrier_all();
    qsort(bucket, (size_t)received, sizeof *bucket, by_value);
    int wrong = 0;
    for (long i = 0; i < received; i++) {
        wrong |= bucket[i] / width != me;
        checksum[1] += bucket[i];
    }
    /* The last key of each PE is not above the first of the next. */
    edge = received ? bucket[0] : (me + 1) * width;
    shmem_barrier_all();
    if (me + 1 < n && received)
        wrong |= bucket[received - 1] > shmem_g(&edge, me + 1);
    shmem_sum_reduce(SHMEM_TEAM_WORLD, total, checksum, 2);
    wrong |= total[0] != total[1];
    if (wrong)
        fprintf(stderr, "isort: PE %d has wrong keys\n", me);
    shmem_barrier_all();
    shmem_free(bucket);
    free(keys);
    shmem_finalize();
    return wrong;
}
