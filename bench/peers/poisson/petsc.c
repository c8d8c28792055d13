// Poisson's equation by PETSc's geometric multigrid on a DMDA, as the preconditioner of conjugate gradients; set-up included.
// Points on the sides are equations u = 0, as in PETSc's own examples, so that every second point is coarse. One process.
//
//     petsc [n...]
#include <petscdmda.h>
#include <petscksp.h>

#include "waves.h"

static PetscErrorCode right_side(KSP ksp, Vec b, void* n_at) {
    int n = *(int*)n_at;
    DM grid;
    PetscScalar** values;
    PetscInt x0, y0, nx, ny;
    PetscFunctionBeginUser;
    PetscCall(KSPGetDM(ksp, &grid));
    PetscCall(DMDAGetCorners(grid, &x0, &y0, NULL, &nx, &ny, NULL));
    PetscCall(DMDAVecGetArray(grid, b, &values));
    for (PetscInt y = y0; y < y0 + ny; y++)
        for (PetscInt x = x0; x < x0 + nx; x++) {
            int side = x == 0 || y == 0 || x == n || y == n;
            values[y][x] = side ? 0 : -source(n, x, y) / ((double)n * n);
        }
    PetscCall(DMDAVecRestoreArray(grid, b, &values));
    PetscFunctionReturn(0);
}

static PetscErrorCode operator(KSP ksp, Mat unused, Mat matrix, void* context) {
    DM grid;
    PetscInt x0, y0, nx, ny, mx, my;
    PetscFunctionBeginUser;
    (void)unused;
    (void)context;
    PetscCall(KSPGetDM(ksp, &grid));
    PetscCall(DMDAGetInfo(grid, NULL, &mx, &my, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
    PetscCall(DMDAGetCorners(grid, &x0, &y0, NULL, &nx, &ny, NULL));
    for (PetscInt y = y0; y < y0 + ny; y++)
        for (PetscInt x = x0; x < x0 + nx; x++) {
            MatStencil here = {.j = y, .i = x}, columns[5];
            PetscScalar values[5];
            PetscInt count = 0;
            columns[count] = here;
            values[count++] = 4;
            if (x > 0 && y > 0 && x < mx - 1 && y < my - 1) {
                int steps[4][2] = {{-1, 0}, {1, 0}, {0, -1}, {0, 1}};
                for (int k = 0; k < 4; k++) {
                    PetscInt i = x + steps[k][0], j = y + steps[k][1];
                    // Sides are 0, so the matrix stays symmetric without them.
                    if (i > 0 && j > 0 && i < mx - 1 && j < my - 1) {
                        columns[count] = (MatStencil){.j = j, .i = i};
                        values[count++] = -1;
                    }
                }
            }
            PetscCall(MatSetValuesStencil(matrix, 1, &here, count, columns, values, INSERT_VALUES));
        }
    PetscCall(MatAssemblyBegin(matrix, MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(matrix, MAT_FINAL_ASSEMBLY));
    PetscFunctionReturn(0);
}

static PetscErrorCode solve(int n) {
    PetscFunctionBeginUser;
    for (int goal = 0; goal < 2; goal++) {
        double tolerance = goal ? 1e-8 : 1e-3, off = 0, all = 0;
        struct times times = {.count = 0};
        PetscInt steps = 0;
        for (int repetition = 0; repetition < repetitions; repetition++) {
            DM grid;
            KSP ksp;
            PC multigrid;
            PetscInt levels = 1;
            for (int intervals = n; intervals % 2 == 0 && intervals > 4; intervals /= 2) levels++;
            PetscCall(DMDACreate2d(PETSC_COMM_WORLD, DM_BOUNDARY_NONE, DM_BOUNDARY_NONE, DMDA_STENCIL_STAR, n + 1, n + 1,
                                   PETSC_DECIDE, PETSC_DECIDE, 1, 1, NULL, NULL, &grid));
            PetscCall(DMSetUp(grid));
            start(&times);
            PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp));
            PetscCall(KSPSetDM(ksp, grid));
            PetscCall(KSPSetComputeRHS(ksp, right_side, &n));
            PetscCall(KSPSetComputeOperators(ksp, operator, NULL));
            PetscCall(KSPSetType(ksp, KSPCG));
            PetscCall(KSPSetNormType(ksp, KSP_NORM_UNPRECONDITIONED));
            PetscCall(KSPSetTolerances(ksp, tolerance, 0, PETSC_DEFAULT, 100));
            PetscCall(KSPGetPC(ksp, &multigrid));
            PetscCall(PCSetType(multigrid, PCMG));
            PetscCall(PCMGSetLevels(multigrid, levels, NULL));
            PetscCall(PCMGSetGalerkin(multigrid, PC_MG_GALERKIN_NONE));
            PetscCall(KSPSetFromOptions(ksp));
            PetscCall(KSPSolve(ksp, NULL, NULL));
            stop(&times);
            PetscCall(KSPGetIterationNumber(ksp, &steps));
            Vec u;
            PetscScalar** values;
            PetscCall(KSPGetSolution(ksp, &u));
            PetscCall(DMDAVecGetArray(grid, u, &values));
            off = all = 0;
            for (int y = 1; y < n; y++)
                for (int x = 1; x < n; x++) {
                    double should = exact(n, x, y), is = values[y][x] - should;
                    off += is * is;
                    all += should * should;
                }
            PetscCall(DMDAVecRestoreArray(grid, u, &values));
            PetscCall(KSPDestroy(&ksp));
            PetscCall(DMDestroy(&grid));
        }
        char what[64];
        snprintf(what, sizeof what, "mg-CG %d.%d.%d", PETSC_VERSION_MAJOR, PETSC_VERSION_MINOR, PETSC_VERSION_SUBMINOR);
        row("petsc", what, n, tolerance, (int)steps, sqrt(off / all), &times);
    }
    PetscFunctionReturn(0);
}

int main(int count, char** arguments) {
    PetscCall(PetscInitialize(&count, &arguments, NULL, NULL));
    int asked = 0;
    for (int at = 1; at < count; at++)
        if (atoi(arguments[at]) > 0) {
            asked = 1;
            PetscCall(solve(atoi(arguments[at])));
        }
    if (!asked) PetscCall(solve(2048));
    return PetscFinalize();
}
