"""Writes numpy_histograms.txt, the vectors of tests/histogram.rs: `python3 numpy_histograms.py > numpy_histograms.txt`.

A line is: agrees|differs; dtype; low; high; bins; samples; counts, where the counts are
numpy.histogram(numpy.array(samples, dtype), bins=bins, range=(low, high))[0]. Numbers of floats are written exactly.
"""

import numpy as np


def units(n, state=12345):
    for _ in range(n):
        state = (state * 1664525 + 1013904223) % 2**32
        yield state / 2**32


def line(verdict, dtype, low, high, bins, samples):
    samples = np.array(samples, dtype=dtype)
    low, high = samples.dtype.type(low), samples.dtype.type(high)
    counts = np.histogram(samples, bins=bins, range=(low, high))[0]
    text = [" ".join(repr(x.item()) for x in np.atleast_1d(values)) for values in (low, high, samples, counts)]
    print(f"{verdict}; {dtype}; {text[0]}; {text[1]}; {bins}; {text[2]}; {text[3]}")


print(f"# numpy {np.__version__}, by numpy_histograms.py")
for dtype in ["float32", "float64", "int32", "uint8", "uint16"]:
    line("agrees", dtype, 0, 3, 3, [0, 1, 2, 3])
for dtype in ["float32", "float64"]:
    for low, high, bins in [(0.1, 0.7, 6), (-1.0, 1.0, 10), (0.0, 1.0, 3), (-1e-3, 2.5e3, 17), (1e10, 1.5e10, 7)]:
        inside = [low + (high - low) * (1.25 * x - 0.125) for x in units(60)]
        line("agrees", dtype, low, high, bins, inside + [low, high])
for dtype, low, high, bins in [
    ("int32", -100, 100, 7),
    ("int32", 0, 49, 7),
    ("int32", 0, 7, 49),
    ("int32", 0, 3, 8),
    ("int32", -(2**31), 2**31 - 1, 9),
    ("int32", 2**31 - 11, 2**31 - 1, 5),
    ("uint8", 0, 255, 10),
    ("uint8", 0, 255, 255),
    ("uint8", 3, 10, 3),
    ("uint16", 5, 65535, 100),
]:
    n = min(high - low, 60)
    inside = [low + (high - low) * i // n for i in range(n + 1)]
    line("agrees", dtype, low, high, bins, inside)
# Samples that are edges of numpy.linspace, with roundings of their own.
line("differs", "float64", 0.1, 0.7, 6, np.linspace(0.1, 0.7, 7))
line("differs", "float64", -0.3, 0.3, 6, np.linspace(-0.3, 0.3, 7))
# The edge 14 · 25 / 50 is 7, numpy's 7.000000000000001.
line("differs", "int32", 0, 14, 50, range(15))
