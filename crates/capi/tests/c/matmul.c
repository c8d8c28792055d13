/* C = A B with rows of all three spread over the PEs: everyone fetches B block by block. */
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>

enum { SIZE = 120 };
static double a[SIZE * SIZE], b[SIZE * SIZE], c[SIZE * SIZE];

int main(void)
{
    shmem_init();
    const int me = shmem_my_pe(), n = shmem_n_pes(), rows = SIZE / n;
    double *block = (double *)malloc((size_t)rows * SIZE * sizeof *block);
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < SIZE; j++) {
            const int row = me * rows + i;
            a[i * SIZE + j] = row + j % 7;
            b[i * SIZE + j] = row == j ? 2 : row % 5 - j % 3;
        }
    shmem_barrier_all();
    for (int step = 0; step < n; step++) {
        const int owner = (me + step) % n;
        shmem_getmem_nbi(block, b, (size_t)rows * SIZE * sizeof *block, owner);
        shmem_quiet();
        for (int i = 0; i < rows; i++)
            for (int k = 0; k < rows; k++)
                for (int j = 0; j < SIZE; j++)
                    c[i * SIZE + j] += a[i * SIZE + owner * rows + k] * block[k * SIZE + j];
    }
    int wrong = 0;
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < SIZE; j++) {
            double sum = 0;
            for (int k = 0; k < rows * n; k++)
                sum += (me * rows + i + k % 7) * (k == j ? 2.0 : k % 5 - j % 3);
            wrong |= c[i * SIZE + j] != sum;
        }
    if (wrong)
        fprintf(stderr, "matmul: PE %d has a wrong product\n", me);
    shmem_barrier_all();
    free(block);
    shmem_finalize();
    return wrong;
}
