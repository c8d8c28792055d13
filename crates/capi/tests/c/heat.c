/* Heat along a bar: explicit steps, halos by put with signal, the residual by a reduction. The result is
 * compared with the same steps on one PE. */
#include <math.h>
#include <shmem.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { CELLS = 240, STEPS = 300 };
static uint64_t arrived[2];
static double change, largest;

static double step(double left, double here, double right)
{
    return here + 0.25 * (left - 2 * here + right);
}

int main(void)
{
    shmem_init();
    const int me = shmem_my_pe(), n = shmem_n_pes(), mine = CELLS / n;
    double *u = (double *)shmem_calloc((size_t)mine + 2, sizeof *u);
    double *next = (double *)malloc(((size_t)mine + 2) * sizeof *next);
    double *all = (double *)shmem_malloc(CELLS * sizeof *all);
    for (int i = 1; i <= mine; i++)
        u[i] = sin(0.1 * (me * mine + i));
    shmem_barrier_all();
    for (uint64_t s = 1; s <= STEPS; s++) {
        if (me > 0)
            shmem_double_put_signal(&u[mine + 1], &u[1], 1, &arrived[1], s, SHMEM_SIGNAL_SET, me - 1);
        if (me < n - 1)
            shmem_double_put_signal(&u[0], &u[mine], 1, &arrived[0], s, SHMEM_SIGNAL_SET, me + 1);
        if (me > 0)
            shmem_signal_wait_until(&arrived[0], SHMEM_CMP_GE, s);
        if (me < n - 1)
            shmem_signal_wait_until(&arrived[1], SHMEM_CMP_GE, s);
        change = 0;
        for (int i = 1; i <= mine; i++) {
            next[i] = step(u[i - 1], u[i], u[i + 1]);
            change = fmax(change, fabs(next[i] - u[i]));
        }
        shmem_max_reduce(SHMEM_TEAM_WORLD, &largest, &change, 1);
        for (int i = 1; i <= mine; i++)
            u[i] = next[i];
        shmem_sync_all();
    }
    shmem_fcollect(SHMEM_TEAM_WORLD, all, u + 1, (size_t)mine);
    int wrong = !(largest > 0 && largest < 0.01);
    double one[2][CELLS + 2] = {{0}};
    for (int i = 1; i <= mine * n; i++)
        one[0][i] = sin(0.1 * i);
    for (int s = 0; s < STEPS; s++)
        for (int i = 1; i <= mine * n; i++)
            one[(s + 1) % 2][i] = step(one[s % 2][i - 1], one[s % 2][i], one[s % 2][i + 1]);
    for (int i = 0; i < mine * n; i++)
        wrong |= all[i] != one[STEPS % 2][i + 1];
    if (me == 0 && wrong)
        fprintf(stderr, "heat: the field differs (last change %g)\n", largest);
    free(next);
    shmem_free(all);
    shmem_free(u);
    shmem_finalize();
    return wrong;
}
