"""Laplace's and Poisson's equation."""

from __future__ import annotations

import dataclasses
import warnings
from typing import Any, Callable

import numpy as np
import numpy.typing as npt

from . import _native
from ._arrays import Array, as_array, prepared, threads_of
from ._bits import sha256
from ._errors import ConvergenceWarning, DtypeError, InputError

__all__ = ["solve", "poisson", "fill", "Result"]

Side = npt.ArrayLike | str
Progress = Callable[[int, float], object]


@dataclasses.dataclass(eq=False)
class Result:
    """What a solve has found.

    >>> found = cw.solve((33, 33), top=1.0, tolerance=1e-12)
    >>> found.converged, bool(abs(found.field[16, 16] - 0.25) < 1e-9)
    (True, True)
    """

    field: Array = dataclasses.field(repr=False)
    """The solution, one value a point."""
    history: npt.NDArray[np.float64] = dataclasses.field(repr=False)
    """The change of each sweep: the norm of new minus old."""
    sweeps: int
    """Sweeps done."""
    change: float
    """The change of the last sweep. It is not the error, which may be larger by the number of sweeps."""
    tolerance: float
    """The change at which the solve was to stop."""
    converged: bool
    """Whether it stopped there."""
    seconds: float
    """Time of the sweeps."""
    method: str
    """How it was solved."""

    def sha256(self) -> str:
        """The hash of the field, which `crosswarp solve` prints, too."""
        return sha256(self.field)

    def plot(self, axes: Any = None) -> Any:
        """Draws the field, a curve or a picture, with matplotlib; returns the axes."""
        try:
            import matplotlib.pyplot as plt
        except ImportError:
            raise ImportError("Result.plot draws with matplotlib, which is not installed") from None
        if axes is None:
            axes = plt.figure().add_subplot()
        if self.field.ndim == 1:
            axes.plot(self.field)
        else:
            axes.figure.colorbar(axes.imshow(self.field))
        state = "converged" if self.converged else "not converged"
        axes.set_title(f"{self.sweeps} sweeps, {state}")
        return axes

    def _repr_html_(self) -> str:
        rows = {
            "shape": " × ".join(map(str, self.field.shape)),
            "type": str(self.field.dtype),
            "method": self.method,
            "sweeps": f"{self.sweeps:,}",
            "change of the last sweep": f"{self.change:.3g} (tolerance {self.tolerance:g})",
            "converged": "yes" if self.converged else "no",
            "time": f"{self.seconds:.3g} s",
        }
        cells = "".join(f"<tr><th>{name}</th><td>{value}</td></tr>" for name, value in rows.items())
        return f"<table>{cells}</table>"


