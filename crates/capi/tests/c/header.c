/* The header by itself, first and only; then by the names of old. */
#include <shmem.h>
#include <mpp/shmem.h>
#include <mpp/shmemx.h>

/* complex.h would make this a syntax error. */
static int I = 0;

/* Handles are good for static initialisation; constants for arrays and cases. */
static shmem_team_t team = SHMEM_TEAM_INVALID, world = SHMEM_TEAM_WORLD, shared = SHMEM_TEAM_SHARED;
static shmem_ctx_t ctx = SHMEM_CTX_INVALID, standard = SHMEM_CTX_DEFAULT;
static long sync_array[_SHMEM_BARRIER_SYNC_SIZE + SHMEM_BCAST_SYNC_SIZE + SHMEM_COLLECT_SYNC_SIZE + SHMEM_REDUCE_SYNC_SIZE +
                       SHMEM_ALLTOALL_SYNC_SIZE + SHMEM_ALLTOALLS_SYNC_SIZE];
static double work[SHMEM_REDUCE_MIN_WRKDATA_SIZE];
static const char vendor[SHMEM_MAX_NAME_LEN] = SHMEM_VENDOR_STRING;

static int number(int constant)
{
    switch (constant) {
    case SHMEM_CMP_EQ: return 1;
    case SHMEM_CMP_NE: return 2;
    case SHMEM_CMP_GT: return 3;
    case SHMEM_CMP_GE: return 4;
    case SHMEM_CMP_LT: return 5;
    case SHMEM_CMP_LE: return 6;
    default: return 0;
    }
}

int main(void)
{
    shmem_init();
    sync_array[0] = SHMEM_SYNC_VALUE, work[0] = 1;
    I += number(SHMEM_CMP_LE) - 6;
    I += team == world || world == shared || ctx == standard || vendor[0] != 'C' || work[0] < 1;
    shmem_long_p(&sync_array[1], 7, shmem_my_pe());
    I += shmem_long_g(&sync_array[1], shmem_my_pe()) != 7;
    shmem_finalize();
    return I;
}
