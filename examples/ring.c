/* A token goes around the ring of PEs: PE 0 sends 100 to its right-hand neighbour, each PE adds one to what it gets
 * and passes it on.
 *
 *     oshcc -O2 examples/ring.c -o ring
 *     oshrun -np 4 ./ring
 */
#include <inttypes.h>
#include <shmem.h>
#include <stdio.h>

/* Static variables are symmetric: every PE can put into every other's. */
static uint64_t token, arrived;

int main(void)
{
    shmem_init();
    int me = shmem_my_pe(), right = (me + 1) % shmem_n_pes();
    uint64_t next = 100;
    if (me == 0)
        shmem_putmem_signal(&token, &next, sizeof next, &arrived, 1, SHMEM_SIGNAL_SET, right);
    shmem_signal_wait_until(&arrived, SHMEM_CMP_EQ, 1);
    printf("PE %d got %" PRIu64 "\n", me, token);
    next = token + 1;
    if (me != 0)
        shmem_putmem_signal(&token, &next, sizeof next, &arrived, 1, SHMEM_SIGNAL_SET, right);
    /* Nobody leaves before its word has arrived. */
    shmem_barrier_all();
    shmem_finalize();
    return 0;
}
