#!/usr/bin/env python3
"""Measures PyTorch's and cuBLAS's transpositions on one GPU as JSON lines, beside a copy.

    bench/peers/transpose.py [SIDE...]     square matrices of these sides; 4096, 8192 and 16384 if not said

Needs PyTorch with CUDA; cuBLAS is the one that comes with it. Columns as in `crosswarp bench transpose
--json`: `us` is the median of 15 samples after 3 that do not count, each between two events; `bytes` are
those read and written.
"""

import ctypes
import json
import sys

import torch

SAMPLES, WARM_UP = 15, 3
INTEGERS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64, 16: torch.complex128}


def sample(call):
    for _ in range(WARM_UP):
        call()
    marks = [torch.cuda.Event(enable_timing=True) for _ in range(SAMPLES + 1)]
    marks[0].record()
    for mark in marks[1:]:
        call()
        mark.record()
    torch.cuda.synchronize()
    return sorted(1e3 * a.elapsed_time(b) for a, b in zip(marks, marks[1:]))


def report(impl, version, what, element, side, times):
    moved, median = 2 * element * side * side, times[SAMPLES // 2]
    row = {"impl": impl, "version": version, "what": what, "element": element, "rows": side, "columns": side}
    row |= {"us": median, "us_min": times[0], "us_max": times[-1], "bytes": moved, "bytes_per_second": moved / median * 1e6}
    print(json.dumps(row), flush=True)


def cublas():
    """cuBLAS as loaded by PyTorch, and a handle on PyTorch's stream; None if it is not there."""
    torch.ones(2, 2, device="cuda") @ torch.ones(2, 2, device="cuda")
    with open("/proc/self/maps", encoding="utf-8") as maps:
        paths = [line.split()[-1] for line in maps if "libcublas.so" in line]
    if not paths:
        return None
    library, handle = ctypes.CDLL(paths[0]), ctypes.c_void_p()
    if library.cublasCreate_v2(ctypes.byref(handle)) != 0:
        return None
    library.cublasSetStream_v2(handle, ctypes.c_void_p(torch.cuda.current_stream().cuda_stream))
    version = ctypes.c_int()
    library.cublasGetVersion_v2(handle, ctypes.byref(version))
    return library, handle, str(version.value)


def geam(blas, element, side, source, dest):
    """One call of cublas<t>geam: dest = 1 * transposed source + 0 * dest."""
    library, handle, _ = blas
    function = {4: library.cublasSgeam, 8: library.cublasDgeam, 16: library.cublasZgeam}[element]
    number = ctypes.c_float if element == 4 else ctypes.c_double
    one, zero = (number * 2)(1, 0), (number * 2)(0, 0)
    a, c = ctypes.c_void_p(source.data_ptr()), ctypes.c_void_p(dest.data_ptr())

    def call():
        status = function(handle, 1, 0, side, side, one, a, side, zero, c, side, c, side)
        if status != 0:
            sys.exit(f"cublas geam: status {status}")

    return call


def main():
    sides = [int(side) for side in sys.argv[1:]] or [4096, 8192, 16384]
    if not torch.cuda.is_available():
        sys.exit("transpose.py: PyTorch sees no GPU")
    blas = cublas()
    if blas is None:
        print("transpose.py: no cuBLAS in PyTorch; measured without", file=sys.stderr)
    for side in sides:
        for element, dtype in INTEGERS.items():
            bits = torch.randint(-(2**62), 2**62, (side * side * element // 8,), dtype=torch.int64, device="cuda")
            source = bits.view(dtype).view(side, side)
            dest = torch.empty_like(source)
            report("torch", torch.__version__, "copy", element, side, sample(lambda: dest.copy_(source)))
            times = sample(lambda: source.t().contiguous())
            report("torch", torch.__version__, "transpose", element, side, times)
            if blas is not None and element in (4, 8, 16):
                times = sample(geam(blas, element, side, source, dest))
                report("cublas", blas[2], "transpose", element, side, times)


if __name__ == "__main__":
    main()
