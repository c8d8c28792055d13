/* OpenMP threads of each PE put, add and wait at once. */
#include "check.h"
#include <omp.h>

static long total, boxes[64];

int main(void)
{
    int provided, me, n, i;
    shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided);
    me = shmem_my_pe(), n = shmem_n_pes();
    omp_set_num_threads(3);
#pragma omp parallel for
    for (i = 0; i < 64; i++) {
        shmem_long_atomic_add(&total, i, 0);
        shmem_long_p(&boxes[i], 100L * me + i + 1, (me + 1) % n);
        shmem_long_wait_until(&boxes[i], SHMEM_CMP_NE, 0L);
    }
    shmem_barrier_all();
    CHECK(me != 0 || total == 2016L * n);
    for (i = 0; i < 64; i++)
        CHECK(boxes[i] == 100L * ((me + n - 1) % n) + i + 1);
    return verdict();
}
