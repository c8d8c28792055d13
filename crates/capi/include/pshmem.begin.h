/* pshmem.h: the profiling names. A tool defines shmem_X itself and calls pshmem_X, which does what the
 * library's shmem_X does. The type-generic forms of shmem.h are macros (C11) or inline functions (C++)
 * over the functions, so what is intercepted is always a function. */
#ifndef PSHMEM_H
#define PSHMEM_H

#include "shmem.h"

#ifdef __cplusplus
extern "C" {
#endif
