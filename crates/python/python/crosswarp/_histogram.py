"""Histograms and counts."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from . import _native
from . import _reduce
from ._arrays import Array, as_array, is_bf16, prepared, threads_of
from ._errors import DtypeError, InputError

__all__ = ["histogram", "bincount"]

_INT32 = np.iinfo(np.int32)
# What fits into memory beside other things.
_MOST_BINS = 1 << 28


def histogram(
    a: npt.ArrayLike,
    bins: int | str | npt.ArrayLike = 10,
    range: tuple[float, float] | None = None,
    density: bool = False,
    weights: npt.ArrayLike | None = None,
    *,
    threads: int | None = None,
) -> tuple[Array, Array]:
    """How many samples are in each bin, and the bins' edges, by NumPy's conventions.

    Bin k holds the samples x with edge k <= x < edge k + 1, the last one also those that are its upper edge. A NaN is in
    no bin. `bins`: a number of even bins over `range` (by default from the smallest to the largest sample), a rule's
    name (`numpy.histogram_bin_edges`), or the ascending edges. What decides is the comparison with the edges returned.

    Samples: bool, all integers, float16, float32, float64. `weights`: an array of `a`'s shape. Weights of integers are
    added modulo 2**64, those of floats exactly, and rounded once: so the order of the samples does not matter.

    Result: counts are int64; sums of weights int64 or uint64 for integers, float32 or float64 for floats. With
    `density` they are divided by their sum and the bins' widths.

    >>> counts, edges = cw.histogram([0, 1, 2, 3], bins=3)
    >>> counts, edges
    (array([1, 1, 2]), array([0., 1., 2., 3.]))
    """
    samples = as_array(a, "histogram").reshape(-1)
    if is_bf16(samples.dtype):
        samples = samples.astype(np.float32)
    weighed = _weights(weights, np.shape(a), "histogram")
    asked = threads_of(threads)
    if samples.dtype == bool:
        samples = samples.view(np.uint8)
    edges = _edges(samples, bins, range, weighed, threads)
    result = _count(samples, edges, weighed, asked)
    if density:
        with np.errstate(invalid="ignore"):
            result = result / np.diff(edges.astype(np.float64)) / _reduce.sum(result)
    return result, edges


def _edges(
    samples: Array,
    bins: Any,
    span: tuple[float, float] | None,
    weights: Array | None,
    threads: int | None,
) -> Array:
    sketch = samples
    if np.ndim(bins) == 0 and not isinstance(bins, str):
        if int(bins) > _MOST_BINS:
            raise InputError(f"{bins} bins: at most {_MOST_BINS} are possible")
        if span is None and samples.size:
            # Edges depend on the extremes only, which are found faster here.
            ends = [_reduce.min(samples, threads=threads), _reduce.max(samples, threads=threads)]
            sketch = np.array(ends, samples.dtype)
        else:
            sketch = samples[:0]
    try:
        return np.asarray(np.histogram_bin_edges(sketch, bins, span, weights if sketch is samples else None))
    except (ValueError, TypeError) as error:
        raise InputError(str(error)) from None


def _count(samples: Array, edges: Array, weights: Array | None, asked: int) -> Array:
    n = len(edges) - 1
    output = np.zeros(max(n, 0), np.int64 if weights is None else weights.dtype)
    if n < 1 or samples.size == 0:
        return output
    if edges.dtype.kind not in "biuf":
        raise DtypeError(f"edges are numbers, not {edges.dtype}")
    if np.isnan(edges).any():
        raise InputError("an edge is NaN")
    if edges[0] == edges[-1]:
        # Bins of no width: the last one has both its edges, so what is equal to them is in it.
        equal = samples == edges[0]
        output[-1:] = np.count_nonzero(equal) if weights is None else _reduce.sum(weights[equal], exact=True)
        return output
    if samples.dtype.kind in "iu":
        as_integers = _integer_edges(samples, edges)
        if as_integers is not None:
            if samples.dtype not in (np.uint8, np.uint16, np.int32):
                samples = samples.astype(np.int32)
            _native.histogram(prepared(samples), as_integers, weights, output, asked)
            return output
    common = np.result_type(samples, edges)
    if common.kind != "f":
        common = np.dtype(np.float64)
    common = np.dtype(np.float32) if common.itemsize <= 4 else np.dtype(np.float64)
    samples, edges = samples.astype(common, copy=False), edges.astype(common, copy=False)
    _native.histogram(prepared(samples), prepared(edges), weights, output, asked)
    return output


def _integer_edges(samples: Array, edges: Array) -> Array | None:
    """Integers that divide the samples as `edges` do; `None` if there are none of 32 bits."""
    if samples.dtype.itemsize > 4 or samples.dtype == np.uint32:
        # Nothing is gained by a comparison that NumPy makes in float64 as well, unless all are small.
        low, high = _reduce.min(samples), _reduce.max(samples)
        if low < _INT32.min or high > _INT32.max:
            return None
    if not (edges[0] >= _INT32.min and edges[-1] <= _INT32.max):
        return None
    found: Array = np.ceil(edges).astype(np.int64)
    found[-1] = np.floor(edges[-1])
    # An interval without an integer in it is not there among integers.
    return found if found[-1] > found[0] and found[-1] >= found[-2] else None


def bincount(
    x: npt.ArrayLike, weights: npt.ArrayLike | None = None, minlength: int = 0, *, threads: int | None = None
) -> Array:
    """How often each of 0, 1, 2, … is in `x`, an array of integers that are not negative.

    The result has an element for each number up to the largest, and at least `minlength`. `weights` and their results
    are those of `histogram`.

    >>> cw.bincount([0, 1, 1, 3])
    array([1, 2, 0, 1])
    >>> cw.bincount([0, 1, 1], weights=[0.5, 1e16, -1e16])
    array([0.5, 0. ])
    """
    if weights is None and threads is None and type(minlength) is int and minlength >= 0:
        found: Array | None = _native.bincount_of_few(x, minlength)
        if found is not None:
            return found
    values = as_array(x, "bincount")
    if values.size == 0 and not isinstance(x, np.ndarray):
        values = values.astype(np.int64)
    if values.dtype.kind not in "biu":
        raise DtypeError(f"bincount takes integers, not {values.dtype}")
    if values.ndim != 1:
        raise InputError(f"bincount takes a vector, not an array of {values.ndim} dimensions")
    if minlength < 0:
        raise InputError(f"minlength is {minlength}: it must not be negative")
    weighed = _weights(weights, values.shape, "bincount")
    bins = minlength
    if values.size:
        if values.dtype.kind == "i" and (least := _reduce.min(values, threads=threads)) < 0:
            raise InputError(f"bincount takes no negative numbers, and there is {least}")
        bins = max(bins, int(_reduce.max(values, threads=threads)) + 1)
    if bins > _MOST_BINS:
        raise InputError(f"{bins} counts: at most {_MOST_BINS} are possible")
    output = np.zeros(bins, np.int64 if weighed is None else weighed.dtype)
    if values.size:
        if values.dtype == bool:
            values = values.view(np.uint8)
        _native.bincount(prepared(values), weighed, output, threads_of(threads))
    return output


def _weights(weights: npt.ArrayLike | None, shape: tuple[int, ...], function: str) -> Array | None:
    """Weights as 64-bit integers or as floats, flat."""
    if weights is None:
        return None
    array = as_array(weights, function)
    if array.shape != shape:
        raise InputError(f"{function} has weights of shape {array.shape} for values of shape {shape}")
    kind = array.dtype.kind
    if kind in "bi":
        array = array.astype(np.int64, copy=False)
    elif kind == "u":
        array = array.astype(np.uint64, copy=False)
    elif array.dtype != np.float64:
        array = array.astype(np.float32, copy=False)
    return prepared(array.reshape(-1))
