/* Locks: exclusion, static and on the heap, testing, order of the data inside. */
#include "check.h"

static long lock, second, counter, tries;

int main(void)
{
    long *heap_lock;
    int me, n, i;
    shmem_init();
    me = shmem_my_pe(), n = shmem_n_pes();
    heap_lock = (long *)shmem_calloc(1, sizeof *heap_lock);
    for (i = 0; i < 100; i++) {
        long seen;
        shmem_set_lock(&lock);
        seen = shmem_long_g(&counter, 0);
        shmem_long_p(&counter, seen + 1, 0);
        shmem_clear_lock(&lock);
    }
    shmem_barrier_all();
    CHECK(me != 0 || counter == 100 * n);
    shmem_barrier_all();
    for (i = 0; i < 100; i++) {
        shmem_set_lock(heap_lock);
        shmem_long_p(&counter, shmem_long_g(&counter, n - 1) + 1, n - 1);
        shmem_clear_lock(heap_lock);
    }
    shmem_barrier_all();
    CHECK(counter == (me == 0 && n > 1 ? 100 * n : me == n - 1 ? 100 * n + (n == 1 ? 100 : 0) : 0));
    shmem_barrier_all();
    /* Testing: 0 says the lock is mine, nonzero that it is somebody's. */
    for (i = 0; i < 20;) {
        if (shmem_test_lock(&second) == 0) {
            shmem_long_p(&tries, shmem_long_g(&tries, 0) + 1, 0);
            shmem_clear_lock(&second);
            i++;
        }
    }
    shmem_barrier_all();
    CHECK(me != 0 || tries == 20 * n);
    if (me == 0)
        shmem_set_lock(&lock);
    shmem_barrier_all();
    if (me != 0)
        CHECK(shmem_test_lock(&lock) != 0);
    shmem_barrier_all();
    if (me == 0)
        shmem_clear_lock(&lock);
    shmem_barrier_all();
    shmem_free(heap_lock);
    return verdict();
}
