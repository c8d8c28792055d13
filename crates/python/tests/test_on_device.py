"""Shapes, axes, types and bins of arrays on a GPU, without one: the native part is stood in for by the processor's, which
reads the same addresses."""

import ctypes

import crosswarp as cw
import numpy as np
import pytest
from crosswarp import _device, _kernel, _native, _on_device

NAMES = {number: name for name, number in _device.NUMBERS.items() if name != "bool"}


class Stand(np.ndarray):
    """An array that is said to lie on a GPU."""


class Library(_device.Library):
    def view(self, x):
        place = (0, 0, False)
        address = x.__array_interface__["data"][0]
        read_only = not x.flags.writeable
        return _device.View(self, x, address, x.shape, x.dtype.name, x.flags.c_contiguous, 0, place, read_only)

    def empty(self, shape, dtype, like):
        return self.view(np.zeros(shape, dtype).view(Stand))

    def contiguous(self, view):
        return self.view(np.ascontiguousarray(view.array).reshape(view.shape).view(Stand))

    def cast(self, view, dtype):
        return self.view(view.array.astype(dtype))

    def permuted(self, view, axes):
        return self.contiguous(self.view(view.array.transpose(axes)))

    def first(self, view):
        return view.array[:1].reshape(())


LIBRARY = Library()


def memory(address, length, dtype):
    dtype = np.dtype(dtype)
    if length == 0:
        return np.zeros(0, dtype)
    return np.frombuffer((ctypes.c_char * (length * dtype.itemsize)).from_address(address), dtype)


def device_reduce(place, op, dtype, inputs, length, shape, out, out_bytes):
    name = "sum" if op == _on_device.EXACT else ["sum", "", "prod", "min", "max", "argmin", "argmax", "mean", "norm", "dot"][op]
    exact = {"exact": True} if op == _on_device.EXACT else {}
    arrays = [memory(address, length, NAMES[dtype]) for address in inputs[: 1 + (name == "dot")]]
    if shape[1] == 0:
        found, count = getattr(cw, name)(*arrays, **exact), 1
    else:
        assert np.prod(shape) == length
        assert shape[2] == 1 or (name != "prod" and not (exact and NAMES[dtype].startswith("f")))
        found = getattr(cw, name)(*(array.reshape(shape) for array in arrays), axis=1, **exact)
        count = shape[0] * shape[2]
        assert found.dtype.itemsize == out_bytes
    memory(out, count, np.asarray(found).dtype)[:] = np.asarray(found).ravel()


def device_extremes(place, dtype, address, length):
    ends = [cw.min(memory(address, length, NAMES[dtype])), cw.max(memory(address, length, NAMES[dtype]))]
    return tuple(int.from_bytes(end.tobytes(), "little") for end in ends)


def device_transpose(place, size, source, target, shape):
    a = memory(source, int(np.prod(shape)), f"u{size}").reshape(shape)
    memory(target, a.size, f"u{size}")[:] = a.swapaxes(1, 2).ravel()


def device_histogram(place, dtype, samples, length, edges, values, output):
    assert NAMES[dtype] in ("uint8", "uint16", "int32", "float32", "float64")
    a = memory(samples, length, NAMES[dtype])
    assert edges.flags.c_contiguous and edges.dtype == (a.dtype if a.dtype.kind == "f" else np.int64)
    if values:
        counts = np.bincount(a, minlength=int(edges[1]))
    else:
        counts = np.zeros(len(edges) - 1, np.int64)
        _native.histogram(a, edges, None, counts, 0)
    memory(output, len(counts), np.int64)[:] = counts


def device_copy(place, array, address, to_device):
    there = memory(address, array.nbytes, np.uint8)
    here = array.reshape(-1).view(np.uint8)
    (there if to_device else here)[:] = here if to_device else there


@pytest.fixture(autouse=True)
def stands(monkeypatch):
    for function in (device_reduce, device_extremes, device_transpose, device_histogram, device_copy):
        monkeypatch.setattr(_native, function.__name__, function)

    def find(x):
        return LIBRARY.view(x) if isinstance(x, Stand) else None

    for module in (_device, _on_device, _kernel):
        monkeypatch.setattr(module, "find", find)
    # The short way takes NumPy's arrays, and these are.
    for short in ("whole", "whole_dot", "bincount_of_few"):
        real = getattr(_native, short)

        def asked(*arguments, real=real):
            return None if any(isinstance(x, Stand) for x in arguments) else real(*arguments)

        monkeypatch.setattr(_native, short, asked)


def put(array):
    return np.array(array, order="K", copy=True, subok=False).view(Stand)


def same(found, expected):
    assert isinstance(found, Stand)
    expected = np.asarray(expected)
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    assert found.tobytes() == expected.tobytes()


