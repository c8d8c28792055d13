/* Global and static variables of every kind are symmetric: put, get, atomics, signals, waits, locks. */
#include "check.h"

enum { BIG = 1 << 20 };
long zero_global, filled_global = 1000;
static long zero_static[3], filled_static[3] = {1, 2, 3};
static char big[BIG];
static double matrix[64][64] = {{1.5}};
static struct {
    char tag[5];
    int32_t number;
    uint64_t signal;
} record = {"abcd", 7, 0};
static const char *const names[] = {"zero", "one"};
static const char *name = "before";
static long *where = &filled_static[1];

static long *function_static(void)
{
    static long inside = 42;
    return &inside;
}

int main(void)
{
    char on_stack[64];
    int me, n, right, left, i;
    filled_global += 1; /* written before the library starts */
    shmem_init();
    me = shmem_my_pe(), n = shmem_n_pes(), right = (me + 1) % n, left = (me + n - 1) % n;
    CHECK(filled_global == 1001 && zero_global == 0 && filled_static[2] == 3 && matrix[0][0] == 1.5 && *function_static() == 42);
    CHECK(where == &filled_static[1] && strcmp(name, "before") == 0 && strcmp(names[1], "one") == 0);
    CHECK(shmem_addr_accessible(&zero_global, right) && shmem_addr_accessible(&big[BIG - 1], right));
    CHECK(shmem_addr_accessible(&filled_global, right) && shmem_addr_accessible(function_static(), right));
    CHECK(!shmem_addr_accessible(on_stack, right));
    shmem_barrier_all();

    shmem_long_p(&zero_global, 10 + me, right);
    shmem_long_p(&filled_global, 20 + me, right);
    shmem_long_p(&filled_static[1], 30 + me, right);
    shmem_long_p(function_static(), 40 + me, right);
    shmem_double_p(&matrix[63][63], 0.5 + me, right);
    shmem_char_p(&big[BIG - 1], (char)(me + 1), right);
    shmem_int32_atomic_add(&record.number, 5, right);
    shmem_barrier_all();
    CHECK(zero_global == 10 + left && filled_global == 20 + left && filled_static[1] == 30 + left);
    CHECK(*function_static() == 40 + left && matrix[63][63] == 0.5 + left && big[BIG - 1] == (char)(left + 1));
    CHECK(record.number == 12 && *where == 30 + left);
    CHECK(shmem_long_g(&zero_global, right) == 10 + me);
    shmem_getmem(on_stack, record.tag, 5, right);
    CHECK(strcmp(on_stack, "abcd") == 0);
    shmem_barrier_all();

    shmem_putmem_signal(big, record.tag, 5, &record.signal, 1, SHMEM_SIGNAL_ADD, right);
    shmem_signal_wait_until(&record.signal, SHMEM_CMP_EQ, 1);
    CHECK(strcmp(big, "abcd") == 0);
    for (i = 0; i < 500; i++)
        shmem_long_atomic_inc(&zero_static[1], 0);
    shmem_barrier_all();
    CHECK(me != 0 || zero_static[1] == 500L * n);
    CHECK(zero_static[0] == 0 && zero_static[2] == 0);
    shmem_barrier_all();
    if (n > 1) {
        long *there = (long *)shmem_ptr(&zero_static[2], right);
        CHECK(there != NULL || !ONE_HOST);
        if (there != NULL) {
            *there = 77 + me;
        } else {
            shmem_long_p(&zero_static[2], 77L + me, right);
        }
        shmem_barrier_all();
        CHECK(zero_static[2] == 77 + left);
    }
    /* The C library goes on working: its buffers, and the program's pointers into it. */
    fflush(stdout);
    free(malloc(100000));
    return verdict();
}
