"""Laplace's and Poisson's equation."""

from __future__ import annotations

import dataclasses
import math
import warnings
from collections.abc import Mapping
from typing import Any, Callable

import numpy as np
import numpy.typing as npt

from . import _device, _native
from ._arrays import Array, as_array, prepared, threads_of
from ._bits import sha256
from ._errors import ConvergenceWarning, DtypeError, InputError

__all__ = ["solve", "poisson", "fill", "Hierarchy", "Result"]

Side = (
    npt.ArrayLike
    | str
    | tuple[str, npt.ArrayLike]
    | tuple[str, npt.ArrayLike, npt.ArrayLike, npt.ArrayLike]
)
"""Values, "periodic", "neumann", ("neumann", derivatives outwards), or ("robin", a, b, g)."""
Progress = Callable[[int, float], object]

_RELATIVE_RESIDUAL, _MAX_CYCLES, _MAX_SWEEPS = 1e-8, 100, 1_000_000
# A solution that is so many tolerances away is worth a warning.
_MUCH = 10.0


@dataclasses.dataclass(eq=False)
class Result:
    """What a solve has found.

    >>> found = cw.solve((33, 33), top=1.0)
    >>> found.method, found.converged, bool(abs(found.field[16, 16] - 0.25) < 1e-9)
    ('mg', True, True)
    """

    field: Any = dataclasses.field(repr=False)
    """The solution, one value a point; an array on a GPU if the arguments were."""
    history: npt.NDArray[np.float64] = dataclasses.field(repr=False)
    """By Jacobi, the change of each sweep: the norm of new minus old. Else each cycle's relative residual."""
    method: str
    """How it was solved: "jacobi", "mg", "mgcg", "cg" or "chebyshev"."""
    converged: bool
    """Whether the change, or the relative residual, came down to `tolerance`."""
    tolerance: float
    """The change, or the relative residual, at which the solve was to stop."""
    sweeps: int | None
    """Sweeps, or steps of "cg" and "chebyshev", done; of multigrid `None`."""
    cycles: int | None
    """Cycles done; of other methods than multigrid `None`."""
    change: float | None
    """The change of the last sweep; of multigrid `None`. It is not the error, which can be larger by the number of
    sweeps."""
    remaining_error_estimate: float | None
    """By Jacobi, about how far the solution still is, or more, in the norm of the changes; else, or if it cannot be
    told, `None`."""
    relative_residual: float | None
    """The last residual, relative to that of the first guess; of Jacobi `None`."""
    convergence_factor: float | None
    """By what the last cycles multiplied the residual; `None` without any, and of Jacobi."""
    levels: int | None
    """Levels of multigrid; of Jacobi `None`."""
    floor_reached: bool
    """Whether the residual is above `tolerance`, and as small as rounding allows."""
    floor: float | None
    """What rounding of the field alone leaves of the relative residual: a `tolerance` of twice that can be kept, a smaller
    one perhaps. Of Jacobi, and where nothing was to be solved, `None`."""
    projected: float | None
    """With `project_source`, what was taken away from the source: what was left of sources and derivatives, relative to
    the sum of their sizes. `None` where they cancelled."""
    seconds: float
    """Time of the sweeps, or of the cycles with what they need."""

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
        field = _device.host_or_same(self.field)
        if field.ndim == 1:
            axes.plot(field)
        else:
            # Of a box its middle plane.
            plane = field if field.ndim == 2 else field[field.shape[0] // 2]
            axes.figure.colorbar(axes.imshow(plane))
        state = "converged" if self.converged else "not converged"
        axes.set_title(f"{self._steps()}, {state}")
        return axes

    def _steps(self) -> str:
        if self.cycles is None:
            return f"{self.sweeps:,} sweeps"
        return f"{self.cycles} cycle{'s' * (self.cycles != 1)}"

    def _repr_html_(self) -> str:
        rows = {
            "shape": " × ".join(map(str, self.field.shape)),
            "type": str(self.field.dtype),
            "method": f"{self.method}, {self._steps()}" + (f" of {self.levels} levels" if self.levels else ""),
            "converged": "yes" if self.converged else "no",
            "time": f"{self.seconds:.3g} s",
        }
        if self.change is not None:
            rows["change of the last sweep"] = f"{self.change:.3g} (tolerance {self.tolerance:g})"
        if self.remaining_error_estimate is not None:
            rows["to the solution, about"] = f"{self.remaining_error_estimate:.2g}, or more"
        if self.relative_residual is not None:
            rows["relative residual"] = f"{self.relative_residual:.2e} (limit {self.tolerance:g})"
        if self.floor_reached:
            rows["rounding"] = "allows no smaller residual"
        cells = "".join(f"<tr><th>{name}</th><td>{value}</td></tr>" for name, value in rows.items())
        return f"<table>{cells}</table>"


def solve(
    shape: int | tuple[int, ...],
    *,
    sides: Side | Mapping[str, Side] | None = None,
    left: Side | None = None,
    right: Side | None = None,
    top: Side | None = None,
    bottom: Side | None = None,
    front: Side | None = None,
    back: Side | None = None,
    initial: npt.ArrayLike | None = None,
    fixed: npt.ArrayLike | None = None,
    source: npt.ArrayLike | None = None,
    coefficient: npt.ArrayLike | None = None,
    reaction: npt.ArrayLike | None = None,
    project_source: bool = False,
    spacing: float | tuple[float, ...] = 1.0,
    dtype: npt.DTypeLike = np.float64,
    method: str = "auto",
    relative_tolerance: float | None = None,
    max_cycles: int | None = None,
    smooth: tuple[int, int] | None = None,
    tolerance: float | None = None,
    max_sweeps: int | None = None,
    norm: str | None = None,
    sweeps_per_pass: int | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Result:
    """Solves Laplace's equation, or with `source` Poisson's, on a grid of points, whose outermost ring is the boundary.

    `shape`: a number of points, for a line, (rows, columns), or (planes, rows, columns) for a box. `left`, `right`,
    `top`, `bottom`: a value, or one for each point of that side (of a line, `left` and `right`: its ends); "periodic",
    for opposite sides together; ("neumann", g), the derivative outwards, one or one for each point ("neumann" alone: 0);
    or ("robin", a, b, g), a·u plus b times the derivative outwards is g, each one or one for each point, b not 0 and a/b
    not negative. Sides not said are 0. At a corner left and right win. `sides`: one for all four, or a mapping from
    their names. Without any fixed value sources and derivatives must cancel, and the field has mean 0; with
    `project_source` what is left of them is taken away from the source, the same everywhere. `initial`: the
    field to begin with. `fixed`: true where a cell keeps its initial value. `source`: f in (∂²/∂x² + ∂²/∂y²) u = f, or
    with `coefficient` κ, positive, and `reaction` c, not negative, in ∇·(κ∇u) − cu = f; κ between two points is the mean
    of theirs. `spacing`: the distance of two points, or of columns and of rows. `dtype`: float64 or float32.

    A box has a `front`, plane 0, and a `back`, too; values of its sides have the shape (planes, rows) on the left and
    right, (planes, columns) at the top and bottom, else (rows, columns), derivatives are one number, `spacing` may be
    three (of columns, rows and planes), and the method is not "jacobi".

    `method`: "mg", multigrid cycles, until the residual, relative to that of the initial field, is at most
    `relative_tolerance` (1e-8), or as small as rounding allows, or `max_cycles` (100) are done; `smooth` (2, 2) are the
    relaxations before and after a level's correction. "mgcg": conjugate gradients with such a cycle in each step.
    "cg", conjugate gradients alone, and "chebyshev", Chebyshev's iteration: planes and boxes, until the same, or `max_sweeps`.
    "jacobi": sweeps, until the change of one (its `norm`: "rms", or "l2", which does not divide by the number of
    points) is at most `tolerance` (1e-7, for a line 1e-4), or `max_sweeps` (a million) are done; only fixed and periodic
    sides, one `spacing`, no `coefficient` and no `reaction`. "auto": Jacobi for a line, and where `tolerance`, `max_sweeps`,
    `norm` or `sweeps_per_pass` is given, else multigrid. What is not there yet, or, by Jacobi, is far from the solution, is a
    `ConvergenceWarning`. `progress(steps, norm)` is called now and then, with
    the sweeps or cycles done and the last one's norm; what it raises ends the solve.

    The field, the number of steps and the history have the same bits for any number of `threads`, and as
    `crosswarp solve` has them. Ctrl-C ends the call within 0.2 s.

    Values that are not finite, shapes that do not fit and the like are an `InputError`.

    >>> cw.solve(5, left=0.0, right=4.0, tolerance=1e-12).field.round(6)
    array([0., 1., 2., 3., 4.])
    >>> cw.solve((5, 5), sides={"left": 1.0, "right": 3.0, "top": "neumann", "bottom": "neumann"}).field[0].round(6)
    array([1. , 1.5, 2. , 2.5, 3. ])
    """
    kind = _real(dtype)
    like = _lying_on_gpu("solve", (initial, fixed, source, coefficient, reaction))
    sizes = (shape,) if isinstance(shape, (int, np.integer)) else tuple(shape)
    if len(sizes) not in (1, 2, 3) or any(size < 3 for size in sizes):
        raise InputError(f"a shape of {shape}: one, two or three sizes of at least 3 are needed")
    box = {"front": front, "back": back}
    named = {"left": left, "right": right, "top": top, "bottom": bottom, **(box if len(sizes) == 3 else {})}
    for name, value in box.items():
        if name not in named and value is not None:
            raise InputError(f"a shape of {shape} has no {name}: three sizes have one")
    given = _sides(sides, named)
    line = len(sizes) == 1
    how = _how(
        line, method, relative_tolerance, max_cycles, smooth, tolerance, max_sweeps, norm, sweeps_per_pass, threads,
        progress, gpu=None if like is None else like.device, project_source=project_source,
    )  # fmt: skip
    stated = relative_tolerance is not None
    if like is not None:
        arrays = {
            "source": source, "initial": initial, "fixed": fixed, "coefficient": coefficient, "reaction": reaction,
        }  # fmt: skip
        if how["method"] in ("auto", "mg") and not line:
            grid, there = tuple(int(size) for size in sizes), dict(arrays)
            by = _plane_on_device if len(grid) == 2 else _box_on_device
            run = by(grid, given, there, spacing, kind, how)
            solved = None if run is None else _on_device(run, grid, there, like, kind)
            if solved is not None:
                return _result(*solved, how, stated)
        source, initial, fixed, coefficient, reaction = (_device.host_or_same(array) for array in arrays.values())
    varying = {"coefficient": coefficient, "reaction": reaction}
    if line:
        others = {**given, "initial": initial, "fixed": fixed, "source": source, **varying}
        wrong = [name for name, value in others.items() if name not in ("left", "right") and value is not None]
        if wrong:
            raise InputError(f"a line has no {' and no '.join(wrong)}")
        if tolerance is None:
            how["tolerance"] = 1e-4
        field = _empty(sizes, kind)
        said = _native.line(_end("left", given["left"]), _end("right", given["right"]), how, field)
        return _result(said, field, how, True)
    if len(sizes) == 3:
        if how["method"] == "jacobi":
            raise InputError("a box is not solved by Jacobi sweeps: 'mg', 'mgcg', 'cg' and 'chebyshev' are possible")
        nz, ny, nx = (int(size) for size in sizes)
        in_box = _box((nz, ny, nx), given, initial, fixed, source, coefficient, reaction, spacing, kind)
        field = _empty((nz, ny, nx), kind)
        return _result(_native.space(in_box, how, field), field, how, stated, like)
    ny, nx = (int(size) for size in sizes)
    problem = _problem((ny, nx), given, initial, fixed, source, coefficient, reaction, spacing, kind)
    field = _empty((ny, nx), kind)
    return _result(_native.plane(nx, problem, how, field), field, how, stated, like)


def poisson(source: npt.ArrayLike, **options: Any) -> Result:
    """Solves Poisson's equation, the sum of second derivatives = `source`, on the grid that `source` has a value for each
    point of: a plane, or a box of (planes, rows, columns).

    Its type is the field's (float64, unless it is float32). All other options are those of `solve`.

    >>> n, x = 65, np.linspace(0, 1, 65)
    >>> f = -2 * np.pi**2 * np.outer(np.sin(np.pi * x), np.sin(np.pi * x))
    >>> u = cw.poisson(f, spacing=1 / 64).field
    >>> bool(abs(u[32, 32] - 1) < 1e-3)
    True
    """
    view = _device.find(source)
    values: Any = as_array(source, "poisson") if view is None else view
    if len(values.shape) not in (2, 3):
        raise InputError(f"poisson takes a source of two or three dimensions, not {len(values.shape)}")
    options.setdefault("dtype", np.float32 if str(values.dtype) == "float32" else np.float64)
    return solve(values.shape, source=source, **options)


def fill(
    dem: npt.ArrayLike,
    known: npt.ArrayLike | None = None,
    *,
    nodata: float | None = None,
    rim: str | None = None,
    method: str = "auto",
    relative_tolerance: float | None = None,
    max_cycles: int | None = None,
    smooth: tuple[int, int] | None = None,
    tolerance: float | None = None,
    max_sweeps: int | None = None,
    norm: str | None = None,
    sweeps_per_pass: int | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Result:
    """Fills the voids of a grid, an elevation model for example: Laplace's equation from their rims inwards.

    `dem`: a matrix; float32 stays so, everything else becomes float64. `known`: true where its values are to be kept;
    without it, voids are where `dem` is NaN. Cells that hold `nodata`, and those that a masked array masks, are voids, too.
    `rim`: "natural", unknown cells on the rim of the grid are solved as all others, with no flow across the rim; or
    "interpolated", they are set first, linearly along the rim, which is all that Jacobi has. The other options, bits and
    errors are those of `solve` (the `tolerance` of Jacobi is 1e-4 if it is not given). No known cell is an `InputError`.

    >>> dem = np.add.outer(np.arange(5.0), np.arange(5.0))
    >>> dem[2, 2] = np.nan
    >>> cw.fill(dem).field[2]
    array([2., 3., 4., 5., 6.])
    """
    like = _lying_on_gpu("fill", (dem, known))
    if rim not in (None, "natural", "interpolated"):
        raise InputError(f"there is no rim {rim!r}; there are 'natural' and 'interpolated'")
    how = _how(
        False, method, relative_tolerance, max_cycles, smooth, tolerance, max_sweeps, norm, sweeps_per_pass, threads,
        progress, natural=rim == "natural", gpu=None if like is None else like.device,
    )  # fmt: skip
    stated = relative_tolerance is not None
    if like is not None:
        by_cycles = how["method"] in ("auto", "mg") and rim != "interpolated"
        solved = _voids_on_device(like, known, nodata, how) if by_cycles else None
        if solved is not None:
            return _result(*solved, how, stated)
        dem, known = _device.host_or_same(dem), _device.host_or_same(known)
    masked = np.ma.getmaskarray(dem) if isinstance(dem, np.ma.MaskedArray) else None
    values = as_array(dem if masked is None else np.ma.getdata(dem), "fill")
    if values.ndim != 2:
        raise InputError(f"fill takes a grid of two dimensions, not {values.ndim}")
    by_jacobi = how["method"] == "jacobi"
    if by_jacobi and tolerance is None:
        how["tolerance"] = 1e-4
    values = values.astype(np.float32 if values.dtype == np.float32 else np.float64, copy=False)
    there = np.asarray(~np.isnan(values) if known is None else known)
    if nodata is not None and there.shape == values.shape:
        there = there.astype(bool, copy=False) & (values != values.dtype.type(nodata))
    if masked is not None and there.shape == values.shape:
        there = there.astype(bool, copy=False) & ~masked
    mask = _mask("known", there, values.shape)
    natural = not by_jacobi if rim is None else rim == "natural"
    field = _empty(values.shape, values.dtype)
    said = _native.fill(values.shape[1], prepared(values), mask, natural, how, field)
    return _result(said, field, how, stated, like)


class Hierarchy:
    """The multigrid levels of a plane, made once: for many solves, and as a preconditioner.

    `shape`: (rows, columns). Sides, `fixed`, `initial`, `source`, `coefficient`, `reaction`, `spacing`, `dtype`, `smooth`
    and `threads` are those of `solve`; the threads keep the levels until the object is gone.

    `operator` and `preconditioner` are for conjugate gradients, SciPy's for example. They work on vectors of float64 with
    a value for each point, row by row. The operator is that of the equations integrated over the part of the grid around
    each point: of inner cells, 4 of a cell less its unknown neighbours, half of that on a side with a derivative. It is 1
    where a cell keeps its value (fixed sides and cells, and ghosts of periodic sides). The preconditioner is one V-cycle,
    symmetric and positive (with as many relaxations before a correction as after it) but for rounding.

    >>> levels = cw.Hierarchy((65, 65), spacing=1 / 64)
    >>> [levels.solve(np.full((65, 65), f)).converged for f in (-1.0, -2.0)]
    [True, True]
    >>> b = np.zeros((65, 65))
    >>> b[1:-1, 1:-1] = 1 / 64**2
    >>> z = levels.preconditioner @ b.ravel()
    >>> bool(abs(levels.operator @ z - b.ravel()).max() < 0.5 / 64**2)
    True
    """

    def __init__(
        self,
        shape: tuple[int, int],
        *,
        sides: Side | Mapping[str, Side] | None = None,
        left: Side | None = None,
        right: Side | None = None,
        top: Side | None = None,
        bottom: Side | None = None,
        initial: npt.ArrayLike | None = None,
        fixed: npt.ArrayLike | None = None,
        source: npt.ArrayLike | None = None,
        coefficient: npt.ArrayLike | None = None,
        reaction: npt.ArrayLike | None = None,
        spacing: float | tuple[float, ...] = 1.0,
        dtype: npt.DTypeLike = np.float64,
        smooth: tuple[int, int] | None = None,
        threads: int | None = None,
    ) -> None:
        given = _sides(sides, {"left": left, "right": right, "top": top, "bottom": bottom})
        self._kind = _real(dtype)
        if np.ndim(shape) != 1 or len(shape) != 2 or any(size < 3 for size in shape):
            raise InputError(f"a shape of {shape}: two sizes of at least 3 are needed")
        ny, nx = (int(size) for size in shape)
        self.shape: tuple[int, int] = (ny, nx)
        """Rows and columns."""
        self._smooth = smooth
        how = self._how("mg", None, None, threads)
        planes = (initial, fixed, source, coefficient, reaction)
        initial, fixed, source, coefficient, reaction = (_device.host_or_same(plane) for plane in planes)
        self._problem = _problem((ny, nx), given, initial, fixed, source, coefficient, reaction, spacing, self._kind)
        self._levels = _native.Levels(nx, ny, self._problem, how, self._kind == np.float32)
        self._on_gpus: dict[int, _native.Levels] = {}
        self.operator: Operator = Operator(self._levels.apply, ny * nx)
        """The operator, for vectors of all points."""
        self.preconditioner: Operator = Operator(self._levels.precondition, ny * nx)
        """One cycle, for the same."""

    def solve(
        self,
        source: npt.ArrayLike | None = None,
        initial: npt.ArrayLike | None = None,
        *,
        method: str = "auto",
        relative_tolerance: float | None = None,
        max_cycles: int | None = None,
        project_source: bool = False,
    ) -> Result:
        """Solves with this source and first guess, or where they are not given those that the levels were made with.

        The rest is as in `solve`, whose bits the field has. `initial` has the values of fixed cells, too. With arrays on a GPU
        cycles are made there, and the levels stay there for the next solve.
        """
        like = _lying_on_gpu("solve", (source, initial))
        how = self._how(method, relative_tolerance, max_cycles, None)
        how["project_source"] = project_source
        how["gpu"] = None if like is None else like.device
        levels, stated = self._levels, relative_tolerance is not None
        if like is not None:
            levels = self._levels_on(like.device, how)

            def run(arrays: dict[str, Any], kept: list[Any]) -> dict[str, Any] | None:
                return levels.solve_on_device(arrays, how, kept)

            if how["method"] != "mgcg":
                solved = _on_device(run, self.shape, {"source": source, "initial": initial}, like, self._kind)
                if solved is not None:
                    return _result(*solved, how, stated)
            source, initial = _device.host_or_same(source), _device.host_or_same(initial)
        f = _plane("source", source, self.shape, self._kind)
        first = _plane("initial", initial, self.shape, self._kind)
        field = _empty(self.shape, self._kind)
        return _result(levels.solve(f, first, how, field), field, how, stated, like)

    def _levels_on(self, device: int, how: dict[str, Any]) -> _native.Levels:
        """Levels for solves on a GPU, which one thread has."""
        if device not in self._on_gpus:
            ny, nx = self.shape
            self._on_gpus[device] = _native.Levels(nx, ny, self._problem, how, self._kind == np.float32)
        return self._on_gpus[device]

    def _how(
        self, method: str, relative_tolerance: float | None, max_cycles: int | None, threads: int | None
    ) -> dict[str, Any]:
        if method in ("jacobi", "cg", "chebyshev"):
            raise InputError(f"a hierarchy makes cycles: it does not go with method={method!r}")
        return _how(
            False, method, relative_tolerance, max_cycles, self._smooth, None, None, None, None, threads, None
        )


class Operator:
    """A matrix that is not stored. SciPy takes it for a `LinearOperator`: it has `shape`, `dtype` and `matvec`."""

    def __init__(self, apply: Callable[[Array, Array], None], points: int) -> None:
        self._apply = apply
        self.shape: tuple[int, int] = (points, points)
        """Of the matrix."""
        self.dtype: np.dtype[Any] = np.dtype(np.float64)
        """Of vectors."""

    def matvec(self, vector: npt.ArrayLike) -> Array:
        """The matrix times `vector`."""
        given = as_array(vector, "matvec").astype(np.float64, copy=False)
        if given.shape not in ((self.shape[0],), (self.shape[0], 1)):
            raise InputError(f"a vector of shape {given.shape}, and {self.shape[0]} points")
        made = _empty(given.shape, self.dtype)
        self._apply(prepared(given), made)
        return made

    def __matmul__(self, vector: npt.ArrayLike) -> Array:
        return self.matvec(vector)


def _problem(
    shape: tuple[int, int],
    given: dict[str, Side | None],
    initial: npt.ArrayLike | None,
    fixed: npt.ArrayLike | None,
    source: npt.ArrayLike | None,
    coefficient: npt.ArrayLike | None,
    reaction: npt.ArrayLike | None,
    spacing: Any,
    kind: np.dtype[Any],
) -> dict[str, Any]:
    ny, nx = shape
    distances = np.broadcast_to(np.asarray(spacing, np.float64), 2) if np.size(spacing) in (1, 2) else None
    if distances is None:
        raise InputError(f"spacing is {spacing}: of a plane it is one number or two")
    of_columns, of_rows = (float(distance) for distance in distances)
    return {
        "left": _side("left", given["left"], ny, kind),
        "right": _side("right", given["right"], ny, kind),
        "top": _side("top", given["top"], nx, kind),
        "bottom": _side("bottom", given["bottom"], nx, kind),
        "initial": _plane("initial", initial, shape, kind),
        "fixed": _mask("fixed", fixed, shape),
        "source": _plane("source", source, shape, kind),
        "coefficient": _plane("coefficient", coefficient, shape, kind),
        "reaction": _plane("reaction", reaction, shape, kind),
        "spacing": of_columns,
        "row_spacing": None if of_rows == of_columns else of_rows,
    }


Faces = list[tuple[int, int, Array]]
"""Axis, end (0 or -1) and values of the fixed sides of a box, those that hold where sides meet behind the others."""


def _box_sides(
    shape: tuple[int, ...], given: dict[str, Side | None], kind: np.dtype[Any]
) -> tuple[list[list[tuple[str, list[float]]]], Faces]:
    sides: list[list[tuple[str, list[float]]]] = []
    faces: Faces = []
    # In this order: where sides meet, left and right go before top and bottom, those before front and back.
    for names, axis in ((("front", "back"), 0), (("top", "bottom"), 1), (("left", "right"), 2)):
        pair: list[tuple[str, list[float]]] = []
        for name, end in zip(names, (0, -1)):
            value: Any = 0.0 if given[name] is None else given[name]
            if isinstance(value, str) and value == "periodic":
                pair.append(("periodic", []))
                continue
            if isinstance(value, str):
                value = (value, 0.0)
            is_named = isinstance(value, tuple) and len(value) > 0 and isinstance(value[0], str)
            if is_named and (value[0], len(value)) in (("neumann", 2), ("robin", 4)):
                for number in value[1:]:
                    if np.ndim(number) != 0:
                        raise InputError(f"the {name} side has an array of shape {np.shape(number)}: a box has numbers")
                pair.append((value[0], [float(number) for number in value[1:]]))
                continue
            if is_named:
                possible = "values, 'periodic', 'neumann', ('neumann', g) and ('robin', a, b, g) are possible"
                raise InputError(f"the {name} side is {value!r}: {possible}")
            values = as_array(_device.host_or_same(value), "solve")
            face = shape[:axis] + shape[axis + 1 :]
            if values.shape not in ((), face):
                raise InputError(f"the {name} side has values of shape {values.shape}, not {face}")
            faces.append((axis, end, values.astype(kind, copy=False)))
            pair.append(("fixed", []))
        sides.insert(0, pair)
    return sides, faces


def _distances(spacing: Any) -> list[float]:
    if np.size(spacing) not in (1, 3):
        raise InputError(f"spacing is {spacing}: of a box it is one number or three")
    return [float(distance) for distance in np.broadcast_to(np.asarray(spacing, np.float64), 3)]


def _box(
    shape: tuple[int, int, int],
    given: dict[str, Side | None],
    initial: npt.ArrayLike | None,
    fixed: npt.ArrayLike | None,
    source: npt.ArrayLike | None,
    coefficient: npt.ArrayLike | None,
    reaction: npt.ArrayLike | None,
    spacing: Any,
    kind: np.dtype[Any],
) -> dict[str, Any]:
    distances = _distances(spacing)
    first = _plane("initial", initial, shape, kind)
    first = np.zeros(shape, kind) if first is None else first.copy()
    sides, faces = _box_sides(shape, given, kind)
    for axis, end, values in faces:
        first[(slice(None),) * axis + (end,)] = values
    nz, ny, nx = shape
    return {
        "size": [nx, ny, nz],
        "sides": sides,
        "initial": prepared(first),
        "fixed": _mask("fixed", fixed, shape),
        "source": _plane("source", source, shape, kind),
        "coefficient": _plane("coefficient", coefficient, shape, kind),
        "reaction": _plane("reaction", reaction, shape, kind),
        "spacing": distances,
    }


def _how(
    line: bool,
    method: str,
    relative_tolerance: float | None,
    max_cycles: int | None,
    smooth: tuple[int, int] | None,
    tolerance: float | None,
    max_sweeps: int | None,
    norm: str | None,
    sweeps_per_pass: int | None,
    threads: int | None,
    progress: Progress | None,
    natural: bool = False,
    gpu: int | None = None,
    project_source: bool = False,
) -> dict[str, Any]:
    """How to solve, by the rules of `crosswarp solve --method`."""
    if method not in ("auto", "jacobi", "mg", "mgcg", "cg", "chebyshev"):
        there = "'auto', 'jacobi', 'mg', 'mgcg', 'cg' and 'chebyshev'"
        raise InputError(f"there is no method {method!r}; there are {there}")
    sweeping = {
        "tolerance": tolerance, "max_sweeps": max_sweeps, "norm": norm, "sweeps_per_pass": sweeps_per_pass,
    }  # fmt: skip
    cycling = {
        "relative_tolerance": relative_tolerance, "max_cycles": max_cycles, "smooth": smooth,
        "rim='natural'": natural or None, "project_source": project_source or None,
    }  # fmt: skip
    if one_level := method in ("cg", "chebyshev"):
        # They count sweeps, and look at the residual.
        for several in ("max_sweeps", "relative_tolerance", "rim='natural'", "project_source"):
            sweeping.pop(several, None)
            cycling.pop(several, None)
    of_sweeps = [name for name, value in sweeping.items() if value is not None]
    of_cycles = [name for name, value in cycling.items() if value is not None]
    if of_sweeps and of_cycles:
        raise InputError(
            f"{of_sweeps[0]} belongs to Jacobi sweeps and {of_cycles[0]} to multigrid: they do not go together"
        )
    if method == "auto" and (of_sweeps or (line and not of_cycles)):
        method = "jacobi"
    wrong = of_sweeps + of_cycles if one_level else of_cycles if method == "jacobi" else of_sweeps
    if wrong:
        owner = "multigrid" if wrong[0] in of_cycles else "Jacobi sweeps"
        raise InputError(f"{wrong[0]} belongs to {owner}: it does not go with method={method!r}")
    if line and method != "jacobi":
        other = f"method={method!r}" if one_level else "multigrid"
        raise InputError(f"a line is solved by Jacobi sweeps: it does not go with {other}")
    if norm not in (None, "rms", "l2"):
        raise InputError(f"there is no norm {norm!r}; there are 'rms' and 'l2'")
    for name, most in (("max_sweeps", max_sweeps), ("max_cycles", max_cycles)):
        if most is not None and most < 1:
            raise InputError(f"{name} is {most}: at least one must be allowed")
    if sweeps_per_pass is not None and sweeps_per_pass < 1:
        raise InputError(f"sweeps_per_pass is {sweeps_per_pass}: a pass has at least one")
    pre, post = (2, 2) if smooth is None else smooth
    if not all(1 <= steps <= 3 for steps in (pre, post)):
        raise InputError(f"smooth is {smooth}: 1 to 3 relaxations before and after a correction are possible")
    if method == "jacobi":
        limit = 1e-7 if tolerance is None else tolerance
        most = _MAX_SWEEPS if max_sweeps is None else max_sweeps
    else:
        limit = _RELATIVE_RESIDUAL if relative_tolerance is None else relative_tolerance
        most = _MAX_CYCLES if max_cycles is None else max_cycles
        if one_level:
            most = _MAX_SWEEPS if max_sweeps is None else max_sweeps
    return {
        "method": method,
        "tolerance": float(limit),
        "most": int(most),
        "smooth": (int(pre), int(post)),
        "sweeps_per_pass": sweeps_per_pass,
        # Cycles have one norm.
        "l2": norm == "l2" or method != "jacobi",
        "project_source": project_source,
        "threads": threads_of(threads),
        "progress": progress,
        "gpu": gpu,
    }


def _real(dtype: npt.DTypeLike) -> np.dtype[Any]:
    kind: np.dtype[Any] = np.dtype(dtype)
    if kind not in (np.float32, np.float64):
        raise DtypeError(f"fields are of float32 or float64, not {kind}")
    return kind


def _empty(shape: tuple[int, ...], kind: np.dtype[Any]) -> Array:
    return np.empty(shape, kind)


def _sides(sides: Side | Mapping[str, Side] | None, named: dict[str, Side | None]) -> dict[str, Side | None]:
    """What was said of each side; `None` where nothing was."""
    if sides is None:
        return named
    if isinstance(sides, Mapping):
        unknown = [name for name in sides if name not in named]
        if unknown:
            raise InputError(f"there is no side {unknown[0]!r}; there are {', '.join(named)}")
        by_all: Mapping[str, Side] = sides
    else:
        by_all = dict.fromkeys(named, sides)
    twice = [name for name in by_all if named[name] is not None]
    if twice:
        raise InputError(f"the {twice[0]} side is given twice, by sides= and by {twice[0]}=")
    return {**named, **by_all}


def _end(name: str, value: Side | None) -> float:
    if value is None:
        return 0.0
    if isinstance(value, (str, tuple)) or np.ndim(value) != 0:
        raise InputError(f"the {name} end of a line is one value")
    return float(np.asarray(value))


def _side(name: str, value: Side | None, length: int, kind: np.dtype[Any]) -> tuple[str, Array | None]:
    """The kind of a side, and its values: of a mixed condition, a, b and g one after the other."""
    if isinstance(value, str) and value == "periodic":
        return value, None
    named: Any = (value, 0.0) if isinstance(value, str) else value
    is_named = isinstance(named, tuple) and len(named) > 0 and isinstance(named[0], str)
    if is_named and (named[0], len(named)) not in (("neumann", 2), ("robin", 4)):
        possible = "values, 'periodic', 'neumann', ('neumann', values) and ('robin', a, b, g) are possible"
        raise InputError(f"the {name} side is {value!r}: {possible}")
    rows = []
    for values in named[1:] if is_named else (0.0 if value is None else value,):
        array = as_array(_device.host_or_same(values), "solve")
        if array.ndim > 1 or array.ndim == 1 and array.shape != (length,):
            raise InputError(f"the {name} side has values of shape {array.shape}, and {length} points")
        rows.append(np.broadcast_to(array.astype(kind, copy=False), length))
    return named[0] if is_named else "fixed", prepared(np.concatenate(rows))


def _plane(name: str, value: npt.ArrayLike | None, shape: tuple[int, ...], kind: np.dtype[Any]) -> Array | None:
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


def _lying_on_gpu(function: str, arrays: tuple[Any, ...]) -> _device.View | None:
    """One of the arrays, if those that are given lie on a GPU."""
    given = [array for array in arrays if array is not None and not isinstance(array, (int, float, np.generic))]
    found = _device.find_all(function, *given)
    return None if found is None else found[0]


SolveThere = Callable[[dict[str, Any], list[Any]], "dict[str, Any] | None"]
"""Solves with arrays on a GPU, given their addresses and what keeps them; `None` if the host has to."""

_OPERATOR = ("fixed", "coefficient", "reaction")


def _plane_on_device(
    shape: tuple[int, ...],
    given: dict[str, Side | None],
    arrays: dict[str, Any],
    spacing: Any,
    kind: np.dtype[Any],
    how: dict[str, Any],
) -> SolveThere:
    """Takes what is to go by the host out of `arrays`."""
    ny, nx = shape
    operator: dict[str, Any] = dict.fromkeys(_OPERATOR)
    views = [_device.find(arrays[name]) for name in _OPERATOR if arrays[name] is not None]
    # A number for all points is the host's matter, and then the others are.
    if any(view is None or view.shape == () for view in views):
        operator = {name: _device.host_or_same(arrays[name]) for name in _OPERATOR}
        arrays.update(dict.fromkeys(_OPERATOR))
    problem = _problem((ny, nx), given, None, source=None, spacing=spacing, kind=kind, **operator)
    single = kind == np.float32
    return lambda there, kept: _native.plane_on_device([nx, ny], problem, how, single, there, kept)


def _box_on_device(
    shape: tuple[int, ...],
    given: dict[str, Side | None],
    arrays: dict[str, Any],
    spacing: Any,
    kind: np.dtype[Any],
    how: dict[str, Any],
) -> SolveThere | None:
    sides, faces = _box_sides(shape, given, kind)
    # Values of sides are those of the first guess: zeros, or what the host has to write there.
    written = any(values.any() or np.signbit(values).any() for *_, values in faces)
    varies = any(arrays[name] is not None for name in _OPERATOR)
    if written or (faces and arrays["initial"] is not None) or varies:
        return None
    empty = dict.fromkeys(("initial", "fixed", "source", "coefficient", "reaction"))
    problem = {"size": list(reversed(shape)), "sides": sides, "spacing": _distances(spacing), **empty}
    return lambda there, kept: _native.space_on_device(problem, how, kind == np.float32, there, kept)


def _on_device(
    run: SolveThere, shape: tuple[int, ...], arrays: dict[str, Any], like: _device.View, kind: np.dtype[Any]
) -> tuple[dict[str, Any], Any] | None:
    """Solves by `run` without a copy of the arrays on the GPU `like` is on: what is said, and the field. `None` if the host has
    to be asked."""
    views: dict[str, _device.View | None] = dict.fromkeys(("source", "initial", *_OPERATOR))
    for name, array in arrays.items():
        if array is None:
            continue
        view = _device.find(array)
        # A number for all points is the host's matter.
        if view is None or view.shape == ():
            return None
        if view.shape != shape:
            raise InputError(f"{name} is of shape {view.shape}, the grid of {shape}")
        try:
            wanted = np.dtype(bool) if name == "fixed" else kind
            views[name] = _device.prepared(_device.converted(_device.known(view, "solve"), wanted, "solve"))
        except DtypeError:
            # NumPy can convert what the library cannot.
            return None
    field = like.library.empty(shape, kind.name, like)
    there = {
        "place": like.place,
        "field": field.address,
        **{name: None if view is None else view.address for name, view in views.items()},
    }
    said = run(there, [field.array, *(view.array for view in views.values() if view is not None)])
    return None if said is None else (said, _device.finished(field))


def _voids_on_device(
    dem: _device.View, known: Any, nodata: float | None, how: dict[str, Any]
) -> tuple[dict[str, Any], Any] | None:
    """Fills the voids of `dem` without a copy: what is said, and the field. `None` if the host has to be asked."""
    mask = None if known is None else _device.find(known)
    if known is not None and mask is None:
        return None
    if dem.dtype not in ("float32", "float64") or len(dem.shape) != 2 or min(dem.shape) < 3:
        return None
    if mask is not None and (mask.dtype not in ("bool", "uint8") or mask.shape != dem.shape):
        return None
    dem, mask = _device.prepared(dem), None if mask is None else _device.prepared(mask)
    field = dem.library.empty(dem.shape, dem.dtype, dem)
    array = {
        "place": dem.place,
        "values": dem.address,
        "known": None if mask is None else mask.address,
        "nodata": None if nodata is None else float(np.dtype(dem.dtype).type(nodata)),
        "field": field.address,
    }
    ny, nx = dem.shape
    kept = [field.array, dem.array, *([] if mask is None else [mask.array])]
    said = _native.voids_on_device([nx, ny], how, dem.dtype == "float32", array, kept)
    return None if said is None else (said, _device.finished(field))


def _result(
    said: dict[str, Any], field: Array, how: dict[str, Any], stated: bool, like: _device.View | None = None
) -> Result:
    """`stated`: whether the caller said when to stop. `like`: what the field is to lie beside, on a GPU."""
    history, steps = said["history"], said["steps"]
    by_jacobi = how["method"] == "jacobi"
    in_sweeps = how["method"] in ("jacobi", "cg", "chebyshev")
    last = float(history[-1]) if len(history) else None
    found = Result(
        field=field,
        history=history,
        method="mgcg" if said["gradients"] else "mg" if how["method"] == "auto" else how["method"],
        converged=said["converged"],
        tolerance=how["tolerance"],
        sweeps=steps if in_sweeps else None,
        cycles=None if in_sweeps else steps,
        change=last if by_jacobi else None,
        remaining_error_estimate=_remaining_error(history) if by_jacobi else None,
        relative_residual=None if by_jacobi else last or 0.0,
        convergence_factor=None if by_jacobi else _convergence_factor(history),
        levels=said["levels"],
        floor_reached=said["floor_reached"],
        floor=said["floor"],
        projected=said["projected"],
        seconds=said["seconds"],
    )
    text = _warning(found, stated)
    if like is not None:
        found.field = _device.from_host(field, like)
    if text is not None:
        warnings.warn(text, ConvergenceWarning, stacklevel=3)
    return found


def _warning(found: Result, stated: bool) -> str | None:
    estimate = found.remaining_error_estimate
    if found.converged:
        if estimate is None or estimate <= _MUCH * found.tolerance:
            return None
        better = "; method='mg' goes all the way" if found.field.ndim == 2 else ""
        return (
            f"a sweep changes little, but the solution is about {estimate:.2g} away, or more: "
            f"{estimate / found.tolerance:,.0f} times the tolerance{better}"
        )
    if found.change is not None:
        return (
            f"after {found.sweeps} sweeps the change is {found.change:.3g}, above the tolerance of "
            f"{found.tolerance:g}: the field is not the solution yet"
        )
    if found.floor_reached:
        if not stated:
            # Nobody has asked for more than rounding allows.
            return None
        sure = 2 * (found.floor or 0.0)
        small = (found.relative_residual or 0.0) <= sure
        why = f"rounding can leave up to {sure:.1e}" if small else "steps do not make it smaller"
        return f"the relative residual is {found.relative_residual:.2e}, above {found.tolerance:g}, and {why}"
    return (
        f"after {found._steps()} the relative residual is {found.relative_residual:.2e}, above {found.tolerance:g}: "
        "the field is not the solution yet"
    )


def _remaining_error(norms: npt.NDArray[np.float64]) -> float | None:
    """How far the solution is if the changes go on to shrink as the last ones did; as `crosswarp solve` says it."""
    # Over many sweeps, since one may be rounding; but the early ones fall faster.
    window = min(max(len(norms) // 10, 1), 1000)
    if len(norms) <= window:
        return None
    last, before = float(norms[-1]), float(norms[-1 - window])
    if not 0.0 < last < before:
        return None
    ratio = math.pow(last / before, 1.0 / window)
    if ratio >= 1.0:
        return None
    rest = last * ratio / (1.0 - ratio)
    return rest if math.isfinite(rest) else None


def _convergence_factor(residuals: npt.NDArray[np.float64]) -> float | None:
    """The mean factor of the last cycles; as `crosswarp solve` says it."""
    if not len(residuals):
        return None
    # The first cycle tells more of the first guess than of the ones to come.
    count = min(max(len(residuals) - 1, 1), 4)
    before = 1.0 if len(residuals) == 1 else float(residuals[-1 - count])
    if before == 0.0:
        return None
    return math.pow(float(residuals[-1]) / before, 1.0 / count)
