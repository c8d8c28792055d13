#!/usr/bin/env python3
"""Times the Python package beside NumPy, SciPy, numexpr and torch (what of these is installed), alternated.

    bench/python/compare.py [--most N] > rows.jsonl      N: elements of the largest arrays, else 10^7

A row a case: the least time of each library in seconds, over several turns in which each has one. The first row says
with what, on what and when. Ceiling: a reduction reads its input once (bytes over the machine's read rate).
"""

import argparse
import datetime
import importlib
import json
import os
import platform
import shlex
import sys
import time

import crosswarp as cw
import numpy as np


def optional(name):
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


numexpr, ndimage, torch = optional("numexpr"), optional("scipy.ndimage"), optional("torch")


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


def row(name, calls, **case):
    least = {}
    for _ in range(7):
        for library, call in calls.items():
            least[library] = min(least.get(library, 1e9), timed(call))
    print(json.dumps({"case": name, **case, "seconds": {k: float(f"{v:.4g}") for k, v in least.items()}}), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--most", type=int, default=10**7)
    most = parser.parse_args().most
    processor = next((x.split(":")[1].strip() for x in open("/proc/cpuinfo") if x.startswith("model name")), "?")
    versions = {m.__name__: m.__version__ for m in (np, numexpr, optional("scipy"), torch) if m}
    print(json.dumps({
        "command": shlex.join(sys.argv), "date": datetime.date.today().isoformat(), "processor": processor,
        "processors": len(os.sched_getaffinity(0)), "load": os.getloadavg()[0],
        "python": platform.python_version(), **versions,
    }))  # fmt: skip
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
            row("dot", {"crosswarp": lambda: cw.dot(a, a), "numpy": lambda: np.dot(a, a)}, **case)
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


if __name__ == "__main__":
    main()
