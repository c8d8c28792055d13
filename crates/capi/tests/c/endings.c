/* Ends as its argument says. */
#include "check.h"
#include <signal.h>

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "";
    int me, n;
    shmem_init();
    me = shmem_my_pe(), n = shmem_n_pes();
    shmem_barrier_all();
    if (strcmp(how, "finalize") == 0) {
        shmem_finalize();
        return 0;
    }
    if (strncmp(how, "global_exit all", 15) == 0)
        shmem_global_exit(atoi(how + 16));
    if (strncmp(how, "global_exit", 11) == 0) {
        if (me == n - 1)
            shmem_global_exit(atoi(how + 12));
        shmem_barrier_all();
        return 3;
    }
    if (strcmp(how, "exit") == 0)
        exit(0);
    if (strcmp(how, "return without finalize") == 0)
        return 0;
    if (strcmp(how, "exit while others wait") == 0) {
        if (me == 1)
            exit(0);
        shmem_barrier_all();
        return 0;
    }
    if (me == 1) {
        if (strcmp(how, "exit 5") == 0)
            exit(5);
        if (strcmp(how, "abort") == 0)
            abort();
        if (strcmp(how, "segfault") == 0)
            raise(SIGSEGV);
    }
    shmem_barrier_all();
    return failures;
}
