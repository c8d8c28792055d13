"""Reductions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _device, _native, _on_device
from ._arrays import Array, Axis, as_array, axes_of, converted, is_bf16, prepared, threads_of
from ._errors import InputError

__all__ = ["sum", "prod", "min", "max", "argmin", "argmax", "mean", "norm", "dot"]

_SUM, _EXACT, _PROD, _MIN, _MAX, _ARGMIN, _ARGMAX, _MEAN, _NORM, _DOT = range(10)
assert _native.OPS == "sum exact-sum prod min max argmin argmax mean norm2 dot".split()
_NAMES = "sum sum prod min max argmin argmax mean norm dot".split()


def sum(
    a: npt.ArrayLike,
    axis: Axis = None,
    dtype: npt.DTypeLike | None = None,
    *,
    exact: bool = False,
    keepdims: bool = False,
    threads: int | None = None,
) -> Any:
    """Sum of the elements, with bits that depend on the values and their order only.

    Not on the number of threads, the machine's vectors or the array's layout in memory: a strided or transposed view
    has the bits of its C-contiguous copy. `crosswarp reduce` gives the same bits for the same array in a file.

    Parameters: `axis` is `None` (all elements), a number or a tuple of numbers. `dtype`: elements are converted to it
    before they are added, and it is the result's type. `exact=True`: the exact sum, rounded once, so that the order of
    the elements does not matter either. `keepdims`: as in NumPy. `threads`: at most so many; all processors if `None`.

    Result: float32 for float16, bfloat16 and float32, float64 for float64; int64 for bool and signed integers, uint64
    for unsigned ones, modulo 2**64. A scalar if all axes are summed.

    Of no elements it is 0. A NaN among the elements, or infinities of both signs, give the canonical NaN. Finite
    elements give an infinity only if their sum rounds beyond the result's range: sums do not overflow on the way.

    >>> cw.sum([1e16, 1.0, -1e16], exact=True)
    np.float64(1.0)
    >>> cw.sum(np.full((2, 3), 0.1), axis=1)
    array([0.3, 0.3])
    """
    op = _EXACT if exact else _SUM
    if (axis is None or type(axis) is int) and dtype is None and not keepdims:
        found = _native.whole(op, a, axis, 0 if threads is None else threads_of(threads))
        if found is not None:
            return found
    return _reduced(op, a, axis, dtype, keepdims, threads)


def prod(
    a: npt.ArrayLike,
    axis: Axis = None,
    dtype: npt.DTypeLike | None = None,
    *,
    keepdims: bool = False,
    threads: int | None = None,
) -> Any:
    """Product of the elements; parameters, result types and reproducibility as of `sum`.

    Of no elements it is 1. Integers: modulo 2**64. Floats over- and underflow on the way, as any product does.

    >>> cw.prod([[1, 2], [3, 4]], axis=0)
    array([3, 8])
    """
    if (axis is None or type(axis) is int) and dtype is None and not keepdims:
        found = _native.whole(_PROD, a, axis, 0 if threads is None else threads_of(threads))
        if found is not None:
            return found
    return _reduced(_PROD, a, axis, dtype, keepdims, threads)


def min(a: npt.ArrayLike, axis: Axis = None, *, keepdims: bool = False, threads: int | None = None) -> Any:
    """Smallest element, of the elements' type. -0.0 is below 0.0; with a NaN among them it is the canonical NaN.

    Parameters as of `sum`. Of no elements it is an `InputError`.

    >>> cw.min(np.array([0.0, -0.0]))
    np.float64(-0.0)
    """
    if (axis is None or type(axis) is int) and not keepdims:
        found = _native.whole(_MIN, a, axis, 0 if threads is None else threads_of(threads))
        if found is not None:
            return found
    return _reduced(_MIN, a, axis, None, keepdims, threads)


def max(a: npt.ArrayLike, axis: Axis = None, *, keepdims: bool = False, threads: int | None = None) -> Any:
    """Largest element; as `min` in everything else.

    >>> cw.max(np.array([[1, 5], [7, 2]], np.int8), axis=1)
    array([5, 7], dtype=int8)
    """
    if (axis is None or type(axis) is int) and not keepdims:
        found = _native.whole(_MAX, a, axis, 0 if threads is None else threads_of(threads))
        if found is not None:
            return found
    return _reduced(_MAX, a, axis, None, keepdims, threads)


def argmin(
    a: npt.ArrayLike, axis: int | None = None, *, keepdims: bool = False, threads: int | None = None
) -> Any:
    """Index of the smallest element, the lowest if there are several; of the first NaN if there is one.

    `axis`: `None` (the index into the flattened array) or one number. Of no elements it is an `InputError`. -0.0 is
    below 0.0 here, which NumPy takes for equal.

    >>> cw.argmin([3, 1, 1])
    np.int64(1)
    """
    if (axis is None or type(axis) is int) and not keepdims:
        found = _native.whole(_ARGMIN, a, axis, 0 if threads is None else threads_of(threads))
        if found is not None:
            return found
    return _reduced(_ARGMIN, a, axis, None, keepdims, threads)


def argmax(
    a: npt.ArrayLike, axis: int | None = None, *, keepdims: bool = False, threads: int | None = None
) -> Any:
    """Index of the largest element; as `argmin` in everything else.

    >>> cw.argmax([[1, 9], [8, 2]], axis=0)
    array([1, 0])
    """
    if (axis is None or type(axis) is int) and not keepdims:
        found = _native.whole(_ARGMAX, a, axis, 0 if threads is None else threads_of(threads))
        if found is not None:
            return found
    return _reduced(_ARGMAX, a, axis, None, keepdims, threads)


def mean(
    a: npt.ArrayLike,
    axis: Axis = None,
    dtype: npt.DTypeLike | None = None,
    *,
    keepdims: bool = False,
    threads: int | None = None,
) -> Any:
    """Arithmetic mean: the sum before its final rounding, divided by the number of elements and rounded once.

    Parameters and reproducibility as of `sum`. Result: float32 for float16, bfloat16 and float32, else float64; of
    integers and bool it is the correctly rounded mean. Of no elements it is an `InputError`.

    >>> cw.mean(np.array([2**62, 2**62, 2**62]))
    np.float64(4.611686018427388e+18)
    """
    if (axis is None or type(axis) is int) and dtype is None and not keepdims:
        found = _native.whole(_MEAN, a, axis, 0 if threads is None else threads_of(threads))
        if found is not None:
            return found
    return _reduced(_MEAN, a, axis, dtype, keepdims, threads)


def norm(
    a: npt.ArrayLike,
    axis: Axis = None,
    dtype: npt.DTypeLike | None = None,
    *,
    keepdims: bool = False,
    threads: int | None = None,
) -> Any:
    """Euclidean norm, the root of the sum of squares, of all elements or along axes (a matrix: Frobenius norm).

    Parameters and reproducibility as of `sum`. Result: float32 for float16, bfloat16 and float32, else float64. Of no
    elements it is 0. Squares of float32 neither over- nor underflow; those of float64 do, from 1.4e154 and below
    1.5e-154.

    >>> cw.norm(np.array([3e30, 4e30], np.float32))
    np.float32(5e+30)
    """
    if (axis is None or type(axis) is int) and dtype is None and not keepdims:
        found = _native.whole(_NORM, a, axis, 0 if threads is None else threads_of(threads))
        if found is not None:
            return found
    return _reduced(_NORM, a, axis, dtype, keepdims, threads)


def dot(
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    axis: Axis = None,
    dtype: npt.DTypeLike | None = None,
    *,
    keepdims: bool = False,
    threads: int | None = None,
) -> Any:
    """Dot product of two arrays of one shape: of vectors, or, with `axis`, along axes (`numpy.vecdot`).

    It is no matrix product: arrays of more than one dimension need `axis`. Elements of different types are converted
    to their common type first. Each product is rounded (integers: modulo 2**64), then they are summed as by `sum`,
    whose parameters, result types and reproducibility hold. Shapes that differ are an `InputError`.

    >>> cw.dot([1, 2, 3], [4, 5, 6])
    np.int64(32)
    >>> cw.dot(np.ones((2, 3)), np.ones((2, 3)), axis=-1)
    array([3., 3.])
    """
    if axis is None and dtype is None and not keepdims and getattr(x, "ndim", 0) == 1:
        if getattr(y, "ndim", 0) == 1:
            found = _native.whole_dot(x, y, 0 if threads is None else threads_of(threads))
            if found is not None:
                return found
    views = _device.find_all("dot", x, y)
    if views is not None:
        return _on_device.dot(_DOT, views, axis, dtype, keepdims)
    left, right = as_array(x, "dot"), as_array(y, "dot")
    if left.shape != right.shape:
        raise InputError(f"dot of arrays of shapes {left.shape} and {right.shape}: they must be equal")
    if left.ndim > 1 and axis is None:
        raise InputError(
            "dot of arrays of more than one dimension needs axis=; for a matrix product use numpy.matmul"
        )
    common = np.result_type(left, right) if dtype is None else dtype
    left, right = converted(left, common, "dot"), converted(right, common, "dot")
    return _of_arrays(_DOT, [left, right], axis, dtype, keepdims, threads)


def _reduced(
    op: int, a: npt.ArrayLike, axis: Axis, dtype: npt.DTypeLike | None, keepdims: bool, threads: int | None
) -> Any:
    view = _device.find(a)
    if view is not None:
        threads_of(threads)
        return _on_device.reduce(op, _NAMES[op], [view], axis, dtype, keepdims)
    array = converted(as_array(a, _NAMES[op]), dtype, _NAMES[op])
    return _of_arrays(op, [array], axis, dtype, keepdims, threads)


def _result_type(op: int, dtype: np.dtype[Any]) -> np.dtype[Any]:
    if op in (_MIN, _MAX):
        return dtype.newbyteorder("=")
    if op in (_ARGMIN, _ARGMAX):
        return np.dtype(np.int64)
    if dtype.kind not in "biu":
        return np.dtype(np.float64 if dtype == np.float64 else np.float32)
    if op in (_MEAN, _NORM):
        return np.dtype(np.float64)
    return np.dtype(np.uint64 if dtype.kind == "u" else np.int64)


def _any_order(op: int, dtype: np.dtype[Any]) -> bool:
    """Whether the order of the elements is of no matter to the result."""
    if op in (_MIN, _MAX, _EXACT):
        return True
    return dtype.kind in "biu" and op not in (_ARGMIN, _ARGMAX)


def _of_arrays(
    op: int, arrays: list[Array], axis: Axis, dtype: npt.DTypeLike | None, keepdims: bool, threads: int | None
) -> Any:
    asked = threads_of(threads)
    element, shape, ndim = arrays[0].dtype, arrays[0].shape, arrays[0].ndim
    axes = axes_of(axis, ndim)
    if op in (_ARGMIN, _ARGMAX) and axis is not None and len(axes) != 1:
        raise InputError(f"{_NAMES[op]} takes one axis, not {axis}")
    kept = tuple(k for k in range(ndim) if k not in axes)
    out_shape = tuple(shape[k] for k in kept)
    output = np.empty(math.prod(out_shape), _result_type(op, element))
    words = output.view(np.uint16) if is_bf16(output.dtype) else output
    bf16 = is_bf16(element)
    # In which order the axes lie in memory, as far as that order is free: those kept are never exchanged among one
    # another, because the output has them in their order.
    if len(arrays) == 1 and not kept and _any_order(op, element):
        arrays = [arrays[0].ravel("K") if _dense(arrays[0]) else arrays[0]]
    if kept and axes and _columns_fit(axes, kept, arrays):
        # (outer, reduced, inner), as it lies in memory.
        inner = math.prod(shape[k] for k in kept if k > axes[-1])
        _native.columns(op, [prepared(a) for a in arrays], words, inner, asked, bf16)
    else:
        order = kept + axes
        moved = arrays if arrays[0].ndim != ndim else [a.transpose(order) for a in arrays]
        _native.rows(op, [prepared(a) for a in moved], words, asked, bf16)
    result = output if dtype is None else output.astype(dtype, copy=False)
    if keepdims:
        return result.reshape([1 if k in axes else shape[k] for k in range(ndim)])
    return result.reshape(out_shape)[()]


def _dense(array: Array) -> bool:
    """Whether the elements lie without gaps, in whatever order of the axes."""
    order = sorted(range(array.ndim), key=lambda k: -abs(array.strides[k]))
    moved = array.transpose(order)
    return bool(moved.flags.c_contiguous)


def _columns_fit(axes: tuple[int, ...], kept: tuple[int, ...], arrays: list[Array]) -> bool:
    """Whether the reduced axes are neighbours, others come behind them, and all arrays are C-contiguous."""
    neighbours = axes[-1] - axes[0] == len(axes) - 1
    return neighbours and kept[-1] > axes[-1] and all(a.flags.c_contiguous for a in arrays)
