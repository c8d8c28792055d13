"""Sums you can compare bit by bit, and more, over NumPy arrays.

>>> import crosswarp as cw
>>> cw.sum(np.arange(4.0))
np.float64(6.0)
"""

from ._bits import bits, sha256
from ._errors import DtypeError, Error, InputError, InternalError, TimeoutError, WorldError
from ._histogram import bincount, histogram
from ._reduce import argmax, argmin, dot, max, mean, min, norm, prod, sum
from ._transpose import transpose

__all__ = [
    "DtypeError",
    "Error",
    "InputError",
    "InternalError",
    "TimeoutError",
    "WorldError",
    "argmax",
    "argmin",
    "bincount",
    "bits",
    "dot",
    "histogram",
    "max",
    "mean",
    "min",
    "norm",
    "prod",
    "sha256",
    "sum",
    "transpose",
]
