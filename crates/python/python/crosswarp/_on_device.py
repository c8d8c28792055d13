"""The functions, of arrays that lie on a GPU."""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from . import _native
from ._arrays import Array, Axis, axes_of
from ._device import INTEGERS, NUMBERS, SIZES, View, converted, find, finished, from_host, known, prepared, result_type
from ._errors import DtypeError, InputError

EXACT = _native.OPS.index("exact-sum")


def reduce(
    op: int, name: str, views: list[View], axis: Axis, dtype: npt.DTypeLike | None, keepdims: bool
) -> Any:
    """A reduction of one array, or of two, as an array of their library."""
    views = [known(converted(view, dtype, name), name) for view in views]
    view, shape, ndim = views[0], views[0].shape, len(views[0].shape)
    kind = result_type(name, view.dtype)
    if axis is None or ndim == 1 and axis in (0, -1):
        views = [prepared(view) for view in views]
        out = view.library.empty((1,) * ndim if keepdims else (), kind, view)
        addresses = (views[0].address, views[-1].address)
        size = view.size
        _native.device_reduce(
            view.place, op, NUMBERS[view.dtype], addresses, size, (0, 0, 0), out.address, SIZES[kind]
        )
        return _cast(finished(out), kind, dtype)
    along = _along(name, shape, axis if isinstance(axis, int) else axes_of(axis, ndim), keepdims)
    if along.elements == 0:
        return _cast(_of_nothing(name, along.out_shape, kind, view), kind, dtype)
    alone = name == "prod" or (op == EXACT and view.dtype not in INTEGERS)
    placed = [_placed(view, along, alone) for view in views]
    view, matrices = placed[0]
    out = view.library.empty(along.out_shape, kind, view)
    addresses = (view.address, placed[-1][0].address)
    _native.device_reduce(
        view.place, op, NUMBERS[view.dtype], addresses, along.elements, matrices, out.address, SIZES[kind]
    )
    return _cast(finished(out), kind, dtype)


class _Along(NamedTuple):
    """What follows from a shape and the axes that are reduced."""

    kept_and_axes: tuple[int, ...]
    out_shape: tuple[int, ...]
    elements: int
    rows: int
    matrices: tuple[int, int, int] | None
    """How many matrices, rows and columns an array has whose columns are to be reduced as it lies, if that is so."""


