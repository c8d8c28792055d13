// What all programs here share: the problem, the clocks, and the form of a row.
//
// The problem: u = sin πx sin πy + ½ sin 3πx sin πy on the unit square, 0 on its sides, by five points; n intervals an
// axis, so (n − 1)² unknowns.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PI 3.14159265358979323846

static double seconds_of(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static double exact(int n, int x, int y) {
    double h = 1.0 / n;
    return (sin(PI * x * h) + 0.5 * sin(3 * PI * x * h)) * sin(PI * y * h);
}

// The sum of the second derivatives.
static double source(int n, int x, int y) {
    double h = 1.0 / n;
    return -PI * PI * (2 * sin(PI * x * h) + 5 * sin(3 * PI * x * h)) * sin(PI * y * h);
}

static int by_size(const void* a, const void* b) {
    double x = *(const double*)a, y = *(const double*)b;
    return (x > y) - (x < y);
}

enum { repetitions = 5 };

// What one solve takes, set-up that depends on the operator included where `setup` says so.
struct times {
    double cpu[repetitions], wall[repetitions];
    int count;
    double cpu_start, wall_start;
};

static void start(struct times* times) {
    times->cpu_start = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
    times->wall_start = seconds_of(CLOCK_MONOTONIC);
}

static void stop(struct times* times) {
    times->cpu[times->count] = seconds_of(CLOCK_PROCESS_CPUTIME_ID) - times->cpu_start;
    times->wall[times->count] = seconds_of(CLOCK_MONOTONIC) - times->wall_start;
    times->count++;
}

// `steps`: cycles or iterations, 0 of a direct solver; `error`: relative, in the L2 norm, from the exact solution.
static void row(const char* impl, const char* what, int n, double tolerance, int steps, double error, struct times* times) {
    qsort(times->cpu, times->count, sizeof(double), by_size);
    qsort(times->wall, times->count, sizeof(double), by_size);
    printf("{\"impl\": \"%s\", \"what\": \"%s\", \"nx\": %d, \"ny\": %d, \"tolerance\": %g, \"steps\": %d, \"error\": %.4g, "
           "\"cpu_ms\": %.2f, \"ms\": %.2f, \"ms_min\": %.2f, \"ms_max\": %.2f}\n",
           impl, what, n + 1, n + 1, tolerance, steps, error, 1e3 * times->cpu[times->count / 2],
           1e3 * times->wall[times->count / 2], 1e3 * times->wall[0], 1e3 * times->wall[times->count - 1]);
    fflush(stdout);
}
