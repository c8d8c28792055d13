/* A tool inside the program: it counts calls by the profiling names. */
#include "check.h"
#include <pshmem.h>

static int puts_seen, barriers_seen, long_doubles_seen, level_seen;

void shmem_long_put(long *dest, const long *source, size_t nelems, int pe)
{
    puts_seen++;
    pshmem_long_put(dest, source, nelems, pe);
}

void shmem_barrier_all(void)
{
    barriers_seen++;
    pshmem_barrier_all();
}

void shmem_longdouble_p(long double *dest, long double value, int pe)
{
    long_doubles_seen++;
    pshmem_longdouble_p(dest, value, pe);
}

void shmem_pcontrol(const int level, ...)
{
    level_seen = level;
}

int main(void)
{
    static long slot[2];
    static long double wide;
    const long source[2] = {3, 4};
    int right;
    shmem_init();
    right = (shmem_my_pe() + 1) % shmem_n_pes();
    CHECK(barriers_seen == 0);
    shmem_long_put(slot, source, 2, right);
    shmem_put(slot, source, 2, right);
    shmem_longdouble_p(&wide, 2.5L, right);
    shmem_pcontrol(2);
    shmem_barrier_all();
    CHECK(slot[1] == 4 && wide == 2.5L && pshmem_longdouble_g(&wide, right) == 2.5L);
    CHECK(puts_seen == 2 && barriers_seen == 1 && long_doubles_seen == 1 && level_seen == 2);
    CHECK(pshmem_n_pes() == shmem_n_pes() && pshmem_my_pe() == shmem_my_pe());
    return verdict();
}
