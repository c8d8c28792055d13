#!/usr/bin/env python3
"""Poisson's equation by SciPy's sine transforms and by pyamg's multigrid, one thread; rows as those of waves.h.

    python_peers.py [n...]
"""

import json
import os
import sys
import time

for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[threads] = "1"

import numpy as np
import pyamg
import scipy
from scipy.fft import dstn, idstn


def problem(n):
    points = np.arange(1, n) / n
    wave = lambda a: np.sin(a * np.pi * points)
    exact = np.outer(wave(1), wave(1) + 0.5 * wave(3))
    source = -(np.pi**2) * np.outer(wave(1), 2 * wave(1) + 5 * wave(3))
    return exact, source


def row(impl, what, n, tolerance, steps, error, times):
    cpu, wall = (sorted(column) for column in zip(*times))
    print(json.dumps({
        "impl": impl, "what": what, "nx": n + 1, "ny": n + 1, "tolerance": tolerance, "steps": steps,
        "error": float(f"{error:.4g}"), "cpu_ms": round(1e3 * cpu[len(cpu) // 2], 2),
        "ms": round(1e3 * wall[len(wall) // 2], 2), "ms_min": round(1e3 * wall[0], 2), "ms_max": round(1e3 * wall[-1], 2),
    }), flush=True)  # fmt: skip


def timed(solve, repetitions):
    times = []
    for _ in range(repetitions):
        cpu, wall = time.process_time(), time.perf_counter()
        u = solve()
        times.append((time.process_time() - cpu, time.perf_counter() - wall))
    return u, times


def relative(u, exact):
    return float(np.linalg.norm(u - exact) / np.linalg.norm(exact))


def by_sines(n, exact, source):
    one = 2 * np.cos(np.pi * np.arange(1, n) / n) - 2
    eigenvalues = (one[:, None] + one[None, :]) * n**2

    def solve():
        return idstn(dstn(source, type=1, workers=1) / eigenvalues, type=1, workers=1)

    solve()
    u, times = timed(solve, 5)
    row("scipy", f"dstn {scipy.__version__}", n, 0, 0, relative(u, exact), times)


def by_pyamg(n, exact, source):
    matrix = pyamg.gallery.poisson((n - 1, n - 1), format="csr")
    b = (-source / n**2).ravel()
    for tolerance in (1e-3, 1e-8):
        residuals = []

        def solve():
            residuals.clear()
            levels = pyamg.ruge_stuben_solver(matrix)
            return levels.solve(b, tol=tolerance, accel="cg", residuals=residuals)

        u, times = timed(solve, 3)
        error = relative(u.reshape(n - 1, n - 1), exact)
        row("pyamg", f"ruge_stuben-CG {pyamg.__version__}", n, tolerance, len(residuals) - 1, error, times)


for n in [int(argument) for argument in sys.argv[1:]] or [2048]:
    exact, source = problem(n)
    by_sines(n, exact, source)
    by_pyamg(n, exact, source)
