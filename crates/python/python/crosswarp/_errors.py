"""The exceptions of the package. All are under `Error`, and each is also what one would expect of Python."""

from __future__ import annotations

import builtins

__all__ = ["Error", "InputError", "DtypeError", "TimeoutError", "WorldError", "GpuError", "OutOfMemory", "InternalError", "ConvergenceWarning"]


class Error(Exception):
    """Any error of this package."""


class InputError(Error, ValueError):
    """A value that makes no sense: a shape, an axis, a range, an empty array that has no result."""


class DtypeError(Error, TypeError):
    """An element type, or an object, that the function does not take."""


class TimeoutError(Error, builtins.TimeoutError):
    """A wait of a world that lasted longer than it may."""


class WorldError(Error, RuntimeError):
    """A world of PEs that cannot be made or cannot go on."""


class GpuError(Error, RuntimeError):
    """No GPU, or no driver or compiler for it; or one that failed."""


class OutOfMemory(Error, MemoryError):
    """Something that does not fit into memory."""


class InternalError(Error, RuntimeError):
    """A bug in this package. The interpreter and its arrays are as they were."""


class ConvergenceWarning(UserWarning):
    """A solve that ended before its tolerance was met."""
