"""Models of GPUs, for teaching: they need none."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from . import _native
from ._errors import InputError

__all__ = ["occupancy", "bank_conflicts", "roofline", "Occupancy", "BankConflicts", "Roofline"]


def _axes(axes: Any, name: str) -> Any:
    """Those given, or new ones."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError(f"{name}.plot draws with matplotlib, which is not installed") from None
    return plt.figure().add_subplot() if axes is None else axes


@dataclass(frozen=True)
class Occupancy:
    """How many blocks of a kernel one SM (streaming multiprocessor) holds."""

    blocks: int
    """Blocks that fit."""
    warps: int
    """Their warps."""
    max_warps: int
    """Warps the SM could hold."""
    fraction: float
    """The one over the other."""
    limited_by: str
    """What stops more: "warps", "registers", "shared" or "blocks"."""
    _kernel: tuple[int, int, int, str] = field(repr=False, compare=False)

    def plot(self, axes: Any = None) -> Any:
        """Draws the occupancy of blocks of all sizes, this one marked, with matplotlib; returns the axes."""
        axes = _axes(axes, "Occupancy")
        threads, registers, shared, arch = self._kernel
        sizes = range(32, 1025, 32)
        axes.plot(sizes, [occupancy(size, registers, shared, arch=arch).fraction for size in sizes], ".-")
        axes.plot([threads], [self.fraction], "o")
        axes.set(xlabel="threads of a block", ylabel="occupancy", ylim=(0, 1.05))
        axes.set_title(f"{registers} registers a thread, {shared:,} bytes a block, compute capability {arch}")
        return axes


def occupancy(threads: int, registers: int = 32, shared: int = 0, *, arch: str = "9.0") -> Occupancy:
    """The theoretical occupancy of blocks of `threads` threads of `registers` registers each, and `shared` bytes.

    `arch`: the compute capability. What makes no sense is an `InputError`.

    >>> cw.occupancy(256, registers=62, arch="7.0")
    Occupancy(blocks=4, warps=32, max_warps=64, fraction=0.5, limited_by='registers')
    """
    counts = {"threads": threads, "registers": registers, "shared": shared}
    for name, count in counts.items():
        if not 0 <= count < 1 << 32:
            raise InputError(f"{name} is {count}")
    found = _native.occupancy(threads, registers, shared, arch)
    return Occupancy(**found, _kernel=(threads, registers, shared, arch))


@dataclass(frozen=True)
class BankConflicts:
    """The accesses of a warp to shared memory, one an iteration."""

    degrees: tuple[int, ...]
    """The degree of conflict of each access: the most words wanted of one bank at once; 1 is none."""
    requests: tuple[int, ...]
    """How often memory has to be asked for each access."""
    slowdown: float
    """Requests over those without conflicts."""

    def plot(self, axes: Any = None) -> Any:
        """Draws the degree of each access, with matplotlib; returns the axes."""
        axes = _axes(axes, "BankConflicts")
        axes.bar(range(len(self.degrees)), self.degrees)
        axes.set(xlabel="access", ylabel="degree of conflict", title=f"{self.slowdown:.3g} times the requests")
        return axes


def bank_conflicts(index: str, *, bytes: int = 4, iterations: int = 1) -> BankConflicts:
    """Bank conflicts where lane `lane` accesses element `index`, an expression in `lane` and `i`, of shared memory.

    `bytes` a lane are 4, 8 or 16; `i` runs from 0 to `iterations` - 1. What makes no sense is an `InputError`.

    >>> cw.bank_conflicts("lane * 32").slowdown, cw.bank_conflicts("lane * 33").slowdown
    (32.0, 1.0)
    """
    if not 1 <= iterations <= 1 << 20:
        raise InputError(f"{iterations} iterations: 1 to {1 << 20} are possible")
    degrees, requests, slowdown = _native.bank_conflicts(index, bytes, iterations)
    return BankConflicts(tuple(degrees), tuple(requests), slowdown)


@dataclass(frozen=True)
class Roofline:
    """What a machine's memory and arithmetic allow a kernel."""

    gpu: str
    """The machine."""
    seconds: float
    """The least time it takes."""
    bound: str
    """What limits it: "memory" or "compute"."""
    intensity: float
    """Its operations a byte."""
    ridge: float
    """The intensity from which on arithmetic limits."""
    attainable: float
    """Operations a second at its intensity."""
    bandwidth: float
    """The machine's bytes a second."""
    rate: float
    """The machine's operations a second."""

    def plot(self, axes: Any = None) -> Any:
        """Draws the roof and the kernel below it, with matplotlib; returns the axes."""
        axes = _axes(axes, "Roofline")
        ends = [self.ridge / 1e3, self.ridge, self.ridge * 1e2]
        axes.loglog(ends, [x * self.bandwidth if x < self.ridge else self.rate for x in ends])
        axes.plot([self.intensity], [self.attainable], "o")
        axes.set(xlabel="operations a byte", ylabel="operations a second", title=self.gpu)
        return axes


def roofline(
    bytes: float,
    operations: float,
    *,
    gpu: str = "h200",
    bandwidth: float | None = None,
    rate: float | None = None,
) -> Roofline:
    """The least time of a kernel that moves `bytes` through memory and does `operations` in single precision.

    `gpu`: a key of the table of data sheets (`crosswarp roofline --help` lists them); `bandwidth` and `rate`, bytes and
    operations a second, take the place of its figures. What makes no sense is an `InputError`.

    >>> found = cw.roofline(bytes=8e9, operations=2e9, bandwidth=4e12, rate=60e12)
    >>> found.bound, found.seconds, found.intensity, found.ridge
    ('memory', 0.002, 0.25, 15.0)
    """
    sheets = {key: (name, memory, arithmetic) for key, name, memory, arithmetic in _native.data_sheets()}
    if gpu not in sheets:
        raise InputError(f"no data sheet of {gpu!r}; there are {', '.join(sheets)}")
    name, memory, arithmetic = sheets[gpu]
    memory = memory if bandwidth is None else bandwidth
    arithmetic = arithmetic if rate is None else rate
    for what, value in {"bytes": bytes, "operations": operations, "bandwidth": memory, "rate": arithmetic}.items():
        if not (value > 0 and math.isfinite(value)):
            raise InputError(f"{what} is {value}: it must be positive")
    return Roofline(name, *_native.roofline(bytes, operations, memory, arithmetic), memory, arithmetic)
