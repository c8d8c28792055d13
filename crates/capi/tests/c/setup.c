/* Queries, versions, thread levels. */
#include "check.h"
#include <shmemx.h>
#include <mpp/shmem.h>

int main(void)
{
    char name[SHMEM_MAX_NAME_LEN];
    int provided = -1, major, minor, initialized = -1, me, n, i;
    double start;
    shmem_query_initialized(&initialized);
    CHECK(!initialized);
    CHECK(shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided) == 0 && provided == SHMEM_THREAD_MULTIPLE);
    shmem_query_initialized(&initialized);
    CHECK(initialized);
    provided = -1;
    shmem_query_thread(&provided);
    CHECK(provided == SHMEM_THREAD_MULTIPLE);
    me = shmem_my_pe(), n = shmem_n_pes();
    CHECK(me >= 0 && me < n && me == _my_pe() && n == _num_pes());
    CHECK(shmem_pe_accessible(0) && shmem_pe_accessible(n - 1) && !shmem_pe_accessible(n) && !shmem_pe_accessible(-1));
    shmem_info_get_version(&major, &minor);
    CHECK(major == SHMEM_MAJOR_VERSION && minor == SHMEM_MINOR_VERSION);
    CHECK(_SHMEM_MAJOR_VERSION == 1 && _SHMEM_MINOR_VERSION == 5);
    shmem_info_get_name(name);
    CHECK(strcmp(name, SHMEM_VENDOR_STRING) == 0 && strlen(name) < SHMEM_MAX_NAME_LEN);
    shmem_pcontrol(0);
    shmem_pcontrol(1, "level", 2);
    start = shmemx_wtime();
    CHECK(shmemx_wtime() >= start);
    i = verdict();
    /* A second end does nothing. */
    shmem_finalize();
    shmem_finalize();
    return i;
}
