/* mpp/shmem.h: where old programs look for shmem.h. */
#include "../shmem.h"
