"""Which arrays the native part takes, and how others become such."""

from __future__ import annotations

from typing import Any, Sequence

import numpy as np
import numpy.typing as npt

from ._errors import DtypeError, InputError

Array = npt.NDArray[Any]
Axis = int | Sequence[int] | None


def is_bf16(dtype: np.dtype[Any]) -> bool:
    """Whether it is ml_dtypes' `bfloat16`."""
    # To make a name takes a microsecond or two. NumPy's own types have lower numbers.
    return dtype.num >= 256 and dtype.name == "bfloat16"


def as_array(value: object, function: str) -> Array:
    """The argument as an array of numbers; no copy of what is an array. Masked elements are an `InputError`."""
    array = np.asarray(value)
    if array is not value and np.ma.is_masked(value):
        raise InputError(f"{function} looks at no mask: give it array.compressed() or array.filled(VALUE)")
    dtype = array.dtype
    known = dtype.kind in "biu" or (dtype.kind == "f" and dtype.num < 256 and dtype.itemsize <= 8)
    if not known and not is_bf16(dtype):
        raise DtypeError(
            f"{function} takes bool, integers, float16, bfloat16, float32 and float64, not {dtype}"
        )
    return array


def converted(array: Array, dtype: npt.DTypeLike | None, function: str) -> Array:
    """With elements of `dtype`, if that is said."""
    if dtype is None:
        return array
    wanted: np.dtype[Any] = np.dtype(dtype)
    as_array(np.empty(0, wanted), function)
    return array.astype(wanted, copy=False)


def prepared(array: Array) -> Array:
    """C-contiguous, aligned, of native byte order; one copy at most."""
    dtype, flags = array.dtype, array.flags
    if type(array) is np.ndarray and dtype.isnative and flags.c_contiguous and flags.aligned:
        return array.view(np.uint16) if is_bf16(dtype) else array
    if not dtype.isnative:
        dtype = dtype.newbyteorder("=")
    array = np.require(array, dtype, ["C", "A"])
    if type(array) is not np.ndarray:
        array = array.view(np.ndarray)
    return array.view(np.uint16) if is_bf16(dtype) else array


def axes_of(axis: Axis, ndim: int) -> tuple[int, ...]:
    """The axes, from 0 on, ascending, each once."""
    if axis is None:
        return tuple(range(ndim))
    axes = (axis,) if isinstance(axis, (int, np.integer)) else tuple(axis)
    found = []
    for one in axes:
        if not -ndim <= one < ndim:
            raise InputError(f"axis {one} of an array of {ndim} dimension{'s' * (ndim != 1)}")
        found.append(int(one) % ndim)
    if len(set(found)) != len(found):
        raise InputError(f"an axis is named twice in {axes}")
    return tuple(sorted(found))


def threads_of(threads: int | None) -> int:
    """0 stands for the processors there are."""
    if threads is None:
        return 0
    if threads < 1:
        raise InputError(f"threads is {threads}: at least one is needed")
    return int(threads)
