/* The rows of crates/shmem/examples/network.rs, by any OpenSHMEM. PE 0 measures with the last PE, which has to be on
 * another host, while the others wait in a barrier.
 *
 *     network_openshmem NAME [ROUNDS]: what to call the implementation, and how often (1000) */
#include "network.h"
#include <shmem.h>
#include <string.h>

#if SHMEM_MAJOR_VERSION > 1 || SHMEM_MINOR_VERSION >= 5
typedef uint64_t word;
#define TELL(at, value, signal, pe) \
    shmem_put_signal(at, &(value), 1, signal, (uint64_t)(value), SHMEM_SIGNAL_SET, pe)
#define AWAIT(signal, value) shmem_signal_wait_until(signal, SHMEM_CMP_EQ, (uint64_t)(value))
#define ALLOC(bytes) shmem_calloc(1, bytes)
#else
typedef long word;
#define TELL(at, value, signal, pe) \
    (shmem_long_put(at, &(value), 1, pe), shmem_fence(), shmem_long_atomic_set(signal, value, pe))
#define AWAIT(signal, value) shmem_long_wait_until(signal, SHMEM_CMP_EQ, value)
#define ALLOC(bytes) memset(shmem_malloc(bytes), 0, bytes)
#endif

int main(int argc, char **argv)
{
    implementation = argc > 1 ? argv[1] : "openshmem";
    const int rounds = argc > 2 ? atoi(argv[2]) : 1000;
    shmem_init();
    me = shmem_my_pe(), n = shmem_n_pes();
    const int there = n - 1, partner = (me + n / 2) % n;
    long *words = ALLOC(64);
    word *signals = ALLOC(64), *data = ALLOC(64);
    char *large = ALLOC(LARGE), *mine = malloc(LARGE);
    memset(mine, 1, LARGE);
    shmem_barrier_all();
    if (me == 0) {
        ROUNDS("get_8", rounds, 1, shmem_long_g(words, there));
        ROUNDS("fetch_add_8", rounds, 1, shmem_long_atomic_fetch_add(words, 1, there));
        ROUNDS("put_8_quiet", rounds, 1, (shmem_long_p(words, 1, there), shmem_quiet()));
        ROUNDS("puts_of_100", rounds / 10, 100, {
            for (long i = 0; i < 100; i++)
                shmem_long_p(words, i, there);
            shmem_quiet();
        });
        static long got[100];
        ROUNDS("gets_of_100", rounds / 10, 100, {
            for (int i = 0; i < 100; i++)
                shmem_long_get_nbi(&got[i], words, 1, there);
            shmem_quiet();
        });
#if SHMEM_MAJOR_VERSION > 1 || SHMEM_MINOR_VERSION >= 5
        ROUNDS("fetch_adds_of_100", rounds / 10, 100, {
            for (int i = 0; i < 100; i++)
                shmem_long_atomic_fetch_add_nbi(&got[i], words, 1, there);
            shmem_quiet();
        });
#endif
        ROUNDS("put_4_mib_quiet", rounds / 20, 1, (shmem_putmem(large, mine, LARGE, there), shmem_quiet()));
        ROUNDS("get_4_mib", rounds / 20, 1, shmem_getmem(mine, large, LARGE, there));
    }
    shmem_barrier_all();
    ROUNDS("fetch_add_8_by_all", rounds, 1, shmem_long_atomic_fetch_add(words, 1, partner));
    shmem_barrier_all();
    ROUNDS("put_8_quiet_by_all", rounds, 1, (shmem_long_p(words, 1, partner), shmem_quiet()));
    shmem_barrier_all();
    word round = 0;
    if (me == 0) {
        ROUNDS("put_signal_there_and_back", rounds, 1, {
            round++;
            TELL(data, round, signals, there);
            AWAIT(signals + 1, round);
        });
    } else if (me == there) {
        for (int r = 0; r < (rounds > 0 ? rounds : 1); r++) {
            round++;
            AWAIT(signals, round);
            TELL(data, round, signals + 1, 0);
        }
    }
    shmem_barrier_all();
    ROUNDS("barrier", rounds, 1, shmem_barrier_all());
    shmem_finalize();
    return 0;
}
