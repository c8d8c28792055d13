/* Variables of a library that the program is linked with. */
#include "check.h"

extern long library_counter[3];
long *library_hidden(void);

int main(void)
{
    int n, right, left;
    shmem_init();
    n = shmem_n_pes(), right = (shmem_my_pe() + 1) % n, left = (shmem_my_pe() + n - 1) % n;
    CHECK(library_counter[2] == 7 && *library_hidden() == 0);
    shmem_barrier_all();
    shmem_long_p(&library_counter[1], 60 + shmem_my_pe(), right);
    shmem_long_atomic_add(library_hidden(), 1, 0);
    shmem_barrier_all();
    CHECK(library_counter[1] == 60 + left);
    CHECK(*library_hidden() == (shmem_my_pe() == 0 ? n : 0));
    return verdict();
}
