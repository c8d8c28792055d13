/* A token goes round the ring, and everyone adds to it. */
#include <shmem.h>
#include <stdio.h>

static long token = -1;

int main(void)
{
    shmem_init();
    int me = shmem_my_pe(), n = shmem_n_pes();
    const int laps = 20;
    long seen = 0;
    if (me == 0)
        shmem_p(&token, 0L, 1 % n);
    for (int lap = 0; lap < laps; lap++) {
        long expected = (long)lap * n + (me == 0 ? n - 1 : me - 1);
        shmem_wait_until(&token, SHMEM_CMP_EQ, expected);
        seen = token + 1;
        if (!(me == 0 && lap == laps - 1))
            shmem_p(&token, seen, (me + 1) % n);
    }
    shmem_barrier_all();
    int wrong = me == 0 && seen != (long)laps * n;
    if (wrong)
        fprintf(stderr, "ring: the token is %ld after %d laps of %d PEs\n", seen, laps, n);
    shmem_finalize();
    return wrong;
}
