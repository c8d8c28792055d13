/* Many non-blocking gets and fetching atomics under way: what they fetch is there after a quiet, or what implies one. */
#include "check.h"

enum { MANY = 2500, LARGE = 3 << 18 };

static long words[MANY];
static long counter, block[2];
static char large[LARGE];
static long got[MANY], tickets[MANY];
static char copy[LARGE];

static long word(int pe, int i)
{
    return (long)(pe + 1) << 32 | i;
}

static int all_there(int pe)
{
    int right = 0;
    for (int i = 0; i < MANY; i++)
        right += got[i] == word(pe, i);
    memset(got, 0, sizeof got);
    return right == MANY;
}

static void get_all(shmem_ctx_t ctx, int pe)
{
    for (int i = 0; i < MANY; i++)
        shmem_ctx_long_get_nbi(ctx, &got[i], &words[i], 1, pe);
}

int main(void)
{
    shmem_init();
    int me = shmem_my_pe(), n = shmem_n_pes(), right = (me + 1) % n;
    for (int i = 0; i < MANY; i++)
        words[i] = word(me, i);
    for (int i = 0; i < LARGE; i++)
        large[i] = (char)(me * 7 + i % 251);
    shmem_barrier_all();

    get_all(SHMEM_CTX_DEFAULT, right);
    shmem_quiet();
    CHECK(all_there(right));

    get_all(SHMEM_CTX_DEFAULT, right);
    shmem_barrier_all();
    CHECK(all_there(right));

    shmem_ctx_t ctx;
    CHECK(shmem_ctx_create(0, &ctx) == 0);
    get_all(ctx, right);
    shmem_ctx_quiet(ctx);
    CHECK(all_there(right));
    get_all(ctx, right);
    shmem_ctx_destroy(ctx);
    CHECK(all_there(right));

    shmem_getmem_nbi(copy, large, LARGE, right);
    get_all(SHMEM_CTX_DEFAULT, right);
    shmem_quiet();
    int same = 0;
    for (int i = 0; i < LARGE; i++)
        same += copy[i] == (char)(right * 7 + i % 251);
    CHECK(same == LARGE);
    CHECK(all_there(right));

    /* Every ticket once: a PE's own ascend, and all add up. */
    for (int i = 0; i < MANY; i++)
        shmem_long_atomic_fetch_inc_nbi(&tickets[i], &counter, 0);
    shmem_quiet();
    static long sum, sums, seen;
    for (int i = 0; i < MANY; i++) {
        sum += tickets[i];
        CHECK(i == 0 || tickets[i - 1] < tickets[i]);
    }
    shmem_long_sum_reduce(SHMEM_TEAM_WORLD, &sums, &sum, 1);
    long all = (long)n * MANY;
    CHECK(sums == all * (all - 1) / 2);
    shmem_barrier_all();
    seen = shmem_long_g(&counter, 0);
    CHECK(seen == all);

    /* One after the other on one word, whose neighbour nobody touches; and without a result, done by the quiet. */
    long old[5];
    shmem_long_atomic_fetch_add_nbi(&old[0], &block[0], 5, right);
    shmem_long_atomic_swap_nbi(&old[1], &block[0], 9, right);
    shmem_long_atomic_compare_swap_nbi(&old[2], &block[0], 9, 11, right);
    shmem_long_atomic_add(&block[0], 1, right);
    shmem_long_atomic_inc(&block[0], right);
    shmem_long_atomic_fetch_nbi(&old[3], &block[0], right);
    shmem_long_atomic_fetch_nbi(&old[4], &block[1], right);
    shmem_quiet();
    CHECK(old[0] == 0 && old[1] == 5 && old[2] == 9 && old[3] == 13 && old[4] == 0);
    CHECK(shmem_long_g(&block[0], right) == 13);
    shmem_barrier_all();

    return verdict();
}
