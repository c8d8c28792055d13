"""Kernels in CUDA C++, compiled at run time."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from . import _native
from ._device import View, find
from ._errors import DtypeError, InputError

__all__ = ["Compiled", "Kernel", "KernelResources"]

Size = int | Sequence[int]
"""Along x, or along x, y and z."""


@dataclasses.dataclass(frozen=True)
class KernelResources:
    """What one kernel needs."""

    name: str
    """The kernel's name."""
    registers: int
    """32-bit registers of a thread."""
    shared: int
    """Static shared memory of a block, bytes."""
    local: int
    """Local memory of a thread, bytes: spilled registers, and arrays that are indexed at run time."""
    constant: int
    """Constant memory, bytes, without parameters."""
    max_threads: int | None
    """Most threads of a block, where `__launch_bounds__` says it."""
    parameters: int
    """How many it has."""


@dataclasses.dataclass(frozen=True)
class Compiled:
    """Code for one architecture."""

    arch: str
    """The architecture, `sm_90` for example."""
    cubin: bytes = dataclasses.field(repr=False)
    """The code, as `cuobjdump` and the driver read it."""

    @functools.cached_property
    def resources(self) -> list[KernelResources]:
        """What each kernel needs, by name."""
        return [KernelResources(**found) for found in _native.cubin_resources(self.cubin)]


class Kernel:
    """A kernel in CUDA C++, compiled when it is first launched on a GPU, and launched on arrays that lie there.

    `source`: the text, with one `extern "C" __global__` function, or several, of which `name` says which is meant. The
    device headers of Crosswarp are there: `#include "warp.cuh"`, `"block.cuh"`, `"cluster.cuh"`, `"grid.cuh"`, the levels
    of a GPU with the same verbs (in namespace `cw`), and `"exact_sum.cuh"`. `headers`: others, by the name in
    `#include "name"`. `defines`: macros. Multiplications and additions are not contracted, and no subnormal is flushed:
    arithmetic has the CPU's bits.

    Launched as in CuPy: `kernel(grid, block, arguments)`; sizes are a number or up to three. `shared`: dynamic shared
    memory of a block, bytes. `cluster`: blocks of a cluster. `cooperative=True`: all blocks are resident at once, which
    barriers over the grid need.

    Arguments: arrays on a GPU (of torch, CuPy, or with DLPack or the CUDA array interface) as the address of their first
    element; NumPy's scalars, structured ones too, as their bytes; an int, float or bool of Python by the size of its
    parameter: an int for an integer, a float for a `float` or `double`. Their number and sizes are checked. Types cannot
    be: 2 for a `float` has the wrong bits, 2.0 or `np.float32(2)` the right ones. What a kernel does with addresses is
    not checked, as everywhere in CUDA.

    The launch is in the order of the current stream of torch or CuPy, whose the arrays are, and the call returns at once;
    for arrays of other libraries, and without arrays, it waits for the end. `device`: the GPU of a launch without arrays.

    Errors: `InputError` with the compiler's messages, for a launch beyond a limit, and for arguments that do not fit;
    `GpuError` without GPU, driver or compiler (NVRTC), and when the GPU fails.

    >>> kernel = cw.Kernel('''
    ... extern "C" __global__ void axpy(float* y, const float* x, float a, unsigned n) {
    ...     unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    ...     if (i < n) y[i] += a * x[i];
    ... }''')
    >>> kernel
    <Kernel kernel.cu>
    """

    def __init__(
        self,
        source: str,
        name: str | None = None,
        *,
        headers: Mapping[str, str] | None = None,
        defines: Mapping[str, object] | None = None,
        file: str = "kernel.cu",
    ) -> None:
        if not isinstance(source, str):
            raise DtypeError(f"the source of a kernel is text, not {type(source).__name__}")
        self._source, self._name, self._file = source, name, file
        self._headers = [(str(file), str(text)) for file, text in (headers or {}).items()]
        self._defines = [
            (str(macro), str(int(value) if isinstance(value, bool) else value))
            for macro, value in (defines or {}).items()
        ]
        self._loaded: dict[int, tuple[Any, str, list[int]]] = {}

    def __repr__(self) -> str:
        return f"<Kernel {self._name + ' of ' if self._name else ''}{self._file}>"

    def compile(self, arch: str | None = None, *, device: int = 0) -> Compiled:
        """Compiles for an architecture, `"sm_90"` for example, without a GPU; or for the GPU of number `device`.

        Needs NVRTC (`pip install nvidia-cuda-nvrtc`). What was compiled before comes from the cache.
        """
        cubin, name = _native.compile_kernel(
            self._file, self._source, self._headers, self._defines, arch, device
        )
        return Compiled(name, cubin)

    def __call__(
        self,
        grid: Size,
        block: Size,
        arguments: Sequence[Any] = (),
        *,
        shared: int = 0,
        cluster: Size | None = None,
        cooperative: bool = False,
        device: int = 0,
    ) -> None:
        """Launches it."""
        sizes = (_size("grid", grid), _size("block", block), None if cluster is None else _size("cluster", cluster))
        if not 0 <= shared < 2**32:
            raise InputError(f"shared is {shared}: bytes of a block are needed")
        if any(getattr(argument, f"is_{lazy}", bool)() for argument in arguments for lazy in ("conj", "neg")):
            raise InputError("a tensor that is conjugated or negated when it is read: resolve it first")
        views = [find(argument) for argument in arguments]
        place = _place(views, device)
        loaded, name, parameters = self._on(place[0])
        if len(parameters) != len(views):
            raise InputError(f"{name} has {len(parameters)} parameters, and {len(views)} arguments are given")
        packed = [
            _packed(name, number, argument, view, size)
            for number, (argument, view, size) in enumerate(zip(arguments, views, parameters))
        ]
        loaded.launch(place, name, *sizes, int(shared), bool(cooperative), packed)

    def _on(self, device: int) -> tuple[Any, str, list[int]]:
        """The code on a GPU, the kernel's name, and its parameters' sizes."""
        found = self._loaded.get(device)
        if found is None:
            compiled = self.compile(device=device)
            names = [kernel.name for kernel in compiled.resources]
            name = self._name
            if name is None:
                if len(names) != 1:
                    raise InputError(f"the source has {len(names)} kernels ({', '.join(names)}): name= says which is meant")
                (name,) = names
            loaded = _native.Loaded(device, compiled.cubin)
            found = self._loaded[device] = (loaded, name, loaded.parameters(name))
        return found


