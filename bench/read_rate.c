// The rate at which THREADS threads read memory: each its own GiB of huge pages, added up in vectors, three times; the
// best. The ceiling of what reads a file that the system has in memory.
//   cc -O3 -march=native -pthread bench/read_rate.c -o read_rate && ./read_rate THREADS
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

enum { WORDS = 1 << 27 };

static uint64_t total;
static pthread_barrier_t start;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}

static void *work(void *memory) {
    const uint64_t *x = memory;
    pthread_barrier_wait(&start);
    uint64_t sums[8] = {0};
    for (size_t i = 0; i < WORDS; i += 8)
        for (int j = 0; j < 8; ++j) sums[j] += x[i + j];
    for (int j = 0; j < 8; ++j) __atomic_fetch_add(&total, sums[j], __ATOMIC_RELAXED);
    return NULL;
}

int main(int argc, char **argv) {
    int threads = argc > 1 ? atoi(argv[1]) : 1;
    if (threads < 1 || threads > 256) return 2;
    uint64_t *memory[256];
    for (int k = 0; k < threads; ++k) {
        memory[k] = mmap(NULL, 8ull * WORDS, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory[k] == MAP_FAILED) return 1;
        madvise(memory[k], 8ull * WORDS, MADV_HUGEPAGE);
        for (size_t i = 0; i < WORDS; ++i) memory[k][i] = i;
    }
    double best = 0;
    for (int turn = 0; turn < 3; ++turn) {
        pthread_t thread[256];
        pthread_barrier_init(&start, NULL, threads + 1);
        for (int k = 0; k < threads; ++k) pthread_create(&thread[k], NULL, work, memory[k]);
        pthread_barrier_wait(&start);
        double before = now();
        for (int k = 0; k < threads; ++k) pthread_join(thread[k], NULL);
        double rate = 8e-9 * WORDS * threads / (now() - before);
        if (rate > best) best = rate;
    }
    printf("%.1f\n", best);
    return 0;
}
