"""Transposition."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _device, _native, _on_device
from ._arrays import as_array, prepared, threads_of
from ._errors import DtypeError, InputError

__all__ = ["transpose"]


def transpose(a: Any, out: Any = None, *, threads: int | None = None) -> Any:
    """The transposed matrix as a C-contiguous array, at the speed of memory; of a stack, each matrix transposed.

    `numpy.transpose` gives a view, and the copy of one is slow. Here the last two axes are exchanged and the elements
    are moved: `numpy.ascontiguousarray(numpy.swapaxes(a, -1, -2))`.

    `out`: a C-contiguous array of the result's shape and type, of which no element is in `a`; it is returned.

    >>> cw.transpose(np.arange(6).reshape(2, 3))
    array([[0, 3],
           [1, 4],
           [2, 5]])
    """
    if out is None:
        found = _native.transposed(a, threads_of(threads))
        if found is None:
            found = _native.transposed_tensor(a)
        if found is not None:
            return found
    view = _device.find(a)
    if view is not None:
        return _on_device.transpose(view, out)
    array = as_array(a, "transpose")
    if array.ndim < 2:
        raise InputError(f"transpose takes a matrix or a stack of them, not an array of {array.ndim} dimensions")
    shape = (*array.shape[:-2], array.shape[-1], array.shape[-2])
    dtype = array.dtype.newbyteorder("=")
    if out is None:
        out = np.empty(shape, dtype)
    elif not isinstance(out, np.ndarray) or out.dtype != dtype:
        raise DtypeError(f"out must be an array of {dtype}")
    elif out.shape != shape or not out.flags.c_contiguous or not out.flags.aligned:
        raise InputError(f"out must be C-contiguous and of shape {shape}; it is of shape {out.shape}")
    elif not out.flags.writeable:
        raise InputError("out is read-only")
    elif np.may_share_memory(out, array):
        raise InputError("out shares memory with the array that is transposed")
    rows, columns = array.shape[-2:]
    batch = array.size // max(rows * columns, 1)
    _native.transpose(prepared(array), prepared(out), batch, rows, columns, threads_of(threads))
    return out
