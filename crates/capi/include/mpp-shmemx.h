/* mpp/shmemx.h: where old programs look for shmemx.h. */
#include "../shmemx.h"
