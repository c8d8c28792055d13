/* The C library lies in a folder of its own; its variables are not symmetric all the same, and a child made
 * by fork has its own. */
#include "check.h"

static long mine;

int main(void)
{
    int me;
    shmem_init();
    me = shmem_my_pe();
    CHECK(shmem_addr_accessible(&mine, me));
    /* The file behind stdout is a variable of the C library. */
    CHECK(!shmem_addr_accessible(stdout, me));
    return verdict();
}
