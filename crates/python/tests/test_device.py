"""Arrays on a GPU where there is none: protocols, what is refused and in what words. `test_gpu.py` is for a GPU."""

import gc
import os
import subprocess
import sys
import weakref

import crosswarp as cw
import numpy as np
import pytest
from crosswarp import _device, _native

CUDA, ROCM = 2, 10


def gpus():
    try:
        return _native.device_count()
    except cw.GpuError:
        return 0


without_gpu = pytest.mark.skipif(gpus() > 0, reason="there is a GPU: see test_gpu.py")


class Interface:
    """Says that it lies on a GPU."""

    def __init__(self, **interface):
        default = {"shape": (4,), "typestr": "<f4", "data": (4096, False), "version": 3, "strides": None}
        self.__cuda_array_interface__ = {**default, **interface}


class Packed:
    """Says so by DLPack."""

    def __init__(self, kind=CUDA):
        self.kind, self.asked = kind, []

    def __dlpack_device__(self):
        return self.kind, 0

    def __dlpack__(self, **how):
        self.asked.append(how)
        return np.zeros(4, np.float32).__dlpack__()


FUNCTIONS = [
    cw.sum, cw.prod, cw.min, cw.max, cw.argmin, cw.argmax, cw.mean, cw.norm, lambda a: cw.dot(a, a), cw.histogram,
    cw.bincount, cw.transpose, cw.poisson, cw.fill, cw.bits, cw.sha256, lambda a: cw.solve((2, 2), initial=a),
]  # fmt: skip


@without_gpu
@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("make", [Interface, Packed])
def test_without_a_gpu_it_is_said(function, make):
    with pytest.raises(cw.GpuError, match="no CUDA driver|no GPU"):
        function(make())


@without_gpu
def test_a_gpu_is_an_error_of_run_time():
    with pytest.raises(RuntimeError):
        _native.device_count()
    assert issubclass(cw.GpuError, cw.Error)


def test_other_devices_are_refused():
    with pytest.raises(cw.DtypeError, match="ROCm"):
        cw.sum(Packed(ROCM))


def test_what_an_interface_must_not_say_is_refused():
    with pytest.raises(cw.InputError, match="stream is 0"):
        cw.sum(Interface(stream=0))
    with pytest.raises(cw.DtypeError, match="mask"):
        cw.sum(Interface(mask=np.ones(4, bool)))


def test_arrays_of_the_processor_are_numpys():
    class Elsewhere:
        def __init__(self, array):
            self.array = array

        def __dlpack_device__(self):
            return 1, 0

        def __dlpack__(self, **how):
            raise AssertionError("not asked")

        def __array__(self, dtype=None, copy=None):
            return self.array

    assert cw.sum(Elsewhere(np.arange(4.0))) == 6
    assert _device.find(np.zeros(3)) is None and _device.find([1, 2]) is None and _device.find(None) is None


@pytest.fixture
def no_gpu_is_asked(monkeypatch):
    for function, answer in [("check_fork", None), ("own_stream", 0), ("device_of", 0)]:
        monkeypatch.setattr(_native, function, lambda *_, answer=answer: answer)


@pytest.mark.parametrize("read_only", [False, True])
def test_read_only_arrays_of_protocols_are_known_as_such(no_gpu_is_asked, read_only):
    there = np.zeros(4, np.float32)
    there.flags.writeable = not read_only

    class ByDlpack(Packed):
        def __dlpack__(self, *, stream, **how):
            return there.__dlpack__(**how)

    for array in (ByDlpack(), Interface(data=(4096, read_only))):
        view = _device.find(array)
        assert view is not None and view.read_only is read_only


def test_what_may_be_read_only_is_not_written(no_gpu_is_asked):
    class Matrix(Packed):
        def __init__(self, shape, version, kind=CUDA):
            super().__init__(kind)
            self.version, self.there = version, np.zeros(shape, np.float32)

        def __dlpack__(self, **how):
            return self.there.__dlpack__(max_version=self.version)

    # Before version 1.0 DLPack does not tell: NumPy takes such memory for read-only, too.
    assert not np.from_dlpack(Matrix((3, 2), None, kind=1)).flags.writeable
    with pytest.raises(cw.InputError, match="out may be read-only"):
        cw.transpose(Matrix((2, 3), (1, 0)), Matrix((3, 2), None))
    locked = Matrix((3, 2), (1, 0))
    locked.there.flags.writeable = False
    with pytest.raises(cw.InputError, match="out may be read-only"):
        cw.transpose(Matrix((2, 3), (1, 0)), locked)