def _size(what: str, size: Size) -> tuple[int, int, int]:
    sizes = tuple(size) if isinstance(size, Sequence) else (size,)
    if not 1 <= len(sizes) <= 3 or not all(isinstance(one, (int, np.integer)) and 0 <= one < 2**32 for one in sizes):
        raise InputError(f"{what} is {size}: one to three sizes are needed")
    x, y, z = (*(int(one) for one in sizes), 1, 1)[:3]
    return x, y, z


def _place(views: Sequence[View | None], device: int) -> tuple[int, int | None, bool]:
    """Where the launch goes: where the arrays are."""
    places = {view.place for view in views if view is not None}
    if not places:
        return device, None, True
    if len(places) > 1:
        raise InputError("a launch takes arrays that are all on one GPU and of one library")
    return places.pop()


def _packed(kernel: str, number: int, argument: Any, view: View | None, size: int) -> bytes:
    """The bytes of an argument."""
    if view is not None:
        value = view.address.to_bytes(8, "little")
    elif isinstance(argument, np.generic):
        value = argument.tobytes()
    elif isinstance(argument, (bool, int)):
        least, most = (0, 1) if isinstance(argument, bool) else (-(1 << 8 * size - 1), (1 << 8 * size) - 1)
        if size not in (1, 2, 4, 8) or not least <= argument <= most:
            raise InputError(f"argument {number} of {kernel} is {argument}, its parameter has {size} bytes")
        value = (argument & ((1 << 8 * size) - 1)).to_bytes(size, "little")
    elif isinstance(argument, float):
        if size not in (4, 8):
            raise InputError(f"argument {number} of {kernel} is a float, its parameter has {size} bytes")
        value = np.dtype(f"<f{size}").type(argument).tobytes()
    elif isinstance(argument, np.ndarray):
        raise DtypeError(f"argument {number} of {kernel} is an array in the processor's memory: take it to the GPU first")
    else:
        raise DtypeError(
            f"argument {number} of {kernel} is a {type(argument).__name__}: arrays on a GPU, NumPy's scalars, int, "
            "float and bool are taken"
        )
    if len(value) != size:
        raise InputError(f"argument {number} of {kernel} has {len(value)} bytes, its parameter {size}")
    return value
