#!/usr/bin/env python3
"""Times the Python package beside NumPy, SciPy, numexpr and torch (what of these is installed), alternated.

    bench/python/compare.py [--most N] [--seconds S] [--read-rate PROGRAM] > rows.jsonl

N: elements of the largest arrays, else 10^7; no new case after S seconds. A row a case: the least time of each library in
seconds, over several turns in which each has one, after a rest. The first row says with what, on what and when; the last
ones are a table of those cases in which another library is faster. Ceiling: a reduction reads its input once, so the bytes
over the machine's read rate, which PROGRAM (bench/read_rate.c, compiled) measures with the threads there are, before and
after: cases of 10^8 elements and more then say which part of it they reach.
"""

import argparse
import datetime
import importlib
import inspect
import json
import os
import platform
import shlex
import subprocess
import sys
import time
from pathlib import Path

import crosswarp as cw
import numpy as np


# Before each turn, in seconds: until the threads of the library before have gone to sleep. Those of OpenBLAS, NumPy's, spin for
# 2^28 ticks of the time stamp counter after a call (103 ms at 2.6 GHz; 30 ms of processor time seen elsewhere), and keep whose
# turn it is from their processors.
REST = 0.12


def optional(name):
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


numexpr, ndimage, torch = optional("numexpr"), optional("scipy.ndimage"), optional("torch")
fft, sparse, linalg = (optional(f"scipy.{name}") for name in ("fft", "sparse", "sparse.linalg"))
if linalg and (not hasattr(sparse, "diags_array") or "rtol" not in inspect.signature(linalg.cg).parameters):
    # SciPy before 1.12.
    linalg = None


def scipys_fill(dem):
    """Laplace's equation in the voids by conjugate gradients, to a relative residual of 1e-8."""
    void = np.isnan(dem)
    number = np.cumsum(void).reshape(dem.shape) - 1
    right, neighbours = np.zeros(dem.shape), np.zeros(dem.shape)
    pairs = []
    for axis in (0, 1):
        first, second = (tuple(slice(*ends) if k == axis else slice(None) for k in (0, 1)) for ends in [(-1,), (1, None)])
        for here, there in ((first, second), (second, first)):
            # Where the rim is, there is no neighbour.
            neighbours[here] += 1
            right[here] += np.where(void[there], 0, dem[there])
            both = void[here] & void[there]
            pairs.append((number[here][both], number[there][both]))
    rows, columns = (np.concatenate(ends) for ends in zip(*pairs))
    count = int(void.sum())
    matrix = sparse.csr_array((np.full(len(rows), -1.0), (rows, columns)), (count, count))
    matrix += sparse.diags_array(neighbours[void])
    values, failed = linalg.cg(matrix, right[void], rtol=1e-8)
    assert not failed
    filled = dem.copy()
    filled[void] = values
    return filled


def scipys_poisson(source):
    """By sine transforms; zero on the sides."""
    n = len(source) - 2
    eigenvalues = 2 * np.cos(np.pi * np.arange(1, n + 1) / (n + 1)) - 2
    hat = fft.dstn(source[1:-1, 1:-1], 1, workers=-1)
    hat /= eigenvalues[:, None] + eigenvalues
    return fft.idstn(hat, 1, workers=-1)