rng = np.random.default_rng(5)
REDUCTIONS = ["sum", "prod", "min", "max", "argmin", "argmax", "mean", "norm"]
DTYPES = ["float16", "float32", "float64", "int8", "int64", "uint8", "uint32", "bool"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions(name, dtype):
    function = getattr(cw, name)
    a = (rng.random((3, 4, 5, 1, 2)) * 3).astype(dtype)
    x = put(a)
    for keepdims in (False, True):
        same(function(x, keepdims=keepdims), function(a, keepdims=keepdims))
        axes = [0, 1, 2, 3, 4, -1, -2]
        if not name.startswith("arg"):
            axes += [(0, 1), (1, 2), (3, 4), (0, 2), (0, 4), (1, 3, 4), (0, 1, 2, 3, 4), (4, 0), ()]
        for axis in axes:
            same(function(x, axis=axis, keepdims=keepdims), function(a, axis=axis, keepdims=keepdims))
    for view, expected in [(x.T, a.T), (x[::2], a[::2]), (x[..., 0], a[..., 0]), (x[0, 0, 0, 0, :1], a[0, 0, 0, 0, :1])]:
        same(function(view, axis=0), function(expected, axis=0))
        same(function(view), function(expected))
    with pytest.raises(cw.InputError, match="axis 9"):
        function(x, axis=9)


def test_exact_sums():
    a = rng.standard_normal((3, 40, 5)).astype(np.float32)
    for axis in (None, 0, 1, 2, (0, 1), (1, 2)):
        same(cw.sum(put(a), axis=axis, exact=True), cw.sum(a, axis=axis, exact=True))


def test_wanted_types():
    a = rng.random((4, 6)).astype(np.float32)
    for axis in (None, 0, 1):
        same(cw.sum(put(a), axis=axis, dtype=np.float64), cw.sum(a, axis=axis, dtype=np.float64))
        same(cw.mean(put(a), axis=axis, dtype="float16"), cw.mean(a, axis=axis, dtype="float16"))
    with pytest.raises(cw.DtypeError, match="complex"):
        cw.sum(put(a), dtype=complex)
    with pytest.raises(cw.DtypeError, match="complex128"):
        cw.sum(put(a.astype(complex)))


def test_no_elements():
    a = np.zeros((0, 3), np.float32)
    for name in REDUCTIONS:
        function = getattr(cw, name)
        for axis in (None, 0, 1):
            try:
                expected = function(a, axis=axis)
            except cw.InputError:
                with pytest.raises(cw.InputError):
                    function(put(a), axis=axis)
            else:
                same(function(put(a), axis=axis), expected)


def test_dot():
    a, b = rng.random((4, 50)), rng.random((4, 50))
    same(cw.dot(put(a[0]), put(b[0])), cw.dot(a[0], b[0]))
    for axis in (0, 1, (0, 1)):
        same(cw.dot(put(a), put(b), axis=axis), cw.dot(a, b, axis=axis))
    mixed = a.astype(np.float32)
    same(cw.dot(put(mixed), put(b), axis=1), cw.dot(mixed, b, axis=1))
    same(cw.dot(put(a.T), put(b.T), axis=0), cw.dot(a.T, b.T, axis=0))
    with pytest.raises(cw.InputError, match="needs axis"):
        cw.dot(put(a), put(b))
    with pytest.raises(cw.InputError, match="must be equal"):
        cw.dot(put(a), put(b[:2]))
    with pytest.raises(cw.InputError, match="one GPU"):
        cw.dot(put(a), b)


@pytest.mark.parametrize("dtype", DTYPES + ["int32", "uint16", "uint64"])
def test_histograms(dtype):
    a = (rng.random((30, 40)) * 100).astype(dtype)
    ways = [
        {}, {"bins": 7}, {"bins": 5, "range": (10, 60.5)}, {"bins": [0, 1, 1, 50]}, {"bins": [0.5, 3, 99.5]}, {"bins": "sqrt"},
        {"bins": [3, 3]}, {"bins": 4, "density": True}, {"bins": 4, "weights": a},
    ]  # fmt: skip
    for how in ways:
        if dtype == "bool" and how.get("bins") == "sqrt":
            continue
        expected = cw.histogram(a, **how)
        how = {name: put(value) if value is a else value for name, value in how.items()}
        counts, edges = cw.histogram(put(a), **how)
        same(counts, expected[0])
        assert np.array_equal(edges, expected[1]) and isinstance(edges, Stand)
    same(cw.histogram(put(a[:0]))[0], cw.histogram(a[:0])[0])
    with pytest.raises(cw.InputError):
        cw.histogram(put(a), bins=[3, 2])
    with pytest.raises(cw.InputError, match="at most"):
        cw.histogram(put(a), bins=1 << 29)


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint8", "uint64", "bool"])
def test_bincount(dtype):
    a = (rng.random(500) * 100).astype(dtype)
    for minlength in (0, 3, 1000):
        same(cw.bincount(put(a), minlength=minlength), cw.bincount(a, minlength=minlength))
    w = rng.random(500)
    same(cw.bincount(put(a), weights=put(w)), cw.bincount(a, weights=w))
    same(cw.bincount(put(a[:0]), minlength=2), np.zeros(2, np.int64))
    for wrong in (put(a.reshape(5, 100)), put(a.astype(float))):
        with pytest.raises((cw.InputError, cw.DtypeError)):
            cw.bincount(wrong)
    if np.dtype(dtype).kind == "i":
        with pytest.raises(cw.InputError, match="negative"):
            cw.bincount(put(-a - 1))


@pytest.mark.parametrize("dtype", ["bool", "int16", "float32", "float64"])
def test_transpose(dtype):
    for shape in [(3, 5), (2, 3, 4, 5), (0, 4), (1, 7)]:
        a = (rng.random(shape) * 9).astype(dtype)
        same(cw.transpose(put(a)), cw.transpose(a))
        same(cw.transpose(put(a.swapaxes(-1, -2))), cw.transpose(a.swapaxes(-1, -2)))
        out = put(np.zeros_like(cw.transpose(a)))
        assert cw.transpose(put(a), out) is out
        same(out, cw.transpose(a))
    x = put(np.zeros((3, 5), dtype))
    with pytest.raises(cw.InputError, match="on the same GPU"):
        cw.transpose(x, np.zeros((5, 3), dtype))
    with pytest.raises(cw.InputError, match="of shape"):
        cw.transpose(x, put(np.zeros((3, 5), dtype)))
    with pytest.raises(cw.DtypeError):
        cw.transpose(x, put(np.zeros((5, 3), np.uint8)))
    with pytest.raises(cw.InputError, match="matrix"):
        cw.transpose(x[0])
    fixed = put(np.zeros((5, 3), dtype))
    fixed.flags.writeable = False
    with pytest.raises(cw.InputError, match="read-only"):
        cw.transpose(x, fixed)


def test_hashes_and_bits():
    a = rng.random((3, 4))
    assert cw.sha256(put(a)) == cw.sha256(a) and cw.sha256(put(a).T) == cw.sha256(a.T)
    assert cw.bits(cw.sum(put(a))) == cw.bits(cw.sum(a))
    assert np.array_equal(cw.bits(put(a)), cw.bits(a))


def test_arguments_of_kernels_are_addresses():
    x = put(np.zeros(3))
    view = LIBRARY.view(x)
    assert _kernel._packed("k", 0, x, view, 8) == view.address.to_bytes(8, "little")
    with pytest.raises(cw.InputError, match="has 8 bytes, its parameter 4"):
        _kernel._packed("k", 0, x, view, 4)
    assert _kernel._place([None, view, view], 3) == (0, 0, False)
    assert _kernel._place([None], 3) == (3, None, True)


@pytest.fixture
def on_torch(monkeypatch):
    """Tensors of the processor that are said to lie on a GPU, by what is there for torch's."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    library = _device._Torch(torch)
    library.stream = lambda device: 0

    def find(x):
        if isinstance(x, torch.Tensor):
            return library.view(x)._replace(device=0, place=(0, 0, False))
        return None

    for module in (_device, _on_device, _kernel):
        monkeypatch.setattr(module, "find", find)
    return torch


def test_the_way_of_torch(on_torch):
    torch = on_torch

    def same(found, expected):
        assert isinstance(found, torch.Tensor)
        found, expected = found.numpy(), np.asarray(expected)
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
        assert found.tobytes() == expected.tobytes()

    for dtype in DTYPES:
        a = (rng.random((3, 4, 5)) * 3).astype(dtype)
        x = torch.from_numpy(a)
        for name in REDUCTIONS:
            function = getattr(cw, name)
            same(function(x), function(a))
            for axis in (0, 1, 2):
                same(function(x, axis=axis), function(a, axis=axis))
                same(function(x.permute(2, 0, 1), axis=axis, keepdims=True), function(a.transpose(2, 0, 1), axis=axis, keepdims=True))
            if not name.startswith("arg"):
                same(function(x, axis=(0, 2)), function(a, axis=(0, 2)))
        counts, edges = cw.histogram(x, 5)
        expected = cw.histogram(a, 5)
        same(counts, expected[0])
        same(edges, expected[1])
        same(cw.transpose(x), cw.transpose(a))
        assert cw.sha256(x) == cw.sha256(a)
    a, b = rng.random(50).astype(np.float32), rng.integers(0, 50, 50)
    # torch's rules for types, not NumPy's: float32 and int64 are float32.
    same(cw.dot(torch.from_numpy(a), torch.from_numpy(b)), cw.dot(a, b.astype(np.float32)))
    same(cw.bincount(torch.from_numpy(b)), cw.bincount(b))
    same(cw.sum(torch.from_numpy(a), dtype=torch.float64), cw.sum(a, dtype=np.float64))
    x = torch.ones(3, requires_grad=True)
    assert cw.sum(x).item() == 3 and not cw.sum(x).requires_grad
    negative = torch.conj(torch.complex(torch.zeros(3), torch.ones(3))).imag
    assert negative.is_neg() and cw.sum(negative).item() == -3
    with pytest.raises(cw.DtypeError, match="complex64"):
        cw.sum(torch.zeros(3, dtype=torch.complex64))
    with pytest.raises(cw.DtypeError, match="layout"):
        cw.sum(torch.zeros(3, 3).to_sparse())
