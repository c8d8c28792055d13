// Poisson's equation by FFTW's sine transforms (RODFT00) of both axes, one thread; plans are made beforehand and not
// counted.
//
//     fftw [n...]
#include <fftw3.h>

#include "waves.h"

static void solve(int n) {
    int m = n - 1;
    double* f = fftw_malloc(sizeof(double) * (size_t)m * m);
    double* u = fftw_malloc(sizeof(double) * (size_t)m * m);
    double* eigenvalue = malloc(sizeof(double) * m);
    for (int k = 0; k < m; k++) eigenvalue[k] = 2 * cos(PI * (k + 1) / n) - 2;
    fftw_plan plan = fftw_plan_r2r_2d(m, m, u, u, FFTW_RODFT00, FFTW_RODFT00, FFTW_MEASURE);
    for (int y = 0; y < m; y++)
        for (int x = 0; x < m; x++) f[(size_t)y * m + x] = source(n, x + 1, y + 1);
    struct times times = {.count = 0};
    double scale = 1.0 / ((double)n * n) / (4.0 * n * n);
    for (int repetition = -1; repetition < repetitions; repetition++) {
        if (repetition == 0) times.count = 0;
        start(&times);
        memcpy(u, f, sizeof(double) * (size_t)m * m);
        fftw_execute(plan);
        for (int y = 0; y < m; y++)
            for (int x = 0; x < m; x++) u[(size_t)y * m + x] *= scale / (eigenvalue[y] + eigenvalue[x]);
        fftw_execute(plan);
        stop(&times);
    }
    double off = 0, all = 0;
    for (int y = 0; y < m; y++)
        for (int x = 0; x < m; x++) {
            double should = exact(n, x + 1, y + 1), is = u[(size_t)y * m + x] - should;
            off += is * is;
            all += should * should;
        }
    row("fftw", fftw_version, n, 0, 0, sqrt(off / all), &times);
    fftw_destroy_plan(plan);
    fftw_free(f);
    fftw_free(u);
    free(eigenvalue);
}

int main(int count, char** arguments) {
    if (count < 2) solve(2048);
    for (int at = 1; at < count; at++) solve(atoi(arguments[at]));
}
