"""Sums you can compare bit by bit, and more, over NumPy arrays.

>>> import crosswarp as cw
>>> cw.sum(np.arange(4.0))
np.float64(6.0)
"""

from ._bits import bits, sha256
from ._errors import (
    ConvergenceWarning,
    DtypeError,
    Error,
    InputError,
    InternalError,
    OutOfMemory,
    TimeoutError,
    WorldError,
)
from ._histogram import bincount, histogram
from ._reduce import argmax, argmin, dot, max, mean, min, norm, prod, sum
from ._solve import Result, fill, poisson, solve
from ._transpose import transpose
from ._world import Pe, init, spmd

__all__ = [
    "ConvergenceWarning",
    "DtypeError",
    "Error",
    "InputError",
    "InternalError",
    "OutOfMemory",
    "Pe",
    "Result",
    "TimeoutError",
    "WorldError",
    "argmax",
    "argmin",
    "bincount",
    "bits",
    "dot",
    "fill",
    "histogram",
    "init",
    "max",
    "mean",
    "min",
    "norm",
    "poisson",
    "prod",
    "sha256",
    "solve",
    "spmd",
    "sum",
    "transpose",
]
