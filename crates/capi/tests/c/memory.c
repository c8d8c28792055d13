/* The symmetric heap: allocation in all forms, alignment, reallocation, sizes of zero, no room. */
#include "check.h"

int main(void)
{
    char *a, *b;
    long *zero, *grown;
    int me, n, i, round;
    shmem_init();
    me = shmem_my_pe(), n = shmem_n_pes();
    CHECK(shmem_malloc(0) == NULL && shmem_calloc(0, 8) == NULL && shmem_calloc(8, 0) == NULL);
    shmem_free(NULL);
    /* Nobody waits for anybody in these. */
    if (me == 0)
        CHECK(shmem_malloc(0) == NULL && shmem_calloc(0, 1) == NULL);
    for (round = 0; round < 20; round++) {
        a = (char *)shmem_malloc(1000);
        b = (char *)shmem_align(4096, 100);
        zero = (long *)shmem_calloc(500, sizeof *zero);
        CHECK(a != NULL && b != NULL && zero != NULL && a != b);
        CHECK((uintptr_t)b % 4096 == 0 && (uintptr_t)a % 16 == 0);
        for (i = 0; i < 500; i++)
            CHECK(zero[i] == 0);
        for (i = 0; i < 500; i++)
            zero[i] = 1000L * me + i;
        memset(a, me, 1000);
        shmem_barrier_all();
        shmem_putmem(b, a, 100, (me + 1) % n);
        shmem_barrier_all();
        CHECK(b[0] == (char)((me + n - 1) % n) && b[99] == b[0]);
        grown = (long *)shmem_realloc(zero, 5000 * sizeof *grown);
        CHECK(grown != NULL);
        for (i = 0; i < 500; i++)
            CHECK(grown[i] == 1000L * me + i);
        CHECK(shmem_long_g(&grown[7], (me + 1) % n) == 1000L * ((me + 1) % n) + 7);
        shmem_barrier_all();
        grown = (long *)shmem_realloc(grown, 10 * sizeof *grown);
        CHECK(grown != NULL && grown[9] == 1000L * me + 9);
        CHECK(shmem_realloc(grown, 0) == NULL);
        grown = (long *)shmem_realloc(NULL, 64);
        CHECK(grown != NULL);
        shmem_free(grown);
        shmem_free(b);
        shmem_free(a);
        a = (char *)shmem_malloc_with_hints(64, SHMEM_MALLOC_ATOMICS_REMOTE | SHMEM_MALLOC_SIGNAL_REMOTE);
        CHECK(a != NULL && shmem_addr_accessible(a, (me + 1) % n));
        shmem_free(a);
    }
    /* Alignments: beyond huge pages, on all PEs alike; what is no power of two is rounded up. */
    {
        static const size_t asked[] = {8, 12, 24, 100, 4097, 3 << 20, 4 << 20, 8 << 20};
        static const size_t kept[] = {8, 16, 32, 128, 8192, 4 << 20, 4 << 20, 8 << 20};
        for (i = 0; i < (int)(sizeof asked / sizeof *asked); i++) {
            a = (char *)shmem_align(asked[i], 40);
            CHECK(a != NULL && (uintptr_t)a % kept[i] == 0);
            if (a == NULL)
                continue;
            a[39] = (char)me;
            shmem_barrier_all();
            CHECK(shmem_char_g(&a[39], (me + 1) % n) == (char)((me + 1) % n));
            shmem_free(a);
        }
        CHECK(shmem_align(3, 40) == NULL && shmem_align(0, 40) == NULL);
        CHECK(shmem_align((size_t)1 << 50, 40) == NULL && shmem_align(~(size_t)0, 40) == NULL);
    }
    CHECK(shmem_malloc((size_t)1 << 60) == NULL);
    CHECK(shmem_calloc((size_t)1 << 40, (size_t)1 << 40) == NULL);
    a = (char *)shmem_malloc(1 << 20);
    CHECK(a != NULL && shmem_ptr(a, me) == a);
    /* Loads and stores through shmem_ptr reach the other PE; what it returns is not symmetric. */
    b = (char *)shmem_ptr(a, (me + 1) % n);
    CHECK(b != NULL || !ONE_HOST);
    if (b != NULL) {
        *b = (char)(me + 1);
    } else {
        shmem_char_p(a, (char)(me + 1), (me + 1) % n);
    }
    shmem_barrier_all();
    CHECK(*a == (char)((me + n - 1) % n + 1));
    CHECK(n == 1 || !shmem_addr_accessible(b, me));
    CHECK(!shmem_addr_accessible(&a, me) && shmem_ptr(&a, me) == NULL);
    CHECK(shmem_ptr(a, n) == NULL && !shmem_addr_accessible(a, n) && !shmem_addr_accessible(a, -1));
    shmem_free(a);
    return verdict();
}
