/* shmemx.h: extensions. All of them are declared in shmem.h. */
#ifndef SHMEMX_H
#define SHMEMX_H

#include "shmem.h"

#endif /* SHMEMX_H */
