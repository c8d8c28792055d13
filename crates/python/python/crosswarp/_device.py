"""Arrays on a GPU: whose they are, where they lie, in what order work on them runs, and arrays for results."""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from . import _native
from ._errors import DtypeError, InputError

__all__ = ["DeviceArray"]

# DLPack's numbers of devices.
_CUDA, _CUDA_MANAGED = 2, 13
_ELSEWHERE = {4: "OpenCL", 7: "Vulkan", 8: "Metal", 10: "ROCm", 14: "oneAPI"}
# DLPack's codes of types.
_INT, _UINT, _FLOAT, _BFLOAT, _BOOL = 0, 1, 2, 4, 6

_RUST = {
    "float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64", "int8": "i8", "int16": "i16", "int32": "i32",
    "int64": "i64", "uint8": "u8", "uint16": "u16", "uint32": "u32", "uint64": "u64", "bool": "u8",
}  # fmt: skip
NUMBERS: dict[str, int] = {name: _native.DTYPES.index(rust) for name, rust in _RUST.items()}
"""The native part's number of each element type, by NumPy's name."""
SIZES: dict[str, int] = {name: int(rust.strip("bfiu")) // 8 for name, rust in _RUST.items()}
"""Bytes of an element."""
# The operations by the names of their functions.
_OPERATIONS = [{"exact-sum": "sum", "norm2": "norm"}.get(op, op) for op in _native.OPS]
INTEGERS = "int8 int16 int32 int64 uint8 uint16 uint32 uint64 bool".split()


def result_type(name: str, dtype: str) -> str:
    """NumPy's name of the type of results."""
    if name in ("min", "max"):
        return dtype
    if name in ("argmin", "argmax"):
        return "int64"
    if dtype not in INTEGERS:
        return "float64" if dtype == "float64" else "float32"
    if name in ("mean", "norm"):
        return "float64"
    return "uint64" if dtype.startswith("u") else "int64"


class Library:
    """Whose an array is: what is needed of the library that made it."""

    def empty(self, shape: Sequence[int], dtype: str, like: View) -> View:
        """A new C-contiguous array beside `like`."""
        raise NotImplementedError

    def contiguous(self, view: View) -> View:
        """The same elements behind one another in C order."""
        raise NotImplementedError

    def cast(self, view: View, dtype: str) -> View:
        """Elements converted as the library converts them."""
        raise NotImplementedError

    def permuted(self, view: View, axes: tuple[int, ...]) -> View:
        """Axes in this order, C-contiguous."""
        raise NotImplementedError

    def promoted(self, left: str, right: str) -> str:
        """The common type."""
        types = (_bfloat16() if name == "bfloat16" else np.dtype(name) for name in (left, right))
        try:
            return np.result_type(*types).name
        except TypeError:
            raise DtypeError(f"{left} and {right} have no common type: convert one of the arrays first") from None

    def given_back(self, view: View) -> Any:
        """The library's own array of what `empty` has made."""
        return view.array


class View(NamedTuple):
    """An array on a GPU."""

    library: Library
    array: Any
    address: int
    shape: tuple[int, ...]
    dtype: str
    contiguous: bool
    device: int
    place: tuple[int, int | None, bool]
    """GPU, stream's handle (`None`: ours), whether a call waits for its work."""
    read_only: bool = False

    @property
    def size(self) -> int:
        return math.prod(self.shape)


def find(x: object) -> View | None:
    """The array, if it is one on a GPU. A fork is refused before a library is asked for what it asks of the GPU."""
    if isinstance(x, (np.ndarray, np.generic, int, float, list, tuple, str)) or x is None:
        return None
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(x, torch.Tensor):
        return _torch(torch).find(x)
    cupy = sys.modules.get("cupy")
    if cupy is not None and isinstance(x, cupy.ndarray):
        _native.check_fork()
        return _cupy(cupy).view(x)
    if isinstance(x, DeviceArray):
        _native.check_fork()
        return _others.of_ours(x)
    if hasattr(x, "__dlpack_device__") and hasattr(x, "__dlpack__"):
        kind, device = (int(number) for number in x.__dlpack_device__())
        if kind in _ELSEWHERE:
            raise DtypeError(f"an array on a {_ELSEWHERE[kind]} device: arrays of the processor and of CUDA are taken")
        if kind not in (_CUDA, _CUDA_MANAGED):
            return None
        _native.check_fork()
        return _others.by_dlpack(x, device)
    # An array that is not on a GPU raises AttributeError.
    interface = getattr(x, "__cuda_array_interface__", None)
    if interface is None:
        return None
    _native.check_fork()
    return _others.by_interface(x, interface)


def find_all(function: str, *arrays: object) -> list[View] | None:
    """The same of arrays that go together: all on one GPU, or none."""
    views = [find(array) for array in arrays]
    found = [view for view in views if view is not None]
    if not found:
        return None
    first = found[0]
    for view in views:
        if view is None or type(view.library) is not type(first.library) or view.device != first.device:
            raise InputError(f"{function} takes arrays that are all on one GPU and of one library")
        if view.place != first.place:
            raise InputError(f"{function} takes arrays of one stream: wait for the other's first")
    return found


def known(view: View, function: str) -> View:
    """Refuses types that functions do not take."""
    if view.dtype not in NUMBERS:
        raise DtypeError(
            f"{function} takes bool, integers, float16, bfloat16, float32 and float64, not {view.dtype}"
        )
    return view


def converted(view: View, dtype: npt.DTypeLike | None, function: str) -> View:
    """With elements of `dtype`, if that is said."""
    if dtype is None:
        return view
    try:
        name = np.dtype(dtype).name
    except TypeError:
        # A type of the library's own, as `torch.float32`.
        name = str(dtype).rpartition(".")[2]
    if name not in NUMBERS:
        raise DtypeError(f"{function} converts to bool, integers and floats, not to {name}")
    return view if view.dtype == name else view.library.cast(view, name)


def prepared(view: View) -> View:
    """C-contiguous."""
    return view if view.contiguous else view.library.contiguous(view)


def to_host(view: View) -> npt.NDArray[Any]:
    """A copy in NumPy's memory."""
    view = prepared(view)
    if view.dtype == "bfloat16":
        host: npt.NDArray[Any] = np.empty(view.shape, np.uint16)
    else:
        host = np.empty(view.shape, view.dtype)
    if host.size:
        _native.device_copy(view.place, host, view.address, False)
    return host.view(_bfloat16()) if view.dtype == "bfloat16" else host


def from_host(values: npt.NDArray[Any], like: View) -> Any:
    """A copy beside `like`."""
    values = np.ascontiguousarray(values).reshape(values.shape)
    made = like.library.empty(values.shape, values.dtype.name, like)
    if values.size:
        host = values.view(np.uint16) if values.dtype.name == "bfloat16" else values
        _native.device_copy(made.place, host, made.address, True)
    return finished(made)


def finished(view: View) -> Any:
    """The library's array."""
    return view.library.given_back(view)


def host_or_same(x: Any) -> Any:
    """What lies on a GPU, as NumPy's; anything else as it is."""
    view = find(x)
    return x if view is None else to_host(view)


def _bfloat16() -> Any:
    try:
        import ml_dtypes
    except ImportError:
        raise DtypeError("bfloat16 in NumPy's arrays needs the package ml_dtypes") from None
    return ml_dtypes.bfloat16


class _Torch(Library):
    def __init__(self, torch: Any) -> None:
        self.torch = torch
        self.names = {getattr(torch, name): name for name in NUMBERS if hasattr(torch, name)}
        self.types = {name: dtype for dtype, name in self.names.items()}
        # What torch's own compiler asks; the public way makes an object of the stream first.
        raw: Callable[[int], int] | None = getattr(torch._C, "_cuda_getCurrentRawStream", None)
        self.stream: Callable[[int], int] = raw or (lambda device: torch.cuda.current_stream(device).cuda_stream)
        functions = getattr(torch.Tensor, "__dlpack_c_exchange_api__", None)
        if functions is not None:
            # With them, and this, the native part serves the common cases by itself.
            known = [(kind, NUMBERS[name], dlpack_code(name), self._results(name)) for name, kind in self.types.items()]
            _native.know_torch(torch.Tensor, functions, known)

    def _results(self, dtype: str) -> list[tuple[Any, int] | None]:
        """Of each operation on this type: the type of results and their bytes, if torch has it."""
        kinds = [result_type(op, dtype) for op in _OPERATIONS]
        return [(self.types[kind], SIZES[kind]) if kind in self.types else None for kind in kinds]

    def find(self, x: Any) -> View | None:
        if x.is_cuda:
            _native.check_fork()
            return self.view(x)
        if x.device.type not in ("cpu", "meta"):
            raise DtypeError(f"a tensor on {x.device}: tensors of the processor and of CUDA are taken")
        return None

    def view(self, x: Any) -> View:
        torch = self.torch
        if x.layout is not torch.strided:
            raise DtypeError(f"a tensor of layout {x.layout}: dense ones are taken")
        if x.requires_grad:
            x = x.detach()
        if x.is_neg():
            x = x.resolve_neg()
        device = x.get_device()
        name = self.names.get(x.dtype) or str(x.dtype)
        place = (device, self.stream(device), False)
        return View(self, x, x.data_ptr(), tuple(x.shape), name, x.is_contiguous(), device, place)

    def empty(self, shape: Sequence[int], dtype: str, like: View) -> View:
        made = self.torch.empty(tuple(shape), dtype=self._type(dtype), device=like.array.device)
        return View(self, made, made.data_ptr(), tuple(shape), dtype, True, like.device, like.place)

    def _type(self, name: str) -> Any:
        if name not in self.types:
            raise DtypeError(f"this version of torch has no {name}")
        return self.types[name]

    def contiguous(self, view: View) -> View:
        return self.view(view.array.contiguous())

    def cast(self, view: View, dtype: str) -> View:
        return self.view(view.array.to(self._type(dtype)))

    def permuted(self, view: View, axes: tuple[int, ...]) -> View:
        return self.view(view.array.permute(axes).contiguous())

    def promoted(self, left: str, right: str) -> str:
        return self.names[self.torch.promote_types(self.types[left], self.types[right])]


class _Cupy(Library):
    def __init__(self, cupy: Any) -> None:
        self.cupy = cupy

    def view(self, x: Any) -> View:
        device = int(x.device.id)
        stream = int(self.cupy.cuda.get_current_stream(device).ptr)
        contiguous = bool(x.flags.c_contiguous)
        if not x.dtype.isnative:
            raise DtypeError(f"an array of {x.dtype!r} on a GPU: types of native byte order are taken")
        place = (device, stream, False)
        return View(self, x, int(x.data.ptr), tuple(x.shape), x.dtype.name, contiguous, device, place)

    def empty(self, shape: Sequence[int], dtype: str, like: View) -> View:
        kind = _bfloat16() if dtype == "bfloat16" else dtype
        with self.cupy.cuda.Device(like.device):
            made = self.cupy.empty(tuple(shape), kind)
        return View(self, made, int(made.data.ptr), tuple(shape), dtype, True, like.device, like.place)

    def contiguous(self, view: View) -> View:
        with self.cupy.cuda.Device(view.device):
            return self.view(self.cupy.ascontiguousarray(view.array).reshape(view.shape))

    def cast(self, view: View, dtype: str) -> View:
        with self.cupy.cuda.Device(view.device):
            return self.view(view.array.astype(_bfloat16() if dtype == "bfloat16" else dtype))

    def permuted(self, view: View, axes: tuple[int, ...]) -> View:
        with self.cupy.cuda.Device(view.device):
            return self.view(self.cupy.ascontiguousarray(view.array.transpose(axes)))


class DeviceArray:
    """An array on a GPU that has the memory itself: a result of arrays whose library takes none back by DLPack.

    `torch.from_dlpack(x)`, `cupy.asarray(x)` and others make their own arrays of it, without a copy.
    """

    def __init__(self, shape: tuple[int, ...], dtype: str, device: int) -> None:
        size = SIZES[dtype]
        self.shape = shape
        """Its sizes."""
        self.dtype = dtype
        """Its elements' type, by NumPy's name."""
        self.device = device
        """The GPU's number."""
        self._memory = _native.DeviceMemory(device, math.prod(shape) * size)
        self._address: int = self._memory.address

    @property
    def ndim(self) -> int:
        """How many sizes it has."""
        return len(self.shape)

    def __getitem__(self, index: int) -> DeviceArray:
        if len(self.shape) < 1 or not 0 <= index < self.shape[0]:
            raise IndexError(f"element {index} of an array of shape {self.shape}")
        part = self.reshape(self.shape[1:])
        part._address += index * math.prod(self.shape[1:]) * SIZES[self.dtype]
        return part

    def reshape(self, shape: tuple[int, ...]) -> DeviceArray:
        """The same memory from the start, with these sizes."""
        other = object.__new__(DeviceArray)
        other.__dict__.update(self.__dict__)
        other.shape = shape
        return other

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        if copy is False:
            raise ValueError("an array on a GPU can't be NumPy's without a copy")
        view = _others.of_ours(self)
        return to_host(view) if dtype is None else to_host(view).astype(dtype)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        if self.dtype == "bfloat16":
            raise AttributeError("the CUDA array interface has no bfloat16; DLPack has")
        data = (self._address, False)
        return {"shape": self.shape, "typestr": np.dtype(self.dtype).str, "data": data, "version": 3, "strides": None}

    def __dlpack_device__(self) -> tuple[int, int]:
        return _CUDA, self.device

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        # Whatever the stream, the work that made it is done.
        if dl_device not in (None, self.__dlpack_device__()) or copy:
            raise BufferError("the array is handed out where it is, without a copy")
        versioned = max_version is not None and max_version[0] >= 1
        return _native.dlpack_capsule(
            self, self._address, list(self.shape), dlpack_code(self.dtype), self.__dlpack_device__(), versioned
        )

    def __repr__(self) -> str:
        return f"DeviceArray(shape={self.shape}, dtype={self.dtype}, device={self.device})"


class _Others(Library):
    """Libraries that are known by their protocols: calls wait for the end of their work."""

    def of_ours(self, x: DeviceArray, given: Any = None) -> View:
        place = (x.device, None, True)
        return View(self, x if given is None else given, x._address, x.shape, x.dtype, True, x.device, place)

    def by_dlpack(self, x: Any, device: int) -> View:
        stream = _native.own_stream(device)
        try:
            capsule = x.__dlpack__(stream=stream, max_version=(1, 0))
        except TypeError:
            capsule = x.__dlpack__(stream=stream)
        taken = _native.Imported(capsule)
        name = dlpack_type(*taken.dtype)
        shape = tuple(taken.shape)
        contiguous = is_contiguous(shape, taken.strides)
        # The capsule's content keeps the memory; it goes with the view.
        kept = _Kept(x, taken)
        place = (device, None, True)
        return View(self, kept, taken.address, shape, name, contiguous, device, place, taken.read_only)

    def by_interface(self, x: Any, interface: dict[str, Any]) -> View:
        if interface.get("mask") is not None:
            raise DtypeError("an array with a mask is not taken")
        kind: np.dtype[Any] = np.dtype(interface["typestr"])
        shape = tuple(interface["shape"])
        strides = interface.get("strides")
        if strides is not None:
            strides = [stride / kind.itemsize for stride in strides]
        stream = interface.get("stream")
        if stream == 0:
            raise InputError("an array whose stream is 0, which the CUDA array interface does not allow")
        address, read_only = interface["data"]
        address = int(address or 0)
        # An empty array has no memory, and its address may be anything.
        device = _native.device_of(address) if math.prod(shape) else _native.device_of_stream(stream)
        if not kind.isnative:
            raise DtypeError(f"an array of {kind!r} on a GPU: types of native byte order are taken")
        contiguous = is_contiguous(shape, strides)
        place = (device, stream, True)
        return View(self, _Kept(x, None), address, shape, kind.name, contiguous, device, place, bool(read_only))

    def empty(self, shape: Sequence[int], dtype: str, like: View) -> View:
        made = self.of_ours(DeviceArray(tuple(shape), dtype, like.device))
        given = like.array.given if isinstance(like.array, (_Kept, _Made)) else None
        return made._replace(array=_Made(given, made.array), place=like.place)

    def contiguous(self, view: View) -> View:
        raise InputError("an array on a GPU that is not C-contiguous: make a copy of it with its library first")

    def cast(self, view: View, dtype: str) -> View:
        cast = getattr(view.array.given if isinstance(view.array, _Kept) else None, "astype", None)
        found = None if cast is None else find(cast(dtype))
        if found is None:
            raise DtypeError(f"an array of {view.dtype} on a GPU: convert it to {dtype} with its library first")
        return found

    def permuted(self, view: View, axes: tuple[int, ...]) -> View:
        turn = getattr(view.array.given if isinstance(view.array, _Kept) else None, "transpose", None)
        found = None if turn is None else find(turn(axes))
        if found is None or not found.contiguous:
            raise InputError("axes of an array on a GPU that do not come last: reorder them with its library first")
        return found

    def given_back(self, view: View) -> Any:
        if not isinstance(view.array, _Made):
            # What `cast` has found.
            return view.array.given if isinstance(view.array, _Kept) else view.array
        return _given_back(view.array.given, view.array.ours)


class _Kept(NamedTuple):
    """A library's array, and what keeps its memory."""

    given: Any
    taken: Any


class _Made(NamedTuple):
    """A new array for the library of `given`."""

    given: Any
    ours: DeviceArray


def _given_back(given: Any, ours: DeviceArray) -> Any:
    """The array as one of the library of `given`, if that takes DLPack by the array API's name."""
    namespace = getattr(given, "__array_namespace__", None)
    from_dlpack = None if namespace is None else getattr(namespace(), "from_dlpack", None)
    return ours if from_dlpack is None else from_dlpack(ours)


_others = _Others()


@functools.cache
def _torch(torch: Any) -> _Torch:
    return _Torch(torch)


@functools.cache
def _cupy(cupy: Any) -> _Cupy:
    return _Cupy(cupy)


def dlpack_code(name: str) -> tuple[int, int]:
    """DLPack's code of a type, and its bits."""
    code = {"f": _FLOAT, "b": _BFLOAT, "i": _INT, "u": _UINT}[_RUST[name][0]]
    return _BOOL if name == "bool" else code, 8 * SIZES[name]


def dlpack_type(code: int, bits: int, lanes: int) -> str:
    """NumPy's name of DLPack's type, or one that no function takes."""
    kinds = {_INT: "int", _UINT: "uint", _FLOAT: "float", _BFLOAT: "bfloat"}
    if code == _BOOL and (bits, lanes) == (8, 1):
        return "bool"
    return f"{kinds.get(code, f'type {code} of ')}{bits}" + (f" × {lanes}" if lanes != 1 else "")


def is_contiguous(shape: Sequence[int], strides: Sequence[float] | None) -> bool:
    """Whether elements lie behind one another in C order; strides are in elements."""
    if strides is None or 0 in shape:
        return True
    expected = 1
    for size, stride in zip(reversed(shape), reversed(strides)):
        if size != 1 and stride != expected:
            return False
        expected *= size
    return True
