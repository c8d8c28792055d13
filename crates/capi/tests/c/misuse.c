/* Does what its argument says, which no program should. */
#include "check.h"

static long variable, source[4], flags[6];
static char bytes[64];
static uint64_t sig;

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "";
    long on_stack[4] = {0, 0, 0, 0};
    char *heap;
    if (strcmp(how, "before init") == 0)
        return shmem_my_pe();
    shmem_init();
    heap = (char *)shmem_malloc(128);
    if (strcmp(how, "after finalize") == 0) {
        shmem_finalize();
        shmem_long_p(&variable, 1, 0);
    } else if (strcmp(how, "no such PE") == 0) {
        shmem_long_p(&variable, 1, 5);
    } else if (strcmp(how, "negative PE") == 0) {
        shmem_int_get((int *)on_stack, (int *)&variable, 1, -1);
    } else if (strcmp(how, "not symmetric") == 0) {
        shmem_long_put(on_stack, source, 1, 0);
    } else if (strcmp(how, "beyond the end") == 0) {
        shmem_putmem(heap, source, (size_t)1 << 40, 0);
    } else if (strcmp(how, "beyond a variable") == 0) {
        shmem_putmem(&flags[1], source, (size_t)1 << 40, 0);
    } else if (strcmp(how, "wait for -1") == 0) {
        shmem_long_wait_until(&flags[2], SHMEM_CMP_EQ, -1);
    } else if (strcmp(how, "wait for any") == 0) {
        shmem_long_wait_until_any(flags, 6, NULL, SHMEM_CMP_LT, 0);
    } else if (strcmp(how, "wait for the most") == 0) {
        shmem_signal_wait_until(&sig, SHMEM_CMP_EQ, UINT64_MAX);
    } else if (strcmp(how, "wait on the heap") == 0) {
        shmem_int_wait_until((int *)(void *)heap, SHMEM_CMP_LE, -7);
    } else if (strcmp(how, "misaligned variable") == 0) {
        shmem_int_atomic_inc((int *)(void *)(bytes + 1), 0);
    } else if (strcmp(how, "misaligned atomic") == 0) {
        shmem_long_atomic_inc((long *)(void *)(heap + 4), 0);
    } else if (strcmp(how, "bad comparison") == 0) {
        shmem_long_wait_until(&variable, 77, 1);
    } else if (strcmp(how, "bad signal") == 0) {
        shmem_long_put_signal(&variable, source, 1, &sig, 1, 9, 0);
    } else if (strcmp(how, "invalid context") == 0) {
        shmem_ctx_long_p(SHMEM_CTX_INVALID, &variable, 1, 0);
    } else if (strcmp(how, "bad stride") == 0) {
        shmem_long_iput(source, on_stack, 0, 1, 2, 0);
    } else if (strcmp(how, "free twice") == 0) {
        shmem_free(heap);
        shmem_free(heap);
    } else if (strcmp(how, "realloc freed") == 0) {
        shmem_free(heap);
        heap = (char *)shmem_realloc(heap, 4096);
    } else if (strcmp(how, "realloc stack") == 0) {
        heap = (char *)shmem_realloc(on_stack, 4096);
    } else if (strcmp(how, "split from -1") == 0) {
        shmem_team_t none;
        shmem_team_split_strided(SHMEM_TEAM_WORLD, -1, 1, -2, NULL, 0, &none);
    } else if (strncmp(how, "team", 4) == 0) {
        shmem_team_t team, other;
        shmem_ctx_t ctx;
        long value = 1, sum;
        shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, 1, NULL, 0, &team);
        shmem_team_destroy(team);
        /* Another one takes its place, but not its handle. */
        shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, 1, NULL, 0, &other);
        if (strcmp(how, "team destroy") == 0)
            shmem_team_destroy(team);
        else if (strcmp(how, "team number") == 0)
            shmem_team_my_pe(team);
        else if (strcmp(how, "team sync") == 0)
            shmem_team_sync(team);
        else if (strcmp(how, "team reduce") == 0)
            shmem_long_sum_reduce(team, &sum, &value, 1);
        else if (strcmp(how, "team context") == 0)
            shmem_team_create_ctx(team, 0, &ctx);
    } else if (strncmp(how, "context", 7) == 0) {
        shmem_ctx_t ctx, other;
        shmem_ctx_create(0, &ctx);
        shmem_ctx_destroy(ctx);
        shmem_ctx_create(0, &other);
        if (strcmp(how, "context destroy") == 0)
            shmem_ctx_destroy(ctx);
        else if (strcmp(how, "context put") == 0)
            shmem_ctx_long_p(ctx, &variable, 1, 0);
        else if (strcmp(how, "context quiet") == 0)
            shmem_ctx_quiet(ctx);
        else if (strcmp(how, "context of the stack") == 0)
            shmem_ctx_long_p((shmem_ctx_t)(void *)on_stack, &variable, 1, 0);
    } else if (strcmp(how, "destroy the world") == 0) {
        shmem_team_destroy(SHMEM_TEAM_WORLD);
    } else if (strcmp(how, "bad root") == 0) {
        shmem_long_broadcast(SHMEM_TEAM_WORLD, &variable, source, 1, 3);
    } else if (strncmp(how, "allocate", 8) == 0) {
        return shmem_malloc((size_t)atol(how + 9)) == NULL;
    }
    return 0;
}
