/* Several threads of each PE at once, with contexts of their own and without. */
#include "check.h"
#include <pthread.h>

enum { THREADS = 4, ROUNDS = 300 };
static long counter, lock, guarded, slots[THREADS], flags[THREADS];

static void *work(void *argument)
{
    const int thread = *(int *)argument, me = shmem_my_pe(), n = shmem_n_pes(), right = (me + 1) % n, left = (me + n - 1) % n;
    shmem_ctx_t ctx;
    int i;
    CHECK(shmem_ctx_create(thread % 2 ? SHMEM_CTX_PRIVATE : 0, &ctx) == 0);
    for (i = 1; i <= ROUNDS; i++) {
        shmem_long_atomic_inc(&counter, 0);
        shmem_ctx_long_p(ctx, &slots[thread], 1000L * me + i, right);
        shmem_ctx_fence(ctx);
        shmem_ctx_long_p(ctx, &flags[thread], i, right);
        shmem_long_wait_until(&flags[thread], SHMEM_CMP_GE, i);
        CHECK(slots[thread] >= 1000L * left + i);
        if (i % 10 == 0) {
            shmem_set_lock(&lock);
            shmem_long_p(&guarded, shmem_long_g(&guarded, 0) + 1, 0);
            shmem_clear_lock(&lock);
        }
    }
    shmem_ctx_quiet(ctx);
    shmem_ctx_destroy(ctx);
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    int numbers[THREADS], provided, i;
    shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided);
    CHECK(provided == SHMEM_THREAD_MULTIPLE);
    shmem_barrier_all();
    for (i = 0; i < THREADS; i++) {
        numbers[i] = i;
        CHECK(pthread_create(&threads[i], NULL, work, &numbers[i]) == 0);
    }
    for (i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    shmem_barrier_all();
    CHECK(shmem_my_pe() != 0 || counter == (long)THREADS * ROUNDS * shmem_n_pes());
    CHECK(shmem_my_pe() != 0 || guarded == (long)THREADS * ROUNDS / 10 * shmem_n_pes());
    return verdict();
}