def timed(call):
    """The least time of a call, and whether it is worth another turn."""
    count = 1
    while True:
        start = time.perf_counter()
        for _ in range(count):
            call()
        taken = time.perf_counter() - start
        if taken > 2e-3:
            return taken / count
        count *= 4


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--most", type=int, default=10**7)
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--read-rate")
    asked = parser.parse_args()
    began, most, rows, worse, large = time.monotonic(), asked.most, 0, [], []
    threads = len(os.sched_getaffinity(0))
    processor = next((x.split(":")[1].strip() for x in open("/proc/cpuinfo") if x.startswith("model name")), "?")
    versions = {m.__name__: m.__version__ for m in (np, numexpr, optional("scipy"), torch) if m}
    print(json.dumps({
        "command": shlex.join(sys.argv), "date": datetime.date.today().isoformat(), "processor": processor,
        "processors": threads, "load": os.getloadavg()[0],
        "python": platform.python_version(), **versions,
    }))  # fmt: skip

    def read_rate():
        program = [asked.read_rate, str(threads)]
        return float(subprocess.run(program, check=True, capture_output=True, text=True).stdout) * 1e9

    rates = [read_rate()] if asked.read_rate else []

    def row(name, calls, **case):
        nonlocal rows
        start = time.monotonic()
        if start - began > asked.seconds:
            return
        least = {}
        for turn in range(7):
            # Seconds of one case are enough.
            if turn > 2 and time.monotonic() - start > 1.5:
                break
            for library, call in calls.items():
                time.sleep(REST)
                least[library] = min(least.get(library, 1e9), timed(call))
        rows += 1
        digits = {k: float(f"{v:.4g}") for k, v in least.items()}
        print(json.dumps({"case": name, **case, "seconds": digits}), flush=True)
        best, other = min(((v, k) for k, v in least.items() if k != "crosswarp"), default=(1e9, None))
        elements = int(np.prod(case["shape"]))
        # Below 10^5 elements a microsecond more is allowed.
        if least["crosswarp"] > best + (1e-6 if elements < 10**5 else 0):
            worse.append((least["crosswarp"] / best, name, case, other))
        if elements >= 10**8 and name in ("sum", "mean", "norm", "dot"):
            size = elements * np.dtype(case["dtype"]).itemsize * (1 if name != "dot" else 2)
            large.append((name, case, size / least["crosswarp"]))

    rng = np.random.default_rng(1)
    functions = {
        "sum": (cw.sum, np.sum), "mean": (cw.mean, np.mean), "norm": (cw.norm, np.linalg.norm),
        "max": (cw.max, np.max), "argmax": (cw.argmax, np.argmax),
    }  # fmt: skip

    def torchs(name, a, axis=None):
        """torch's call on the same memory, if there is one."""
        if not torch or a.dtype == np.int64 and name in ("mean", "norm"):
            return {}
        x = torch.from_numpy(a)
        function = {"norm": torch.linalg.vector_norm, "max": torch.amax}.get(name) or getattr(torch, name)
        return {"torch": lambda: function(x, dim=axis)}

    for size in [10**k for k in range(1, 10) if 10**k <= most]:
        for dtype in (np.float32, np.float64, np.int64):
            a = (rng.random(size) * 100).astype(dtype)
            case = {"dtype": np.dtype(dtype).name, "shape": [size]}
            for name, (ours, theirs) in functions.items():
                calls = {"crosswarp": lambda: ours(a), "numpy": lambda: theirs(a)}
                calls |= torchs(name, a)
                if numexpr and name == "sum":
                    calls["numexpr"] = lambda: numexpr.evaluate("sum(a)", {"a": a})
                row(name, calls, **case)
            b = a[::-1].copy()
            row("dot", {"crosswarp": lambda: cw.dot(a, b), "numpy": lambda: np.dot(a, b)}, **case)
            del b
            calls = {"crosswarp": lambda: cw.histogram(a, 100), "numpy": lambda: np.histogram(a, 100)}
            if ndimage:
                calls["scipy"] = lambda: ndimage.histogram(a, 0, 100, 100)
            row("histogram", calls, bins=100, **case)
            if dtype == np.int64:
                row("bincount", {"crosswarp": lambda: cw.bincount(a), "numpy": lambda: np.bincount(a)}, **case)
    side = int(most**0.5)
    for shape in [(side, side), (most // 10, 10), (10, most // 10)]:
        for dtype in (np.float32, np.float64):
            a = rng.random(shape).astype(dtype)
            case = {"dtype": np.dtype(dtype).name, "shape": list(shape)}
            for name, (ours, theirs) in functions.items():
                for axis in (0, 1):
                    calls = {"crosswarp": lambda: ours(a, axis=axis), "numpy": lambda: theirs(a, axis=axis)}
                    calls |= torchs(name, a, axis)
                    row(name, calls, axis=axis, **case)
            calls = {"crosswarp": lambda: cw.transpose(a), "numpy": lambda: np.ascontiguousarray(a.T)}
            if torch:
                calls["torch"] = lambda: torch.from_numpy(a).T.contiguous()
            row("transpose", calls, **case)
    dem = np.load(Path(__file__).parents[2] / "examples/jacksboro/jacksboro_dem.npy").astype(float)
    known = np.load(Path(__file__).parents[2] / "examples/jacksboro/jacksboro_known.npy").astype(bool)
    for times in (1, 4):
        a, where = (np.kron(x, np.ones((times, times), x.dtype)) for x in (dem, known))
        a[~where] = np.nan
        calls = {"crosswarp": lambda: cw.fill(a).field}
        if linalg and time.monotonic() - began < asked.seconds:
            calls["scipy"] = lambda: scipys_fill(a)
            assert abs(calls["scipy"]() - calls["crosswarp"]()).max() < 1e-3
        row("fill", calls, dtype="float64", shape=list(a.shape))
    for side in (513, 2049):
        a = np.zeros((side, side))
        a[1:-1, 1:-1] = rng.random((side - 2, side - 2)) - 0.5
        calls = {"crosswarp": lambda: cw.poisson(a, relative_tolerance=1e-8).field}
        if fft and time.monotonic() - began < asked.seconds:
            calls["scipy"] = lambda: scipys_poisson(a)
            found, expected = calls["crosswarp"]()[1:-1, 1:-1], calls["scipy"]()
            assert abs(found - expected).max() < 1e-6 * abs(expected).max()
        row("poisson", calls, dtype="float64", shape=[side, side])
    if rates:
        rates.append(read_rate())
    print(json.dumps({
        "rows": rows, "slower": len(worse), "read_rates": rates, "seconds": round(time.monotonic() - began),
        "load": os.getloadavg()[0],
    }))  # fmt: skip
    for name, case, rate in large if rates else ():
        print(json.dumps({"large": name, **case, "of_the_read_rate": round(rate / max(rates), 2)}))
    for factor, name, case, other in sorted(worse, key=lambda entry: -entry[0]):
        print(json.dumps({"slower": name, **case, "than": other, "factor": round(factor, 2)}))


if __name__ == "__main__":
    main()
