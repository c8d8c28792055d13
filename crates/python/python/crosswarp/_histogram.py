"""Histograms and counts."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _device, _native, _on_device, _reduce
from ._arrays import Array, as_array, is_bf16, prepared, threads_of
from ._errors import DtypeError, InputError

__all__ = ["histogram", "bincount"]

_INT32 = np.iinfo(np.int32)
# What fits into memory beside other things.
_MOST_BINS = 1 << 28
# By how much neighbours of a type differ at most, relative to their size.
_RESOLUTIONS = {np.dtype(kind): float(np.finfo(kind).eps) for kind in (np.float16, np.float32, np.float64)}


def histogram(
    a: Any,
    bins: Any = 10,
    range: tuple[float, float] | None = None,
    density: bool = False,
    weights: Any = None,
    *,
    threads: int | None = None,
) -> tuple[Any, Any]:
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
    if type(bins) is int and type(range) is tuple and len(range) == 2 and weights is None and not density:
        found: tuple[Any, Any] | None = _native.histogram_of_tensor(a, bins, *range)
        if found is not None:
            return found
    view = _device.find(a)
    if view is not None:
        return _histogram_on_device(view, bins, range, density, weights)
    samples = as_array(a, "histogram").reshape(-1)
    if is_bf16(samples.dtype):
        samples = samples.astype(np.float32)
    weighed = _weights(weights, np.shape(a), "histogram")
    asked = threads_of(threads)
    if samples.dtype == bool:
        samples = samples.view(np.uint8)
    ends = functools.cache(lambda: (_reduce.min(samples, threads=threads), _reduce.max(samples, threads=threads)))
    even = _even_edges(samples.dtype, samples.size, ends, bins) if range is None else None
    edges = _edges(samples, samples.size, ends, bins, range, weighed) if even is None else even
    result = _count(samples, edges, ends, weighed, asked, finite=even is not None)
    if density:
        result = _densities(result, edges)
    return result, edges


def _even_edges(dtype: np.dtype[Any], size: int, ends: Callable[[], Any], bins: Any) -> Array | None:
    """What `numpy.histogram_bin_edges` finds between the smallest and the largest sample; `None` where it has to be asked.

    What it does besides takes longer than to count some thousand samples.
    """
    if type(bins) is not int or not 0 < bins <= _MOST_BINS or not size:
        return None
    low, high = ends()
    resolution = _RESOLUTIONS.get(dtype, _RESOLUTIONS[np.dtype(np.float64)])
    first, last = float(low), float(high)
    # Bins that are too narrow, infinities and NaN are refused.
    if not 4 * resolution * max(abs(first), abs(last)) < (last - first) / bins < np.inf:
        return None
    kind = np.result_type(low, high, dtype)
    return np.linspace(low, high, bins + 1, dtype=kind if kind.kind == "f" else np.float64)


def _edges(
    samples: Array,
    size: int,
    ends: Callable[[], Any],
    bins: Any,
    span: tuple[float, float] | None,
    weights: Array | None,
) -> Array:
    """The edges, from `ends`, the smallest and the largest sample, where these are enough."""
    sketch = samples
    if np.ndim(bins) == 0 and not isinstance(bins, str):
        if int(bins) > _MOST_BINS:
            raise InputError(f"{bins} bins: at most {_MOST_BINS} are possible")
        if span is None and size:
            # Edges depend on the extremes only, which are found faster here.
            sketch = np.array(ends(), samples.dtype)
        else:
            sketch = samples[:0]
    try:
        return np.asarray(np.histogram_bin_edges(sketch, bins, span, weights if sketch is samples else None))
    except (ValueError, TypeError) as error:
        raise InputError(str(error)) from None


def _count(
    samples: Array, edges: Array, ends: Callable[[], Any], weights: Array | None, asked: int, *, finite: bool
) -> Array:
    n = len(edges) - 1
    output = np.zeros(max(n, 0), np.int64 if weights is None else weights.dtype)
    if n < 1 or samples.size == 0:
        return output
    if edges.dtype.kind not in "biuf":
        raise DtypeError(f"edges are numbers, not {edges.dtype}")
    if not finite and np.isnan(edges).any():
        raise InputError("an edge is NaN")
    if edges[0] == edges[-1]:
        # Bins of no width: the last one has both its edges, so what is equal to them is in it.
        equal = samples == edges[0]
        output[-1:] = np.count_nonzero(equal) if weights is None else _reduce.sum(weights[equal], exact=True)
        return output
    if samples.dtype.kind in "iu":
        as_integers = _integer_edges(samples.dtype, ends, edges)
        if as_integers is not None:
            if samples.dtype not in (np.uint8, np.uint16, np.int32):
                samples = samples.astype(np.int32)
            _native.histogram(prepared(samples), as_integers, weights, output, asked)
            return output
    common = _common(samples.dtype, edges)
    samples, edges = samples.astype(common, copy=False), edges.astype(common, copy=False)
    _native.histogram(prepared(samples), prepared(edges), weights, output, asked)
    return output


def _common(dtype: np.dtype[Any], edges: Array) -> np.dtype[Any]:
    """The type in which floats, and large integers, are compared with edges."""
    common = np.result_type(dtype, edges)
    small = common.kind == "f" and common.itemsize <= 4
    return np.dtype(np.float32) if small else np.dtype(np.float64)


def _integer_edges(dtype: np.dtype[Any], ends: Callable[[], Any], edges: Array) -> Array | None:
    """Integers that divide samples of an integer type as `edges` do; `None` if there are none of 32 bits."""
    if dtype.itemsize > 4 or dtype == np.uint32:
        # Nothing is gained by a comparison that NumPy makes in float64 as well, unless all are small.
        low, high = ends()
        if low < _INT32.min or high > _INT32.max:
            return None
    if not (edges[0] >= _INT32.min and edges[-1] <= _INT32.max):
        return None
    found: Array = np.ceil(edges).astype(np.int64)
    found[-1] = np.floor(edges[-1])
    # An interval without an integer in it is not there among integers.
    return found if found[-1] > found[0] and found[-1] >= found[-2] else None


def _histogram_on_device(
    view: _device.View, bins: Any, span: tuple[float, float] | None, density: bool, weights: Any
) -> tuple[Any, Any]:
    samples, bins = _on_device.samples(view, "histogram"), _device.host_or_same(bins)
    if weights is None and not isinstance(bins, str):
        # Edges are of the samples' type, though float16 is counted as float32.
        dtype: np.dtype[Any] = np.dtype("float16" if view.dtype == "float16" else samples.dtype)
        found = functools.cache(lambda: _on_device.extremes(samples))
        edges = _edges(np.empty(0, dtype), samples.size, found, bins, span, None)
        prepared_edges = _edges_for(samples, dtype, found, edges)
        if prepared_edges is not None:
            kind, compared = prepared_edges
            counts = _on_device.count(_on_device.as_type(samples, kind), prepared(compared))
            if not density:
                found_edges = _device.from_host(edges, view)
                if type(bins) is int and type(span) is tuple and kind == view.dtype:
                    # The next time it is shorter.
                    kinds = (prepared(edges), found_edges.dtype, prepared(compared))
                    _native.keep_even_bins(view.array, bins, *span, *kinds)
                return counts, found_edges
            host = _device.to_host(_found(counts))
            return _device.from_host(_densities(host, edges), view), _device.from_host(edges, view)
    # What has no kernel, on the host.
    held = _device.to_host(view if view.dtype == "float16" else samples)
    counts, edges = histogram(held, bins, span, density, _device.host_or_same(weights))
    return _device.from_host(counts, view), _device.from_host(edges, view)


def _edges_for(
    samples: _device.View, dtype: np.dtype[Any], ends: Callable[[], Any], edges: Array
) -> tuple[str, Array] | None:
    """The type that samples on a GPU are compared with the edges in, and the edges for that; `None` if there is none."""
    if len(edges) < 2 or samples.size == 0 or edges.dtype.kind not in "biuf":
        return None
    if np.isnan(edges).any() or edges[0] == edges[-1]:
        return None
    if dtype.kind in "iu":
        as_integers = _integer_edges(dtype, ends, edges)
        if as_integers is not None:
            return (dtype.name if dtype in (np.uint8, np.uint16, np.int32) else "int32"), as_integers
    common = _common(dtype, edges)
    return common.name, edges.astype(common, copy=False)


def _found(x: Any) -> _device.View:
    view = _device.find(x)
    assert view is not None
    return view


def _densities(counts: Array, edges: Array) -> Array:
    with np.errstate(invalid="ignore"):
        found: Array = counts / np.diff(edges.astype(np.float64)) / _reduce.sum(counts)
    return found


def bincount(
    x: Any, weights: Any = None, minlength: int = 0, *, threads: int | None = None
) -> Any:
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
        if found is None:
            found = _native.bincount_of_tensor(x, minlength)
        if found is not None:
            return found
    view = _device.find(x)
    if view is not None:
        return _bincount_on_device(view, weights, minlength)
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


def _bincount_on_device(view: _device.View, weights: Any, minlength: int) -> Any:
    if view.dtype not in _device.NUMBERS or "float" in view.dtype:
        raise DtypeError(f"bincount takes integers, not {view.dtype}")
    if len(view.shape) != 1:
        raise InputError(f"bincount takes a vector, not an array of {len(view.shape)} dimensions")
    if minlength < 0:
        raise InputError(f"minlength is {minlength}: it must not be negative")
    values = _on_device.samples(view, "bincount")
    if weights is not None or values.size == 0:
        # Weights have no kernel.
        counts = bincount(_device.to_host(values), _device.host_or_same(weights), minlength)
        return _device.from_host(counts, view)
    low, high = (int(end) for end in _on_device.extremes(values))
    if low < 0:
        raise InputError(f"bincount takes no negative numbers, and there is {low}")
    bins = max(minlength, high + 1)
    if bins > _MOST_BINS:
        raise InputError(f"{bins} counts: at most {_MOST_BINS} are possible")
    kind = values.dtype if values.dtype in ("uint8", "uint16", "int32") else "int32"
    return _on_device.count(_on_device.as_type(values, kind), np.array([0, bins]), values=True)


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