def solve(
    shape: int | tuple[int, int] | tuple[int],
    *,
    left: Side = 0.0,
    right: Side = 0.0,
    top: Side = 0.0,
    bottom: Side = 0.0,
    initial: npt.ArrayLike | None = None,
    fixed: npt.ArrayLike | None = None,
    source: npt.ArrayLike | None = None,
    spacing: float = 1.0,
    dtype: npt.DTypeLike = np.float64,
    tolerance: float | None = None,
    max_sweeps: int = 1_000_000,
    norm: str = "rms",
    method: str = "jacobi",
    sweeps_per_pass: int | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Result:
    """Solves Laplace's equation, or with `source` Poisson's, on a grid of points, whose outermost ring is the boundary.

    `shape`: a number of points, for a line, or (rows, columns). `left`, `right`, `top`, `bottom`: a value, or one for
    each point of that side (of a line, `left` and `right`: its ends), or "periodic", for opposite sides together; at a
    corner left and right win. `initial`: the field before the first sweep. `fixed`: true where a cell keeps its
    initial value. `source`: f in (∂²/∂x² + ∂²/∂y²) u = f; `spacing`: the distance of two points. `dtype`: float64 or
    float32.

    Sweeps are made until the change of one (its `norm`: "rms", or "l2", which does not divide by the number of points)
    is at most `tolerance` (1e-7, for a line 1e-4), or `max_sweeps` are done, which is a `ConvergenceWarning`. `method`
    can be "jacobi". `progress(sweeps, change)` is called now and then; what it raises ends the solve.

    The field, the number of sweeps and the history have the same bits for any number of `threads`, and as
    `crosswarp solve` has them. Ctrl-C ends a solve at the end of a pass.

    Values that are not finite, shapes that do not fit and the like are an `InputError`.

    >>> cw.solve(5, left=0.0, right=4.0, tolerance=1e-12).field.round(6)
    array([0., 1., 2., 3., 4.])
    """
    how = _how(tolerance, max_sweeps, norm, method, sweeps_per_pass, threads, progress)
    kind = _real(dtype)
    sizes = (shape,) if isinstance(shape, (int, np.integer)) else tuple(shape)
    if len(sizes) not in (1, 2) or any(size < 3 for size in sizes):
        raise InputError(f"a shape of {shape}: one or two sizes of at least 3 are needed")
    if len(sizes) == 1:
        given = {"top": top, "bottom": bottom, "initial": initial, "fixed": fixed, "source": source}
        wrong = [name for name, value in given.items() if value is not None and not np.array_equal(value, 0.0)]
        if wrong:
            raise InputError(f"a line has no {' and no '.join(wrong)}")
        field = _empty(sizes, kind)
        how["tolerance"] = 1e-4 if tolerance is None else float(tolerance)
        said = _native.line(_end("left", left), _end("right", right), how, field)
        return _result(said, field, how, method)
    ny, nx = (int(size) for size in sizes)
    problem = {
        "left": _side("left", left, ny, kind),
        "right": _side("right", right, ny, kind),
        "top": _side("top", top, nx, kind),
        "bottom": _side("bottom", bottom, nx, kind),
        "initial": _plane("initial", initial, (ny, nx), kind),
        "fixed": _mask("fixed", fixed, (ny, nx)),
        "source": _plane("source", source, (ny, nx), kind),
        "spacing": float(spacing),
    }
    field = _empty((ny, nx), kind)
    return _result(_native.plane(nx, problem, how, field), field, how, method)


def poisson(source: npt.ArrayLike, **options: Any) -> Result:
    """Solves Poisson's equation (∂²/∂x² + ∂²/∂y²) u = `source` on the grid that `source` has a value for each point of.

    Its type is the field's (float64, unless it is float32). All other options are those of `solve`.

    >>> n, x = 65, np.linspace(0, 1, 65)
    >>> f = -2 * np.pi**2 * np.outer(np.sin(np.pi * x), np.sin(np.pi * x))
    >>> u = cw.poisson(f, spacing=1 / 64, tolerance=1e-9).field
    >>> bool(abs(u[32, 32] - 1) < 1e-3)
    True
    """
    values = as_array(source, "poisson")
    if values.ndim != 2:
        raise InputError(f"poisson takes a source of two dimensions, not {values.ndim}")
    options.setdefault("dtype", np.float32 if values.dtype == np.float32 else np.float64)
    return solve(values.shape, source=values, **options)


def fill(
    dem: npt.ArrayLike,
    known: npt.ArrayLike | None = None,
    *,
    tolerance: float = 1e-4,
    max_sweeps: int = 1_000_000,
    norm: str = "rms",
    method: str = "jacobi",
    sweeps_per_pass: int | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Result:
    """Fills the voids of a grid, an elevation model for example: Laplace's equation from their rims inwards.

    `dem`: a matrix; float32 stays so, everything else becomes float64. `known`: true where its values are to be kept;
    without it, voids are where `dem` is NaN. Unknown cells on the rim of the grid are set first, linearly along the rim.
    The other options, bits and errors are those of `solve`; no known cell on the rim is an `InputError`.

    >>> dem = np.add.outer(np.arange(5.0), np.arange(5.0))
    >>> dem[2, 2] = np.nan
    >>> cw.fill(dem).field[2]
    array([2., 3., 4., 5., 6.])
    """
    how = _how(tolerance, max_sweeps, norm, method, sweeps_per_pass, threads, progress)
    values = as_array(dem, "fill")
    if values.ndim != 2:
        raise InputError(f"fill takes a grid of two dimensions, not {values.ndim}")
    values = values.astype(np.float32 if values.dtype == np.float32 else np.float64, copy=False)
    mask = _mask("known", ~np.isnan(values) if known is None else known, values.shape)
    field = _empty(values.shape, values.dtype)
    said = _native.fill(values.shape[1], prepared(values), mask, how, field)
    return _result(said, field, how, method)


def _how(
    tolerance: float | None,
    max_sweeps: int,
    norm: str,
    method: str,
    sweeps_per_pass: int | None,
    threads: int | None,
    progress: Progress | None,
) -> dict[str, Any]:
    if method != "jacobi":
        raise InputError(f"there is no method {method!r}; there is 'jacobi'")
    if norm not in ("rms", "l2"):
        raise InputError(f"there is no norm {norm!r}; there are 'rms' and 'l2'")
    if max_sweeps < 1:
        raise InputError(f"max_sweeps is {max_sweeps}: at least one must be allowed")
    if sweeps_per_pass is not None and sweeps_per_pass < 1:
        raise InputError(f"sweeps_per_pass is {sweeps_per_pass}: a pass has at least one")
    return {
        "tolerance": 1e-7 if tolerance is None else float(tolerance),
        "max_sweeps": int(max_sweeps),
        "sweeps_per_pass": sweeps_per_pass,
        "l2": norm == "l2",
        "threads": threads_of(threads),
        "progress": progress,
    }


def _real(dtype: npt.DTypeLike) -> np.dtype[Any]:
    kind: np.dtype[Any] = np.dtype(dtype)
    if kind not in (np.float32, np.float64):
        raise DtypeError(f"fields are of float32 or float64, not {kind}")
    return kind


def _empty(shape: tuple[int, ...], kind: np.dtype[Any]) -> Array:
    return np.empty(shape, kind)


def _end(name: str, value: Side) -> float:
    if isinstance(value, str) or np.ndim(value) != 0:
        raise InputError(f"the {name} end of a line is one value")
    return float(np.asarray(value))


def _side(name: str, value: Side, length: int, kind: np.dtype[Any]) -> Array | None:
    if isinstance(value, str):
        if value != "periodic":
            raise InputError(f"the {name} side is {value!r}: values or 'periodic' are possible")
        return None
    values = as_array(value, "solve")
    if values.ndim > 1 or values.ndim == 1 and values.shape != (length,):
        raise InputError(f"the {name} side has values of shape {values.shape}, and {length} points")
    return prepared(np.broadcast_to(values.astype(kind, copy=False), length))


def _plane(name: str, value: npt.ArrayLike | None, shape: tuple[int, int], kind: np.dtype[Any]) -> Array | None:
    if value is None:
        return None
    values = as_array(value, "solve").astype(kind, copy=False)
    if values.shape not in ((), shape):
        raise InputError(f"{name} is of shape {values.shape}, the grid of {shape}")
    return prepared(np.broadcast_to(values, shape))


def _mask(name: str, value: npt.ArrayLike | None, shape: tuple[int, ...]) -> Array | None:
    if value is None:
        return None
    mask = np.asarray(value).astype(bool, copy=False)
    if mask.shape != shape:
        raise InputError(f"{name} is of shape {mask.shape}, the grid of {shape}")
    return prepared(mask).view(np.uint8)


def _result(said: dict[str, Any], field: Array, how: dict[str, Any], method: str) -> Result:
    history = said["history"]
    found = Result(
        field=field,
        history=history,
        sweeps=said["sweeps"],
        change=float(history[-1]),
        tolerance=how["tolerance"],
        converged=said["converged"],
        seconds=said["seconds"],
        method=method,
    )
    if not found.converged:
        warnings.warn(
            f"after {found.sweeps} sweeps the change is {found.change:.3g}, above the tolerance of "
            f"{found.tolerance:g}: the field is not the solution yet",
            ConvergenceWarning,
            stacklevel=3,
        )
    return found
