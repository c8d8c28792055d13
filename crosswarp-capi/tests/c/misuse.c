/* Does what its argument says, which no program should. */
#include "check.h"

static long variable, source[4];
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
    } else if (strcmp(how, "destroy the world") == 0) {
        shmem_team_destroy(SHMEM_TEAM_WORLD);
    } else if (strcmp(how, "bad root") == 0) {
        shmem_long_broadcast(SHMEM_TEAM_WORLD, &variable, source, 1, 3);
    } else if (strncmp(how, "allocate", 8) == 0) {
        return shmem_malloc((size_t)atol(how + 9)) == NULL;
    }
    return 0;
}
