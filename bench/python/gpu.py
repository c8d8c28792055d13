#!/usr/bin/env python3
"""Times the Python package on a GPU beside torch and CuPy (what of these is installed), alternated, on torch's tensors.

    bench/python/gpu.py [--most N] [--seconds S] > rows.jsonl      N: elements of the largest arrays, else 10^9

A row a case: the least time of a call in seconds, of calls that follow one another in a stream, over several turns in
which each library has one; `host`: of the call itself, until it returns. Results of the package are compared with those of
the processor up to 10^6 elements. The last rows are a table. Ceiling: a reduction reads its input once; `copy` says how fast
this GPU reads and writes.
"""

import argparse
import datetime
import json
import platform
import shlex
import sys
import time

import crosswarp as cw
import numpy as np
import torch

try:
    import cupy
except ImportError:
    cupy = None


def timed(call, least=1e-3):
    """The time of a call in the stream, and that of the host."""
    count = 1
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    while True:
        torch.cuda.synchronize()
        start.record()
        before = time.perf_counter()
        for _ in range(count):
            call()
        host = time.perf_counter() - before
        end.record()
        end.synchronize()
        taken = start.elapsed_time(end) / 1e3
        if max(taken, host) > least:
            return taken / count, host / count
        count *= 4


class Sines:
    """Poisson's equation on `n` × `n` points of the unit square, 0 on its sides, by sine transforms, which torch has as Fourier's."""

    def __init__(self, n):
        intervals = n - 1
        k = torch.arange(1, intervals, device="cuda", dtype=torch.float64)
        eigenvalues = (2 * torch.cos(torch.pi * k / intervals) - 2) * intervals**2
        self.factors = 1 / ((eigenvalues[:, None] + eigenvalues) * (2 * intervals) ** 2)

    @staticmethod
    def transform(x):
        """Of each row, of -2 i sin."""
        rows, n = x.shape
        odd = torch.zeros(rows, 2 * n + 2, device=x.device, dtype=x.dtype)
        odd[:, 1 : n + 1] = x
        odd[:, n + 2 :] = -x.flip(1)
        return -torch.fft.rfft(odd)[:, 1 : n + 1].imag

    def poisson(self, f):
        u = self.transform(self.transform(f[1:-1, 1:-1]).T) * self.factors
        field = torch.zeros_like(f)
        field[1:-1, 1:-1] = self.transform(self.transform(u).T)
        return field


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--most", type=int, default=10**9)
    parser.add_argument("--seconds", type=float, default=150, help="no new case after so long")
    asked = parser.parse_args()
    began, worse, rows = time.monotonic(), [], 0
    versions = {m.__name__: m.__version__ for m in (np, torch, cupy) if m}
    print(json.dumps({
        "command": shlex.join(sys.argv), "date": datetime.date.today().isoformat(),
        "gpu": torch.cuda.get_device_name(), "python": platform.python_version(), **versions,
    }))  # fmt: skip

    def row(name, calls, turns=5, **case):
        nonlocal rows
        if time.monotonic() - began > asked.seconds:
            return
        least, hosts = {}, {}
        for call in calls.values():
            call()
        for _ in range(turns):
            for library, call in calls.items():
                taken, host = timed(call)
                least[library] = min(least.get(library, 1e9), taken)
                hosts[library] = min(hosts.get(library, 1e9), host)
        rows += 1
        digits = lambda times: {k: float(f"{v:.4g}") for k, v in times.items()}  # noqa: E731
        print(json.dumps({"case": name, **case, "seconds": digits(least), "host": digits(hosts)}), flush=True)
        best = min((v, k) for k, v in least.items() if k != "crosswarp") if len(least) > 1 else None
        if best and best[1] != "bound" and least["crosswarp"] > best[0]:
            worse.append((least["crosswarp"] / best[0], name, case, best[1]))

    def beside(function, x, torchs, cupys, **how):
        """The three libraries' calls on one array."""
        calls = {"crosswarp": lambda: function(x, **how), "torch": torchs}
        if cupy and cupys:
            y = cupy.asarray(x)
            calls["cupy"] = lambda: cupys(y)
        return calls

    def check(function, x, **how):
        if x.numel() <= 10**6:
            found, expected = function(x, **how), function(x.cpu().numpy(), **how)
            assert cw.sha256(found) == cw.sha256(expected), (function.__name__, x.shape, how)

    def reductions(x, axis, **case):
        along = {} if axis is None else {"axis": axis}
        both = (None,) if axis is None else (axis,)
        integers = not x.is_floating_point()
        pairs = [
            (cw.sum, lambda: torch.sum(x, *both), lambda y: y.sum(axis)),
            (cw.mean, lambda: torch.mean(x, *both), lambda y: y.mean(axis)),
            (cw.norm, lambda: torch.linalg.vector_norm(x, dim=axis), lambda y: cupy.linalg.norm(y, axis=axis)),
            (cw.argmax, lambda: torch.argmax(x, *both), lambda y: y.argmax(axis)),
        ]
        for function, torchs, cupys in pairs:
            if integers and function in (cw.mean, cw.norm):
                continue
            check(function, x, **along)
            row(function.__name__, beside(function, x, torchs, cupys, **along), **case, **along)

    free = torch.cuda.mem_get_info()[0]
    sizes = [10**k for k in (3, 4, 5, 6, 7, 8, 9) if 10**k <= asked.most and 4 * 10**k * 3 < free]
    generator = torch.Generator(device="cuda").manual_seed(1)
    for size in sizes:
        x = torch.rand(size, device="cuda", generator=generator)
        case = {"dtype": "float32", "shape": [size]}
        row("copy", {"bound": lambda: x.clone()}, turns=2, **case)
        reductions(x, None, **case)
        z = x.flip(0)
        row("dot", {
            "crosswarp": lambda: cw.dot(x, z), "torch": lambda: torch.dot(x, z),
            **({"cupy": (lambda a, b: lambda: cupy.dot(a, b))(cupy.asarray(x), cupy.asarray(z))} if cupy else {}),
        }, **case)  # fmt: skip
        del z
        if size <= 10**8:
            # torch has no histogram with edges on a GPU: its counts and its edges.
            torchs = lambda: (torch.histc(x, 100, 0, 1), torch.linspace(0, 1, 101, device="cuda"))  # noqa: E731
            row("histogram", beside(
                cw.histogram, x, torchs, lambda y: cupy.histogram(y, 100, (0, 1)),
                bins=100, range=(0, 1),
            ), bins=100, **case)  # fmt: skip
            for kind in (torch.int32, torch.int64):
                k = (x * 1000).to(kind)
                name = {"dtype": str(kind)[6:], "shape": [size]}
                check(cw.bincount, k)
                row("bincount", beside(cw.bincount, k, lambda: torch.bincount(k), lambda y: cupy.bincount(y)), **name)
            side = int(size**0.5)
            shapes = [(side, side), (size // 10, 10), (10, size // 10), (size // 100, 100)]
            for shape in dict.fromkeys(shapes):
                m = x[: shape[0] * shape[1]].reshape(shape)
                name = {"dtype": "float32", "shape": list(shape)}
                for axis in (0, 1):
                    reductions(m, axis, **name)
                check(cw.transpose, m)
                row("transpose", beside(
                    cw.transpose, m, lambda: m.T.contiguous(), lambda y: cupy.ascontiguousarray(y.T)
                ), **name)  # fmt: skip
        del x
    for dtype in (torch.float64, torch.float16, torch.int64):
        size = min(10**8, sizes[-1])
        x = (torch.rand(size, device="cuda", generator=generator) * 100).to(dtype)
        case = {"dtype": str(dtype)[6:], "shape": [size]}
        reductions(x, None, **case)
        side = int(size**0.5)
        m = x[: side * side].reshape(side, side)
        for axis in (0, 1):
            reductions(m, axis, dtype=case["dtype"], shape=[side, side])
        del x, m
    # 2048 points are 2047 intervals, for which there is no fast transform.
    for n in (1025, 2048, 2049, 4097, 8193):
        if n * n > asked.most:
            continue
        f = torch.rand(n, n, device="cuda", dtype=torch.float64, generator=generator) - 0.5
        levels, sines = cw.Hierarchy((n, n), spacing=1 / (n - 1)), Sines(n)
        u = cw.poisson(f, spacing=1 / (n - 1)).field
        assert (u - sines.poisson(f)).abs().max() < 1e-7 * u.abs().max()
        case = {"dtype": "float64", "shape": [n, n]}
        # To a relative residual of 1e-8; the transforms are exact but for rounding.
        transforms = {"torch's transforms": lambda: sines.poisson(f)}
        row("poisson", {"crosswarp": lambda: cw.poisson(f, spacing=1 / (n - 1)), **transforms}, turns=3, **case)
        row("poisson, levels kept", {"crosswarp": lambda: levels.solve(f), **transforms}, turns=3, **case)
        del f, u, levels, sines
    for n in (1025, 4097):
        if n * n > asked.most:
            continue
        case, x = {"dtype": "float64", "shape": [n, n]}, torch.arange(n, device="cuda", dtype=torch.float64) / n
        # A quarter unknown, by squares of 16 x 16 cells.
        squares = torch.rand(n // 16 + 1, n // 16 + 1, device="cuda", generator=generator) < 0.25
        dem = 100 * torch.outer(torch.cos(2 * x), torch.sin(3 * x))
        dem[squares.repeat_interleave(16, 0).repeat_interleave(16, 1)[:n, :n]] = torch.nan
        kappa = torch.exp(2 * torch.outer(torch.sin(6 * x), torch.sin(9 * x)))
        f = torch.rand(n, n, device="cuda", dtype=torch.float64, generator=generator) - 0.5
        on_host = [array.cpu().numpy() for array in (dem, f, kappa)]
        fills = {"crosswarp": lambda: cw.fill(dem), "crosswarp on the processor": lambda: cw.fill(on_host[0])}
        row("fill", fills, turns=3, **case)
        solves = {
            "crosswarp": lambda: cw.poisson(f, coefficient=kappa, spacing=1 / (n - 1)),
            "crosswarp on the processor": lambda: cw.poisson(on_host[1], coefficient=on_host[2], spacing=1 / (n - 1)),
        }
        row("poisson with a coefficient", solves, turns=3, **case)
        del dem, kappa, f
    worse.sort(key=lambda entry: -entry[0])
    print(json.dumps({"rows": rows, "slower": len(worse), "seconds": round(time.monotonic() - began)}))
    for factor, name, case, other in worse[:40]:
        print(json.dumps({"slower": name, **case, "than": other, "factor": round(factor, 2)}))


if __name__ == "__main__":
    main()