# Made anew for each call it took 3 µs, of some 10 that a call of a small array takes the host.
@functools.lru_cache(maxsize=256, typed=True)
def _along(name: str, shape: tuple[int, ...], axis: int | tuple[int, ...], keepdims: bool) -> _Along:
    ndim = len(shape)
    axes = axes_of(axis, ndim)
    if name in ("argmin", "argmax") and len(axes) != 1:
        raise InputError(f"{name} takes one axis, not {axis}")
    kept = tuple(k for k in range(ndim) if k not in axes)
    out_shape = tuple(1 if k in axes else shape[k] for k in range(ndim) if keepdims or k in kept)
    elements, rows = math.prod(shape), math.prod(shape[k] for k in axes)
    matrices = None
    if elements and (not kept or not axes or kept[-1] < axes[0]):
        matrices = (elements // rows, rows, 1)
    elif elements and axes[-1] - axes[0] == len(axes) - 1:
        matrices = (math.prod(shape[: axes[0]]), rows, math.prod(shape[axes[-1] + 1 :]))
    return _Along(kept + axes, out_shape, elements, rows, matrices)


def _cast(result: Any, kind: str, dtype: npt.DTypeLike | None) -> Any:
    """Of the type that was asked for."""
    if dtype is None:
        return result
    view = find(result)
    assert view is not None
    cast = converted(view, dtype, "a result")
    return result if cast.dtype == kind else finished(cast)


def _of_nothing(name: str, shape: tuple[int, ...], kind: str, like: View) -> Any:
    """Results where there is nothing to reduce, or no result."""
    if math.prod(shape) and name in ("min", "max", "argmin", "argmax", "mean"):
        raise InputError(f"{name} of no elements is undefined")
    return from_host(np.full(shape, 1 if name == "prod" else 0, kind), like)


def _placed(view: View, along: _Along, alone: bool) -> tuple[View, tuple[int, int, int]]:
    """C-contiguous matrices whose columns are to be reduced, and how many there are, their rows and columns. `alone`: of
    one column each."""
    matrices, rows = along.matrices, along.rows
    if matrices and matrices[2] == 1:
        return prepared(view), matrices
    one_column = (view.size // rows, rows, 1)
    if matrices and view.contiguous:
        # (outer, reduced, inner), as it lies in memory.
        if not alone:
            return view, matrices
        made = view.library.empty((matrices[0], matrices[2], rows), view.dtype, view)
        _native.device_transpose(view.place, SIZES[view.dtype], view.address, made.address, matrices)
        return made, one_column
    return view.library.permuted(view, along.kept_and_axes), one_column


def dot(
    op: int, views: list[View], axis: Axis, dtype: npt.DTypeLike | None, keepdims: bool
) -> Any:
    """A dot product."""
    left, right = views
    if left.shape != right.shape:
        raise InputError(f"dot of arrays of shapes {left.shape} and {right.shape}: they must be equal")
    if len(left.shape) > 1 and axis is None:
        raise InputError(
            "dot of arrays of more than one dimension needs axis=; for a matrix product use numpy.matmul"
        )
    if dtype is None and left.dtype != right.dtype:
        common = left.library.promoted(known(left, "dot").dtype, known(right, "dot").dtype)
        left, right = converted(left, common, "dot"), converted(right, common, "dot")
    return reduce(op, "dot", [left, right], axis, dtype, keepdims)


def transpose(view: View, out: Any) -> Any:
    """Each matrix transposed."""
    known(view, "transpose")
    if len(view.shape) < 2:
        raise InputError(
            f"transpose takes a matrix or a stack of them, not an array of {len(view.shape)} dimensions"
        )
    view = prepared(view)
    shape = (*view.shape[:-2], view.shape[-1], view.shape[-2])
    if out is None:
        made = view.library.empty(shape, view.dtype, view)
    else:
        given = find(out)
        if given is None or type(given.library) is not type(view.library) or given.device != view.device:
            raise InputError("out must be an array on the same GPU and of the same library")
        if given.place != view.place:
            raise InputError("out must be an array of the same stream")
        if given.dtype != view.dtype:
            raise DtypeError(f"out must be an array of {view.dtype}")
        if given.shape != shape or not given.contiguous:
            raise InputError(f"out must be C-contiguous and of shape {shape}; it is of shape {given.shape}")
        if given.read_only:
            raise InputError("out may be read-only: its library says so, or its DLPack, before version 1.0, cannot tell")
        made = given
    if view.size:
        rows, columns = view.shape[-2:]
        batch = view.size // (rows * columns)
        size = SIZES[view.dtype]
        _native.device_transpose(view.place, size, view.address, made.address, (batch, rows, columns))
    return finished(made) if out is None else out


def extremes(view: View) -> Array:
    """The smallest and the largest element, of which there is one at least, in NumPy's memory."""
    bits = _native.device_extremes(view.place, NUMBERS[view.dtype], view.address, view.size)
    size = SIZES[view.dtype]
    return np.array(bits, np.uint64).astype(f"u{size}").view(view.dtype)


def samples(view: View, function: str) -> View:
    """As samples of a histogram: floats of 32 bits at least, bool as bytes, C-contiguous."""
    view = known(view, function)
    if view.dtype in ("float16", "bfloat16"):
        view = converted(view, "float32", function)
    view = prepared(view)
    return view._replace(dtype="uint8") if view.dtype == "bool" else view


def count(view: View, edges: Array, values: bool = False) -> Any:
    """Counts of samples between edges, or of each value from the first edge up to the second; int64."""
    bins = int(edges[-1] - edges[0]) if values else len(edges) - 1
    out = view.library.empty((bins,), "int64", view)
    number = NUMBERS[view.dtype]
    _native.device_histogram(view.place, number, view.address, view.size, edges, values, out.address)
    return finished(out)


def as_type(view: View, dtype: str) -> View:
    """Converted, if it is of another type."""
    return view if view.dtype == dtype else prepared(view.library.cast(view, dtype))


