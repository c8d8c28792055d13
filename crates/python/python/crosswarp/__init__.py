"""Sums you can compare bit by bit, and more, over NumPy arrays and arrays of torch, CuPy, JAX and others on a GPU.

>>> import crosswarp as cw
>>> cw.sum(np.arange(4.0))
np.float64(6.0)
"""

from ._bits import bits, sha256
from ._device import DeviceArray
from ._errors import (
    ConvergenceWarning,
    DtypeError,
    Error,
    GpuError,
    InputError,
    InternalError,
    OutOfMemory,
    TimeoutError,
    WorldError,
)
from ._histogram import bincount, histogram
from ._kernel import Compiled, Kernel, KernelResources
from ._models import BankConflicts, Occupancy, Roofline, bank_conflicts, occupancy, roofline
from ._reduce import argmax, argmin, dot, max, mean, min, norm, prod, sum
from ._solve import Hierarchy, Result, fill, poisson, solve
from ._transpose import transpose
from ._world import Pe, Team, init, spmd

__all__ = [
    "BankConflicts",
    "Compiled",
    "ConvergenceWarning",
    "DeviceArray",
    "DtypeError",
    "Error",
    "GpuError",
    "Hierarchy",
    "InputError",
    "InternalError",
    "Kernel",
    "KernelResources",
    "Occupancy",
    "OutOfMemory",
    "Pe",
    "Result",
    "Roofline",
    "Team",
    "TimeoutError",
    "WorldError",
    "argmax",
    "argmin",
    "bank_conflicts",
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
    "occupancy",
    "poisson",
    "prod",
    "roofline",
    "sha256",
    "solve",
    "spmd",
    "sum",
    "transpose",
]
