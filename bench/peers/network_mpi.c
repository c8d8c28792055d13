/* The rows of crates/shmem/examples/network.rs, by MPI's one-sided operations in one window that all lock for the whole
 * run. Rank 0 measures with the last rank, which has to be on another host, while the others wait in a barrier.
 *
 *     network_mpi NAME [ROUNDS]: what to call the implementation, and how often (1000) */
#include "network.h"
#include <mpi.h>
#include <string.h>

static MPI_Win window;
static volatile long *words;

enum { WORDS = 8 };

static void put(long value, int at, int rank)
{
    MPI_Put(&value, 1, MPI_LONG, rank, (MPI_Aint)at * 8, 1, MPI_LONG, window);
    /* The value may be used again: what OpenSHMEM's put promises on return. */
    MPI_Win_flush_local(rank, window);
}

/* Data, and then a word that says that they are there. */
static void tell(long value, int at, int signal, int rank)
{
    put(value, at, rank);
    MPI_Win_flush(rank, window);
    MPI_Accumulate(&value, 1, MPI_LONG, rank, (MPI_Aint)signal * 8, 1, MPI_LONG, MPI_REPLACE, window);
    MPI_Win_flush(rank, window);
}

static void await(int signal, long value)
{
    for (;;) {
        int flag;
        MPI_Win_sync(window);
        if (words[signal] == value)
            return;
        /* What arrives does so while somebody is in MPI. */
        MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    }
}

static void fetch_add(int rank)
{
    const long one = 1;
    long old;
    MPI_Fetch_and_op(&one, &old, MPI_LONG, rank, 0, MPI_SUM, window);
    MPI_Win_flush(rank, window);
}

int main(int argc, char **argv)
{
    implementation = argc > 1 ? argv[1] : "mpi";
    const int rounds = argc > 2 ? atoi(argv[2]) : 1000;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &n);
    const int there = n - 1, partner = (me + n / 2) % n;
    char *memory, *mine = malloc(LARGE);
    MPI_Win_allocate(WORDS * 8 + LARGE, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
    memset(memory, 0, WORDS * 8 + LARGE);
    memset(mine, 1, LARGE);
    words = (volatile long *)(void *)memory;
    MPI_Win_lock_all(MPI_MODE_NOCHECK, window);
    MPI_Win_sync(window);
    MPI_Barrier(MPI_COMM_WORLD);
    if (me == 0) {
        long value;
        ROUNDS("get_8", rounds, 1, {
            MPI_Get(&value, 1, MPI_LONG, there, 0, 1, MPI_LONG, window);
            MPI_Win_flush(there, window);
        });
        ROUNDS("fetch_add_8", rounds, 1, fetch_add(there));
        ROUNDS("put_8_quiet", rounds, 1, (put(1, 0, there), MPI_Win_flush_all(window)));
        ROUNDS("puts_of_100", rounds / 10, 100, {
            for (long i = 0; i < 100; i++)
                put(i, 0, there);
            MPI_Win_flush_all(window);
        });
        ROUNDS("put_4_mib_quiet", rounds / 20, 1, {
            MPI_Put(mine, LARGE, MPI_CHAR, there, WORDS * 8, LARGE, MPI_CHAR, window);
            MPI_Win_flush_all(window);
        });
        ROUNDS("get_4_mib", rounds / 20, 1, {
            MPI_Get(mine, LARGE, MPI_CHAR, there, WORDS * 8, LARGE, MPI_CHAR, window);
            MPI_Win_flush(there, window);
        });
    }
    MPI_Barrier(MPI_COMM_WORLD);
    ROUNDS("fetch_add_8_by_all", rounds, 1, fetch_add(partner));
    MPI_Barrier(MPI_COMM_WORLD);
    ROUNDS("put_8_quiet_by_all", rounds, 1, (put(1, 0, partner), MPI_Win_flush_all(window)));
    MPI_Barrier(MPI_COMM_WORLD);
    long round = 0;
    if (me == 0) {
        ROUNDS("put_signal_there_and_back", rounds, 1, {
            round++;
            tell(round, 1, 2, there);
            await(3, round);
        });
    } else if (me == there) {
        for (int r = 0; r < (rounds > 0 ? rounds : 1); r++) {
            round++;
            await(2, round);
            tell(round, 1, 3, 0);
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    /* OpenSHMEM's barrier completes puts, too. */
    ROUNDS("barrier", rounds, 1, (MPI_Win_flush_all(window), MPI_Barrier(MPI_COMM_WORLD)));
    MPI_Win_unlock_all(window);
    MPI_Win_free(&window);
    MPI_Finalize();
    return 0;
}
