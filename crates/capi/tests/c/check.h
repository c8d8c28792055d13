/* What the test programs share: checks that name themselves, and the specification's lists of types. */
#ifndef CHECK_H
#define CHECK_H

#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures;

/* Whether all PEs share memory: the launcher says so if not, or over_hosts.sh for one that does not. */
#define ONE_HOST (getenv("CROSSWARP_HOSTS") == NULL && getenv("SEVERAL_HOSTS") == NULL)

#define CHECK(condition) \
    do { \
        if (!(condition)) { \
            fprintf(stderr, "%s:%d: PE %d of %d: %s\n", __FILE__, __LINE__, shmem_my_pe(), shmem_n_pes(), #condition); \
            ++failures; \
        } \
    } while (0)

#define RMA_TYPES(X) \
    X(float, float) X(double, double) X(longdouble, long double) X(char, char) X(schar, signed char) \
    X(short, short) X(int, int) X(long, long) X(longlong, long long) X(uchar, unsigned char) \
    X(ushort, unsigned short) X(uint, unsigned int) X(ulong, unsigned long) X(ulonglong, unsigned long long) \
    X(int8, int8_t) X(int16, int16_t) X(int32, int32_t) X(int64, int64_t) X(uint8, uint8_t) X(uint16, uint16_t) \
    X(uint32, uint32_t) X(uint64, uint64_t) X(size, size_t) X(ptrdiff, ptrdiff_t)

#define AMO_TYPES(X) \
    X(int, int) X(long, long) X(longlong, long long) X(uint, unsigned int) X(ulong, unsigned long) \
    X(ulonglong, unsigned long long) X(int32, int32_t) X(int64, int64_t) X(uint32, uint32_t) X(uint64, uint64_t) \
    X(size, size_t) X(ptrdiff, ptrdiff_t)

#define BITWISE_TYPES(X) \
    X(uint, unsigned int) X(ulong, unsigned long) X(ulonglong, unsigned long long) X(int32, int32_t) \
    X(int64, int64_t) X(uint32, uint32_t) X(uint64, uint64_t)

#define REDUCE_BITWISE_TYPES(X) \
    X(uchar, unsigned char) X(ushort, unsigned short) X(uint, unsigned int) X(ulong, unsigned long) \
    X(ulonglong, unsigned long long) X(int8, int8_t) X(int16, int16_t) X(int32, int32_t) X(int64, int64_t) \
    X(uint8, uint8_t) X(uint16, uint16_t) X(uint32, uint32_t) X(uint64, uint64_t) X(size, size_t)

/* The types of C that are not names for other ones: what type-generic forms select by. */
#define DISTINCT_TYPES(X) \
    X(float, float) X(double, double) X(longdouble, long double) X(char, char) X(schar, signed char) \
    X(short, short) X(int, int) X(long, long) X(longlong, long long) X(uchar, unsigned char) \
    X(ushort, unsigned short) X(uint, unsigned int) X(ulong, unsigned long) X(ulonglong, unsigned long long)

#define DISTINCT_AMO_TYPES(X) \
    X(int, int) X(long, long) X(longlong, long long) X(uint, unsigned int) X(ulong, unsigned long) \
    X(ulonglong, unsigned long long)

/* Everyone ends with everyone's verdict. */
static inline int verdict(void)
{
    static int mine, all;
    mine = failures;
    shmem_barrier_all();
    shmem_int_max_reduce(SHMEM_TEAM_WORLD, &all, &mine, 1);
    shmem_finalize();
    return failures || all ? 1 : 0;
}

#endif
