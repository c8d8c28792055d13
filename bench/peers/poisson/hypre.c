// Poisson's equation by hypre's conjugate gradients with PFMG, its multigrid for structured grids; set-up included. One
// process; OMP_NUM_THREADS=1 says one thread.
//
//     hypre [n...]
#include <HYPRE_struct_ls.h>
#include <mpi.h>

#include "waves.h"

static void solve(int n) {
    int m = n - 1, low[2] = {0, 0}, high[2] = {m - 1, m - 1};
    size_t cells = (size_t)m * m;
    HYPRE_StructGrid grid;
    HYPRE_StructGridCreate(MPI_COMM_WORLD, 2, &grid);
    HYPRE_StructGridSetExtents(grid, low, high);
    HYPRE_StructGridAssemble(grid);
    // The symmetric half of five points.
    HYPRE_StructStencil stencil;
    HYPRE_StructStencilCreate(2, 3, &stencil);
    int offsets[3][2] = {{0, 0}, {1, 0}, {0, 1}}, entries[3] = {0, 1, 2};
    for (int k = 0; k < 3; k++) HYPRE_StructStencilSetElement(stencil, k, offsets[k]);
    HYPRE_StructMatrix matrix;
    HYPRE_StructMatrixCreate(MPI_COMM_WORLD, grid, stencil, &matrix);
    HYPRE_StructMatrixSetSymmetric(matrix, 1);
    HYPRE_StructMatrixInitialize(matrix);
    double* values = malloc(sizeof(double) * 3 * cells);
    for (size_t at = 0; at < cells; at++) {
        values[3 * at] = 4;
        values[3 * at + 1] = at % m == (size_t)m - 1 ? 0 : -1;
        values[3 * at + 2] = at / m == (size_t)m - 1 ? 0 : -1;
    }
    HYPRE_StructMatrixSetBoxValues(matrix, low, high, 3, entries, values);
    HYPRE_StructMatrixAssemble(matrix);
    HYPRE_StructVector b, u;
    HYPRE_StructVectorCreate(MPI_COMM_WORLD, grid, &b);
    HYPRE_StructVectorCreate(MPI_COMM_WORLD, grid, &u);
    HYPRE_StructVectorInitialize(b);
    HYPRE_StructVectorInitialize(u);
    for (int y = 0; y < m; y++)
        for (int x = 0; x < m; x++) values[(size_t)y * m + x] = -source(n, x + 1, y + 1) / ((double)n * n);
    HYPRE_StructVectorSetBoxValues(b, low, high, values);
    HYPRE_StructVectorAssemble(b);
    for (int goal = 0; goal < 2; goal++) {
        double tolerance = goal ? 1e-8 : 1e-3;
        struct times times = {.count = 0};
        int steps = 0;
        for (int repetition = 0; repetition < repetitions; repetition++) {
            HYPRE_StructVectorSetConstantValues(u, 0);
            HYPRE_StructVectorAssemble(u);
            start(&times);
            HYPRE_StructSolver solver, preconditioner;
            HYPRE_StructPCGCreate(MPI_COMM_WORLD, &solver);
            HYPRE_StructPCGSetTol(solver, tolerance);
            HYPRE_StructPCGSetMaxIter(solver, 100);
            HYPRE_StructPCGSetTwoNorm(solver, 1);
            HYPRE_StructPFMGCreate(MPI_COMM_WORLD, &preconditioner);
            HYPRE_StructPFMGSetMaxIter(preconditioner, 1);
            HYPRE_StructPFMGSetTol(preconditioner, 0);
            HYPRE_StructPFMGSetZeroGuess(preconditioner);
            HYPRE_StructPFMGSetRAPType(preconditioner, 1);
            HYPRE_StructPFMGSetRelaxType(preconditioner, 2);
            HYPRE_StructPCGSetPrecond(solver, HYPRE_StructPFMGSolve, HYPRE_StructPFMGSetup, preconditioner);
            HYPRE_StructPCGSetup(solver, matrix, b, u);
            HYPRE_StructPCGSolve(solver, matrix, b, u);
            stop(&times);
            HYPRE_StructPCGGetNumIterations(solver, &steps);
            HYPRE_StructPFMGDestroy(preconditioner);
            HYPRE_StructPCGDestroy(solver);
        }
        HYPRE_StructVectorGetBoxValues(u, low, high, values);
        double off = 0, all = 0;
        for (int y = 0; y < m; y++)
            for (int x = 0; x < m; x++) {
                double should = exact(n, x + 1, y + 1), is = values[(size_t)y * m + x] - should;
                off += is * is;
                all += should * should;
            }
        row("hypre", "PFMG-CG " HYPRE_RELEASE_VERSION, n, tolerance, steps, sqrt(off / all), &times);
    }
    HYPRE_StructVectorDestroy(u);
    HYPRE_StructVectorDestroy(b);
    HYPRE_StructMatrixDestroy(matrix);
    HYPRE_StructStencilDestroy(stencil);
    HYPRE_StructGridDestroy(grid);
    free(values);
}

int main(int count, char** arguments) {
    MPI_Init(&count, &arguments);
    if (count < 2) solve(2048);
    for (int at = 1; at < count; at++) solve(atoi(arguments[at]));
    MPI_Finalize();
}