def test_an_empty_array_is_on_its_streams_gpu(monkeypatch):
    monkeypatch.setattr(_native, "check_fork", lambda: None)
    monkeypatch.setattr(_native, "device_of_stream", lambda stream: {None: 2, 1: 2, 4096: 3}[stream])
    for stream, device in [(None, 2), (1, 2), (4096, 3)]:
        for address in (0, 4096):
            view = _device.find(Interface(shape=(3, 0), data=(address, False), stream=stream))
            assert view is not None and view.device == view.place[0] == device


class _Elsewhere:
    """A module as CuPy is, whose arrays say nothing unless they are asked on a GPU."""

    class ndarray:
        @property
        def device(self):
            raise AssertionError("asked")


@pytest.mark.parametrize("kind", ["cupy", "dlpack", "interface", "ours"])
def test_a_fork_is_refused_before_a_library_is_asked(monkeypatch, kind):
    def refuse():
        raise cw.GpuError("forked")

    def ask(*_):
        raise AssertionError("asked")

    monkeypatch.setattr(_native, "check_fork", refuse)
    for function in ("own_stream", "device_of", "device_of_stream"):
        monkeypatch.setattr(_native, function, ask)
    monkeypatch.setitem(sys.modules, "cupy", _Elsewhere)
    ours = object.__new__(cw.DeviceArray)
    array = {"cupy": _Elsewhere.ndarray(), "dlpack": Packed(), "interface": Interface(), "ours": ours}[kind]
    with pytest.raises(cw.GpuError, match="forked"):
        _device.find(array)
    # What lies elsewhere is taken in a fork, too.
    assert _device.find(Packed(1)) is None and _device.find(np.zeros(3)) is None


def test_types_that_go_together():
    library = _device.Library()
    assert library.promoted("float16", "int64") == "float64"
    pytest.importorskip("ml_dtypes")
    assert library.promoted("bfloat16", "bfloat16") == "bfloat16"
    assert library.promoted("float32", "bfloat16") == library.promoted("bfloat16", "float32") == "float32"
    for other in _device.NUMBERS:
        try:
            assert library.promoted("bfloat16", other) in _device.NUMBERS
        except cw.DtypeError as error:
            assert "convert one" in str(error)


@without_gpu
def test_arrays_of_two_places_do_not_go_together(monkeypatch):
    view = _device.View(_device._others, None, 4096, (4,), "float32", True, 0, (0, None, True))
    monkeypatch.setattr(_device, "find", lambda x: view if isinstance(x, Interface) else None)
    with pytest.raises(cw.InputError, match="one GPU"):
        _device.find_all("dot", Interface(), np.zeros(4))


@pytest.mark.parametrize(
    "shape, strides, expected",
    [
        ((2, 3), None, True), ((2, 3), (3, 1), True), ((2, 3), (1, 2), False), ((2, 3), (6, 2), False),
        ((1, 3), (99, 1), True), ((2, 1), (1, 7), True), ((0, 3), (1, 1), True), ((), (), True), ((4,), (-1,), False),
        ((4,), (0,), False), ((2,), (0.5,), False),
    ],
)  # fmt: skip
def test_contiguity(shape, strides, expected):
    assert _device.is_contiguous(shape, strides) is expected


