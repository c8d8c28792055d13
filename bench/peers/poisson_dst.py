#!/usr/bin/env python3
"""The peer of cycles on a GPU: Poisson's equation by sine transforms with PyTorch's FFT.

Solves -laplace(u) = f on the unit square with u = 0 on its sides, f64, where u is two waves, and prints one JSON object a
size: seconds of a solve (median of nine; the right side is in the GPU's memory, the solution stays there) and the
relative error. A sine transform of n values is the imaginary part of an FFT of 2(n + 1).

usage: poisson_dst.py SIZE...     SIZE: points of a side, both ends included
"""
import json
import math
import statistics
import sys
import time

import torch


def dst(rows):
    """The sine transform of each row, of n values: sum of x[j] sin(pi (j + 1) (k + 1) / (n + 1))."""
    n = rows.shape[1]
    odd = torch.zeros(rows.shape[0], 2 * (n + 1), dtype=rows.dtype, device=rows.device)
    odd[:, 1 : n + 1] = rows
    odd[:, n + 2 :] = -rows.flip(1)
    return -0.5 * torch.fft.rfft(odd)[:, 1 : n + 1].imag


def along(field, block=2048):
    """Transforms the rows and transposes, in blocks of rows: whole extensions would need four times the memory."""
    out = torch.empty(field.shape[1], field.shape[0], dtype=field.dtype, device=field.device)
    for start in range(0, field.shape[0], block):
        out[:, start : start + block] = dst(field[start : start + block]).T
    return out


def solve(f, values, h):
    n = f.shape[0]
    hat = along(along(f))
    hat /= values[:, None] + values[None, :]
    hat *= h * h * (2.0 / (n + 1)) ** 2
    return along(along(hat))


for size in map(int, sys.argv[1:]):
    n, h = size - 2, 1.0 / (size - 1)
    at = torch.arange(1, n + 1, dtype=torch.float64, device="cuda") * h
    wave = torch.sin(math.pi * at)
    third = torch.sin(3 * math.pi * at)
    u = wave[:, None] * (wave + 0.5 * third)[None, :]
    f = wave[:, None] * (2 * math.pi**2 * wave + 5 * math.pi**2 * third)[None, :]
    values = 4 * torch.sin(0.5 * math.pi * at) ** 2
    times = []
    for _ in range(10):
        torch.cuda.synchronize()
        start = time.perf_counter()
        found = solve(f, values, h)
        torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    times = times[1:]
    error = (torch.linalg.norm(found - u) / torch.linalg.norm(u)).item()
    row = {"impl": "torch-dst", "what": "poisson", "nx": size, "ny": size, "dtype": "f64"}
    row |= {"seconds": statistics.median(times), "us_min": 1e6 * min(times), "us_max": 1e6 * max(times)}
    row |= {"relative_error": error, "machine": torch.cuda.get_device_name(), "about": f"PyTorch {torch.__version__}"}
    print(json.dumps(row), flush=True)
    del u, f, found
    torch.cuda.empty_cache()