@pytest.mark.parametrize("dtype", ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"])
def test_types_of_dlpack(dtype):
    taken = _native.Imported(np.zeros(3, dtype).__dlpack__())
    assert _device.dlpack_type(*taken.dtype) == np.dtype(dtype).name


def test_types_that_are_none():
    assert _device.dlpack_type(4, 16, 1) == "bfloat16"
    for code, bits, lanes in [(2, 8, 1), (5, 64, 1), (2, 32, 4), (6, 1, 1), (99, 8, 1)]:
        assert _device.dlpack_type(code, bits, lanes) not in _device.NUMBERS
    assert set(_device.NUMBERS) == set(_device.SIZES)
    assert all(np.dtype(name).itemsize == size for name, size in _device.SIZES.items() if name != "bfloat16")


@pytest.mark.parametrize("versioned", [False, True])
def test_what_dlpack_says_is_read(versioned):
    a = np.arange(24.0).reshape(4, 6)[1:, ::2]
    capsule = a.__dlpack__(max_version=(1, 0)) if versioned else a.__dlpack__()
    taken = _native.Imported(capsule)
    assert taken.address == a.__array_interface__["data"][0]
    assert taken.shape == [3, 3] and taken.strides == [6, 2]
    assert taken.device == (1, 0) and taken.read_only is not versioned


def test_read_only_arrays_say_so():
    a = np.zeros(3)
    a.flags.writeable = False
    assert _native.Imported(a.__dlpack__(max_version=(1, 0))).read_only


@pytest.mark.parametrize("versioned", [False, True])
def test_memory_lives_as_long_as_what_was_taken(versioned):
    class Array(np.ndarray):
        pass

    a = np.zeros(3).view(Array)
    gone = weakref.ref(a)
    capsule = a.__dlpack__(max_version=(1, 0)) if versioned else a.__dlpack__()
    taken = _native.Imported(capsule)
    del a, capsule
    gc.collect()
    assert gone() is not None
    del taken
    gc.collect()
    assert gone() is None


def test_a_capsule_is_taken_once():
    capsule = np.zeros(3).__dlpack__()
    _native.Imported(capsule)
    with pytest.raises(cw.DtypeError, match="has been taken"):
        _native.Imported(capsule)


class Owner:
    pass


def exported(shape, versioned, array):
    owner = Owner()
    owner.array = array
    address = array.__array_interface__["data"][0]
    return _native.dlpack_capsule(owner, address, shape, (2, 64), (1, 0), versioned), weakref.ref(owner)


@pytest.mark.parametrize("versioned", [False, True])
def test_what_is_handed_out_is_numpys(versioned):
    array = np.arange(6.0)
    capsule, owner = exported([2, 3], versioned, array)

    class Holder:
        def __dlpack_device__(self):
            return 1, 0

        def __dlpack__(self, **how):
            return capsule

    made = np.from_dlpack(Holder())
    assert made.tolist() == [[0, 1, 2], [3, 4, 5]] and np.shares_memory(made, array)
    del capsule
    gc.collect()
    assert owner() is not None
    del made
    gc.collect()
    assert owner() is None


@pytest.mark.parametrize("versioned", [False, True])
def test_what_nobody_takes_is_let_go(versioned):
    capsule, owner = exported([0, 3], versioned, np.zeros(1))
    assert owner() is not None
    del capsule
    gc.collect()
    assert owner() is None


def test_round_trip():
    capsule, owner = exported([6], True, np.arange(6.0))
    taken = _native.Imported(capsule)
    assert (taken.shape, taken.strides, taken.dtype) == ([6], [1], (2, 64, 1))
    del capsule
    assert owner() is not None
    del taken
    gc.collect()
    assert owner() is None


FORKED = """
import os, sys
import crosswarp as cw
from crosswarp import _native
class Interface:
    __cuda_array_interface__ = {"shape": (4,), "typestr": "<f4", "data": (4096, False), "version": 3}
try:
    _native.device_count()
except cw.GpuError:
    pass
child = os.fork()
if child == 0:
    try:
        cw.sum(Interface())
    except cw.GpuError as error:
        os._exit(7 if "forked" in str(error) and cw.sum([1, 2]) == 3 else 1)
    os._exit(2)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_after_a_fork_a_gpu_is_refused():
    assert subprocess.run([sys.executable, "-c", FORKED], timeout=60).returncode == 7


def test_a_package_that_is_there_is_not_imported():
    program = "import sys, crosswarp as cw; cw.sum([1]); print([m for m in ('torch', 'cupy', 'jax') if m in sys.modules])"
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "[]"


torch = None
if os.environ.get("CROSSWARP_REQUIRE_TORCH"):
    import torch


@pytest.mark.skipif(torch is None, reason="CROSSWARP_REQUIRE_TORCH is not set")
def test_tensors_of_the_processor():
    x = torch.arange(10, dtype=torch.float32).reshape(2, 5)
    assert _device.find(x) is None
    assert cw.sum(x) == 45 and cw.sum(x.T, axis=1).tolist() == [5, 7, 9, 11, 13]
    # A tensor on no device at all.
    with pytest.raises((TypeError, NotImplementedError, RuntimeError)):
        cw.sum(torch.empty(3, device="meta"))
