"""On a GPU, with torch, CuPy and JAX, whatever of them is there: the bits are those of the processor."""

import os
import subprocess
import sys
import threading
import time

import crosswarp as cw
import numpy as np
import pytest
from conftest import programs_of_the_pages
from crosswarp import _device, _native


def gpus():
    try:
        return _native.device_count()
    except cw.GpuError as error:
        return str(error)


if not isinstance(gpus(), int):
    pytest.skip(f"no GPU: {gpus()}", allow_module_level=True)
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")


class Torch:
    name = "torch"

    def __init__(self):
        self.torch = pytest.importorskip("torch")
        if not self.torch.cuda.is_available():
            pytest.skip("torch has no CUDA")

    def put(self, array):
        if array.dtype.name == "bfloat16":
            return self.torch.from_numpy(array.view(np.int16)).cuda().view(self.torch.bfloat16)
        return self.torch.from_numpy(array).cuda()

    def get(self, x):
        assert isinstance(x, self.torch.Tensor) and x.is_cuda
        return x.cpu().numpy()


class Cupy:
    name = "cupy"

    def __init__(self):
        self.cupy = pytest.importorskip("cupy")

    def put(self, array):
        return self.cupy.asarray(array)

    def get(self, x):
        assert isinstance(x, self.cupy.ndarray)
        return x.get()


class Jax:
    name = "jax"

    def __init__(self):
        self.jax = pytest.importorskip("jax")
        self.jax.config.update("jax_enable_x64", True)
        try:
            self.device = self.jax.devices("gpu")[0]
        except RuntimeError as error:
            pytest.skip(f"JAX has no GPU: {error}")

    def put(self, array):
        return self.jax.device_put(array, self.device)

    def get(self, x):
        assert isinstance(x, self.jax.Array) and "cuda" in str(x.device).lower() + str(x.devices()).lower()
        return np.asarray(x)


class Plain:
    """The CUDA array interface alone."""

    name = "interface"

    def __init__(self):
        self.torch = Torch().torch

    def put(self, array):
        tensor = self.torch.from_numpy(array).cuda()
        self.torch.cuda.synchronize()

        class Interface:
            __cuda_array_interface__ = tensor.__cuda_array_interface__
            kept = tensor

        return Interface()

    def get(self, x):
        assert isinstance(x, cw.DeviceArray)
        return np.asarray(x)


@pytest.fixture(params=[Torch, Cupy, Jax, Plain], ids=lambda kind: kind.name)
def library(request):
    return request.param()


def same(found, expected):
    expected = np.asarray(expected)
    assert found.dtype == expected.dtype and found.shape == expected.shape
    assert found.tobytes() == expected.tobytes(), (found, expected)


rng = np.random.default_rng(17)
DTYPES = [np.float16, np.float32, np.float64, np.int8, np.int32, np.int64, np.uint8, np.bool_]
REDUCTIONS = ["sum", "prod", "min", "max", "argmin", "argmax", "mean", "norm"]


def values(shape, dtype):
    if dtype == np.bool_:
        return rng.random(shape) < 0.5
    if np.dtype(dtype).kind == "f":
        return (rng.standard_normal(shape) * 3).astype(dtype)
    low = 0 if np.dtype(dtype).kind == "u" else -100
    return rng.integers(low, 100, shape).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: np.dtype(dtype).name)
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions_of_all(library, name, dtype):
    function = getattr(cw, name)
    for shape in [(1,), (1000,), (300_001,), (37, 41)]:
        a = values(shape, dtype)
        same(library.get(function(library.put(a))), function(a))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.uint8], ids=lambda dtype: np.dtype(dtype).name)
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions_along_axes(library, name, dtype):
    function = getattr(cw, name)
    a = values((5, 3000, 7), dtype)
    x = library.put(a)
    for axis in (0, 1, 2, -1):
        same(library.get(function(x, axis=axis)), function(a, axis=axis))
    same(library.get(function(x, axis=1, keepdims=True)), function(a, axis=1, keepdims=True))
    if not name.startswith("arg"):
        same(library.get(function(x, axis=(0, 1))), function(a, axis=(0, 1)))
        same(library.get(function(x, axis=(1, 2))), function(a, axis=(1, 2)))


def test_special_values(library):
    for row in ([np.nan, 1.0], [np.inf, -np.inf], [3e38, 3e38, -3e38], [-0.0], [-0.0, 0.0], [1e-40] * 5):
        a = np.array(row, np.float32)
        for name in REDUCTIONS:
            same(library.get(getattr(cw, name)(library.put(a))), getattr(cw, name)(a))


def test_exact_sums(library):
    a = (rng.standard_normal((4, 5000)) * 1e10).astype(np.float32)
    same(library.get(cw.sum(library.put(a), exact=True)), cw.sum(a, exact=True))
    same(library.get(cw.sum(library.put(a), axis=1, exact=True)), cw.sum(a, axis=1, exact=True))


def test_dot(library):
    for dtype in (np.float32, np.float64, np.int32):
        a, b = values((9, 7001), dtype), values((9, 7001), dtype)
        x, y = library.put(a), library.put(b)
        same(library.get(cw.dot(x, y, axis=1)), cw.dot(a, b, axis=1))
        flat = library.put(a.ravel()), library.put(b.ravel())
        same(library.get(cw.dot(*flat)), cw.dot(a.ravel(), b.ravel()))
    with pytest.raises(cw.InputError, match="must be equal"):
        cw.dot(library.put(np.ones(3)), library.put(np.ones(4)))
    with pytest.raises(cw.InputError, match="one GPU"):
        cw.dot(library.put(np.ones(3)), np.ones(3))


def test_no_elements(library):
    x = library.put(np.zeros((0, 3), np.float32))
    same(library.get(cw.sum(x)), np.float32(0))
    same(library.get(cw.prod(x, axis=0)), np.ones(3, np.float32))
    same(library.get(cw.sum(x, axis=1)), np.zeros(0, np.float32))
    for name in ("min", "argmax", "mean"):
        with pytest.raises(cw.InputError, match="no elements"):
            getattr(cw, name)(x)


def test_a_wanted_type(library):
    a = values((100,), np.float32)
    if library.name == "interface":
        with pytest.raises(cw.DtypeError, match="convert it"):
            cw.sum(library.put(a), dtype=np.float64)
        return
    same(library.get(cw.sum(library.put(a), dtype=np.float64)), cw.sum(a, dtype=np.float64))


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.int32, np.int64, np.float32, np.float64], ids=lambda d: np.dtype(d).name)
def test_histograms(library, dtype):
    a = np.abs(values((200_000,), dtype))
    x = library.put(a)
    for how in ({"bins": 10}, {"bins": 100, "range": (1, 50)}, {"bins": [0, 1, 2.5, 80]}):
        if library.name == "interface" and dtype in (np.int64, np.float32):
            # These are compared in another type, and such arrays have nothing that converts them.
            continue
        found, expected = cw.histogram(x, **how), cw.histogram(a, **how)
        same(library.get(found[0]), expected[0])
        assert np.array_equal(library.get(found[1]), expected[1])
    if library.name != "interface" or dtype != np.int64:
        found, expected = cw.histogram(x, 10, density=True), cw.histogram(a, 10, density=True)
        assert np.array_equal(library.get(found[0]), expected[0])


def test_weighted_histograms_go_through_the_host(library):
    a, w = values((1000,), np.float32), values((1000,), np.float32)
    found, expected = cw.histogram(library.put(a), 7, weights=library.put(w)), cw.histogram(a, 7, weights=w)
    same(library.get(found[0]), expected[0])


@pytest.mark.parametrize("dtype", [np.uint8, np.int32, np.int64], ids=lambda dtype: np.dtype(dtype).name)
def test_bincount(library, dtype):
    a = rng.integers(0, 100, 100_000).astype(dtype)
    if library.name == "interface" and dtype == np.int64:
        return
    for minlength in (0, 1000):
        same(library.get(cw.bincount(library.put(a), minlength=minlength)), cw.bincount(a, minlength=minlength))
    if dtype != np.uint8:
        with pytest.raises(cw.InputError, match="negative"):
            cw.bincount(library.put(-a))


@pytest.mark.parametrize("dtype", [np.uint8, np.float16, np.float32, np.float64], ids=lambda dtype: np.dtype(dtype).name)
def test_transpose(library, dtype):
    for shape in [(3, 5), (1000, 777), (3, 64, 128), (0, 4), (1, 9)]:
        a = values(shape, dtype)
        same(library.get(cw.transpose(library.put(a))), cw.transpose(a))


def test_fill_and_poisson(library):
    dem = np.add.outer(np.arange(65.0), np.arange(65.0) ** 1.5)
    dem[20:40, 10:30] = np.nan
    found, expected = cw.fill(library.put(dem)), cw.fill(dem)
    same(library.get(found.field), expected.field)
    assert found.sha256() == expected.sha256() and found.converged
    f = -values((65, 65), np.float64)
    found, expected = cw.poisson(library.put(f), spacing=1 / 64), cw.poisson(f, spacing=1 / 64)
    same(library.get(found.field), expected.field)
    assert np.array_equal(found.history, expected.history)


@pytest.fixture
def there(library, monkeypatch):
    """Calls a function that copies no array between the GPU and the host."""

    def refused(*_):
        raise AssertionError("an array is copied")

    def call(function, *arguments, **options):
        with monkeypatch.context() as patched:
            # Who has only an interface cannot convert.
            if library.name != "interface":
                patched.setattr("crosswarp._device.to_host", refused)
                patched.setattr("crosswarp._device.from_host", refused)
            return function(*arguments, **options)

    return call


def test_voids_without_a_copy(library, there):
    dem = values((70, 131), np.float64)
    unknown = np.add.outer(np.arange(70) // 9, np.arange(131) // 7) % 3 == 0
    unknown[40:44] = True
    for dtype in (np.float64, np.float32):
        grid = np.where(unknown, np.nan, dem).astype(dtype)
        marked = np.where(unknown, -9999.0, dem).astype(dtype)
        for given in [
            (grid, {}),
            (grid, {"known": ~unknown & (dem != dem[3, 5])}),
            (marked, {"nodata": -9999.0}),
            (grid, {"known": (~unknown).astype(np.uint8)}),
        ]:
            array, options = given
            on_gpu = {k: library.put(v) if k == "known" else v for k, v in options.items()}
            found, expected = there(cw.fill, library.put(array), **on_gpu), cw.fill(array, **options)
            same(library.get(found.field), expected.field)
            said = ["method", "converged", "cycles", "levels", "floor", "floor_reached"]
            assert all(getattr(found, name) == getattr(expected, name) for name in said)
            assert np.array_equal(found.history, expected.history)


def test_voids_that_the_host_says_more_of(library):
    for wrong, match in ((np.inf, "finite"), (np.nan, "is known")):
        dem = np.full((70, 50), 1.0 if np.isinf(wrong) else np.nan)
        dem[10, 10] = wrong
        dem[20:30] = np.nan
        with pytest.raises(cw.InputError, match=match):
            cw.fill(library.put(dem))
    with pytest.raises(cw.InputError, match="two dimensions"):
        cw.fill(library.put(np.ones((4, 5, 6))))
    dem = np.add.outer(np.arange(70), np.arange(50)).astype(np.int32)
    for given in [{"nodata": 60}, {"nodata": 60, "rim": "interpolated"}]:
        same(library.get(cw.fill(library.put(dem), **given).field), cw.fill(dem, **given).field)


def test_operators_without_a_copy(library, there):
    source = values((70, 131), np.float64)
    # So that cycles are not slow.
    kappa = np.exp(np.outer(np.sin(np.arange(70) / 9), np.cos(np.arange(131) / 7)))
    fixed = values((70, 131), np.float64) > 0.4
    for dtype in (np.float64, np.float32):
        for given in [
            {"coefficient": kappa},
            {"coefficient": kappa.astype(np.float32), "reaction": kappa, "left": ("neumann", 0.5), "top": ("robin", 1.0, 2.0, 0.5)},
            {"fixed": fixed, "initial": source, "right": "neumann"},
            {"fixed": fixed.astype(np.int32), "coefficient": kappa, "spacing": (0.01, 0.02)},
        ]:
            given = {"source": source, "spacing": 0.01, **given}
            on_gpu = {k: library.put(v) if isinstance(v, np.ndarray) else v for k, v in given.items()}
            found = there(cw.solve, source.shape, dtype=dtype, **on_gpu)
            expected = cw.solve(source.shape, dtype=dtype, **given)
            same(library.get(found.field), expected.field)
            assert np.array_equal(found.history, expected.history) and found.floor == expected.floor


def test_operators_that_the_host_says_more_of(library):
    source = values((70, 131), np.float64)
    for name, what in (("coefficient", 0.0), ("coefficient", np.nan), ("reaction", -1.0)):
        wrong = np.ones(source.shape)
        wrong[5, 6] = what
        with pytest.raises(cw.InputError, match="column 6, row 5"):
            cw.solve(source.shape, source=library.put(source), **{name: library.put(wrong)})
    found = cw.solve(source.shape, source=library.put(source), coefficient=2.0, reaction=library.put(np.ones(source.shape)))
    expected = cw.solve(source.shape, source=source, coefficient=2.0, reaction=np.ones(source.shape))
    same(library.get(found.field), expected.field)


def test_planes_without_a_copy(library, there):
    source, first = values((70, 131), np.float64), values((70, 131), np.float32)
    fixed = np.zeros(source.shape, bool)
    fixed[::7, 5] = True
    for dtype in (np.float64, np.float32):
        for given in [
            {"source": source},
            {"source": source, "initial": first, "fixed": fixed},
            {"initial": first.astype(np.float64), "left": first[:, 0], "right": "neumann"},
            {"source": np.ascontiguousarray(source[::-1]), "sides": "periodic", "project_source": True},
        ]:
            on_gpu = {k: library.put(v) if k in ("source", "initial", "fixed") else v for k, v in given.items()}
            found = there(cw.solve, source.shape, dtype=dtype, spacing=0.01, **on_gpu)
            expected = cw.solve(source.shape, dtype=dtype, spacing=0.01, **given)
            same(library.get(found.field), expected.field)
            assert np.array_equal(found.history, expected.history)
            said = ["method", "converged", "cycles", "levels", "floor", "floor_reached", "projected"]
            assert all(getattr(found, name) == getattr(expected, name) for name in said)
    seen = []
    cw.poisson(library.put(source), progress=lambda cycle, residual: seen.append(cycle))
    assert seen
    with pytest.raises(cw.InputError, match="must cancel"):
        cw.poisson(library.put(np.ones((40, 40))), sides="periodic")
    with pytest.raises(cw.InputError, match="shape"):
        cw.solve((70, 130), source=library.put(source))


def test_planes_that_the_host_says_more_of(library):
    source = values((70, 131), np.float64)
    source[3, 4] = np.nan
    with pytest.raises(cw.InputError, match="finite"):
        cw.poisson(library.put(source))


def test_boxes_without_a_copy(library):
    source = values((20, 33, 41), np.float64)
    for dtype in (np.float64, np.float32):
        for given in [
            {"source": source},
            {"source": source, "left": "neumann", "front": ("neumann", 0.5)},
            {"source": source, "top": 1.0, "initial": source},
            {"source": source, "sides": "periodic", "project_source": True, "initial": source},
        ]:
            on_gpu = {k: library.put(v) if k in ("source", "initial") else v for k, v in given.items()}
            found = cw.solve(source.shape, dtype=dtype, spacing=0.01, **on_gpu)
            expected = cw.solve(source.shape, dtype=dtype, spacing=0.01, **given)
            same(library.get(found.field), expected.field)
            assert np.array_equal(found.history, expected.history) and found.projected == expected.projected
    source[3, 4, 5] = np.nan
    with pytest.raises(cw.InputError, match="finite"):
        cw.poisson(library.put(source))


def test_a_hierarchy_stays_on_the_gpu(library):
    kappa = np.exp(values((65, 80), np.float64))
    for given in [{}, {"left": "neumann", "dtype": np.float32}, {"coefficient": kappa, "top": ("robin", 1.0, 2.0, 0.5)}]:
        levels = cw.Hierarchy((65, 80), **given)
        for seed in range(3):
            f = (seed + 1) * values((65, 80), np.float64)
            first = values((65, 80), np.float64) if seed == 1 else None
            on_gpu = None if first is None else library.put(first)
            for method in ("auto", "mgcg"):
                found = levels.solve(library.put(f), on_gpu, method=method)
                expected = levels.solve(f, first, method=method)
                same(library.get(found.field), expected.field)
                assert np.array_equal(found.history, expected.history)
        b = values((65 * 80,), np.float64)
        assert (levels.operator @ b).shape == b.shape


@pytest.mark.parametrize("method", ["mg", "mgcg", "cg", "chebyshev"])
def test_every_method_solves_planes_and_boxes(library, method):
    how = {"method": method, "max_cycles": 4} if method.startswith("mg") else {"method": method, "max_sweeps": 9}
    f, kappa = values((40, 50), np.float64), np.exp(values((40, 50), np.float64))
    box, inside = values((20, 24, 30), np.float64), np.exp(values((20, 24, 30), np.float64))
    fixed = np.zeros(box.shape, bool)
    fixed[7, 8, 9] = True
    for source, others, sides in [
        (f, {}, {"left": "neumann"}),
        (f, {"coefficient": kappa}, {"top": ("robin", 1.0, 2.0, 0.5)}),
        (box, {}, {"front": "neumann"}),
        (box, {"coefficient": inside, "fixed": fixed}, {"left": ("robin", 1.0, 2.0, 0.5)}),
    ]:
        on_gpu = {name: library.put(array) for name, array in others.items()}
        with pytest.warns(cw.ConvergenceWarning):
            found = cw.solve(source.shape, source=library.put(source), sides=sides, **on_gpu, **how)
        with pytest.warns(cw.ConvergenceWarning):
            expected = cw.solve(source.shape, source=source, sides=sides, **others, **how)
        same(library.get(found.field), expected.field)
        assert np.array_equal(found.history, expected.history)


def test_bits_and_hash(library):
    a = values((100,), np.float32)
    assert cw.sha256(library.put(a)) == cw.sha256(a)
    assert cw.bits(cw.sum(library.put(a))) == cw.bits(cw.sum(a))


def test_layouts_of_torch():
    library = Torch()
    a = values((300, 200), np.float32)
    x = library.put(a)
    for view, expected in [(x.T, a.T), (x[::2, 3:], a[::2, 3:]), (x[5], a[5]), (x[:, 7], a[:, 7])]:
        same(library.get(cw.sum(view)), cw.sum(expected))
        same(library.get(cw.norm(view, axis=0)), cw.norm(expected, axis=0))
    b = x.clone().requires_grad_()
    assert not cw.sum(b).requires_grad
    with pytest.raises(cw.DtypeError, match="complex64"):
        cw.sum(library.torch.zeros(3, dtype=library.torch.complex64, device="cuda"))


def test_bfloat16_of_torch():
    library = Torch()
    ml_dtypes = pytest.importorskip("ml_dtypes")
    a = rng.standard_normal(10_000).astype(ml_dtypes.bfloat16)
    x = library.put(a)
    assert x.dtype == library.torch.bfloat16
    same(library.get(cw.sum(x)), cw.sum(a))
    assert float(cw.max(x)) == float(cw.max(a)) and cw.max(x).dtype == library.torch.bfloat16


def test_work_is_in_the_order_of_torchs_stream():
    library = Torch()
    torch = library.torch
    a = values((1 << 22,), np.float32)
    expected = cw.sum(a * np.float32(2))
    for _ in range(20):
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            x = library.put(a)
            torch.cuda._sleep(10_000_000)
            y = x * 2
            found = cw.sum(y)
            # Memory that goes back to torch at once, and is written again.
            del y
            z = torch.full((1 << 22,), 7.0, device="cuda")
            doubled = found * 1
        stream.synchronize()
        assert doubled.cpu().numpy() == expected and z[0] == 7
    # Legacy default stream and others, alternated.
    x = library.put(a)
    for _ in range(10):
        y = x * 2
        assert cw.sum(y).item() == expected


def test_work_is_in_the_order_of_cupys_stream():
    cupy = Cupy().cupy
    a = values((1 << 22,), np.float32)
    expected = cw.sum(a * np.float32(2))
    for stream in [cupy.cuda.Stream(non_blocking=True) for _ in range(80)] + [cupy.cuda.Stream.null]:
        with stream:
            x = cupy.asarray(a)
            found = cw.sum(x * 2)
        stream.synchronize()
        assert found.get() == expected


def test_threads_with_streams_of_their_own():
    import threading

    torch = Torch().torch
    a = [values((100_003,), np.float32) for _ in range(4)]
    wrong = []

    def work(k):
        with torch.cuda.stream(torch.cuda.Stream()):
            x = torch.from_numpy(a[k]).cuda()
            expected = cw.sum(a[k])
            wrong.extend(1 for _ in range(200) if cw.sum(x).item() != expected)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert not wrong


def test_the_current_device_of_torch_stays():
    torch = Torch().torch
    if torch.cuda.device_count() < 2:
        pytest.skip("one GPU")
    a = values((1000,), np.float32)
    x = torch.from_numpy(a).cuda(1)
    for current in (0, 1):
        torch.cuda.set_device(current)
        found = cw.sum(x)
        assert found.device.index == 1 and torch.cuda.current_device() == current
        assert torch.empty(1, device="cuda").device.index == current
        assert found.item() == cw.sum(a)
    torch.cuda.set_device(0)


def test_a_stream_that_is_recorded_is_refused():
    torch = Torch().torch
    x = torch.ones(1000, device="cuda")
    cw.sum(x)
    graph = torch.cuda.CUDAGraph()
    with pytest.raises(cw.GpuError, match="graph"):
        with torch.cuda.graph(graph):
            cw.sum(x)
    assert cw.sum(x).item() == 1000


AXPY = """
extern "C" __global__ void axpy(float* y, const float* x, float a, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += a * x[i];
}
"""


def test_kernels(library):
    n = 1000
    a, b = values((n,), np.float32), values((n,), np.float32)
    x, y = library.put(a), library.put(b)
    kernel = cw.Kernel(AXPY)
    kernel((n + 255) // 256, 256, (y, x, 1.5, n))
    found = library.get(y) if library.name != "interface" else y.kept.cpu().numpy()
    same(found, b + np.float32(1.5) * a)
    with pytest.raises(cw.InputError, match="4 parameters"):
        kernel(1, 256, (y, x))
    with pytest.raises(cw.InputError, match="axpy"):
        kernel(1, 4096, (y, x, 1.5, n))
    with pytest.raises(cw.DtypeError, match="processor"):
        kernel(1, 256, (y, a, 1.5, n))


def test_a_kernel_of_clusters_and_shared_memory():
    torch = Torch().torch
    if torch.cuda.get_device_capability() < (9, 0):
        pytest.skip("no clusters")
    text = """
    #include "cluster.cuh"
    extern "C" __global__ void sums(const float* x, float* out) {
        extern __shared__ float part[];
        part[threadIdx.x] = x[blockIdx.x * blockDim.x + threadIdx.x];
        __syncthreads();
        float total = 0;
        for (int i = 0; i < blockDim.x; ++i) total += part[i];
        if (threadIdx.x == 0) out[blockIdx.x] = total;
    }
    """
    x, out = torch.ones(8 * 128, device="cuda"), torch.zeros(8, device="cuda")
    cw.Kernel(text)(8, 128, (x, out), cluster=4, shared=512)
    assert out.tolist() == [128.0] * 8
    with pytest.raises(cw.InputError, match="multiple"):
        cw.Kernel(text)(6, 128, (x, out), cluster=4, shared=512)


WAIT = """
extern "C" __global__ void wait(volatile int* word, int* seen) {
    unsigned long long start, now;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(start));
    do asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now)); while (*word == 0 && now - start < 20000000000ull);
    *seen = *word ? 1 : 2;
}
"""


@pytest.mark.parametrize("what", ["kernel", "memory"])
def test_letting_go_leaves_the_interpreter_to_others(what):
    """The GPU's work ends when another thread of Python says so, which it can while a destructor waits for that work."""
    torch = Torch().torch
    word, seen = torch.zeros(1, dtype=torch.int32, pin_memory=True), torch.zeros(1, dtype=torch.int32, device="cuda")
    kernel = cw.Kernel(WAIT)
    things = {"kernel": kernel, "memory": cw.DeviceArray((1000,), "float32", 0)}
    things = {what: things[what]}
    launched = threading.Event()

    def say():
        launched.wait()
        time.sleep(0.2)
        word[0] = 1

    thread = threading.Thread(target=say)
    thread.start()
    kernel(1, 1, (np.uint64(word.data_ptr()), seen))
    if what == "kernel":
        del kernel
    launched.set()
    del things[what]
    thread.join()
    torch.cuda.synchronize()
    assert seen.item() == 1


def test_histograms_that_are_kept_have_bounds():
    torch = Torch().torch
    x = torch.rand(1000, device="cuda")

    def count(bins, shift):
        edges = np.linspace(0, 1 + shift, bins + 1, dtype=np.float32)
        assert cw.histogram(x, edges)[0].sum().item() == 1000

    count(1 << 22, 0)
    torch.cuda.synchronize()
    before = torch.cuda.mem_get_info()[0]
    for shift in range(1, 13):
        count(1 << 22, shift)
    # Threads let go what others still use.
    threads = [threading.Thread(target=lambda k=k: [count(10, k + 10 * j) for j in range(20)]) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    torch.cuda.synchronize()
    assert before - torch.cuda.mem_get_info()[0] <= 100 << 20


def test_memory_that_is_read_only_is_not_written():
    plain = Plain()
    x, out = plain.put(np.ones((2, 3), np.float32)), plain.put(np.zeros((3, 2), np.float32))
    said = type(out).__cuda_array_interface__
    type(out).__cuda_array_interface__ = {**said, "data": (said["data"][0], True)}
    with pytest.raises(cw.InputError, match="read-only"):
        cw.transpose(x, out)
    assert not out.kept.any().item()


def test_jax_arrays_come_back_without_a_copy_of_the_host():
    library = Jax()
    x = library.jax.numpy.arange(1 << 20, dtype=library.jax.numpy.float32)
    total = cw.sum(x * 2)
    assert isinstance(total, library.jax.Array) and float(total) == float(cw.sum(np.arange(1 << 20, dtype=np.float32) * 2))
    assert float(total / 2) == float(total) / 2


def test_device_arrays():
    torch = Torch().torch
    made = cw.transpose(Plain().put(np.arange(6, dtype=np.float32).reshape(2, 3)))
    assert isinstance(made, cw.DeviceArray) and made.shape == (3, 2) and "float32" in repr(made)
    tensor = torch.from_dlpack(made)
    assert tensor.data_ptr() == made._address and tensor.tolist() == [[0, 3], [1, 4], [2, 5]]
    assert torch.as_tensor(made, device="cuda").tolist() == tensor.tolist()
    assert cw.sum(made) is not None and np.asarray(cw.sum(made)) == 15
    del made
    assert tensor.sum().item() == 15


FORKED = """
import os, sys, torch
import crosswarp as cw
x = torch.ones(10, device="cuda")
assert cw.sum(x).item() == 10
child = os.fork()
if child == 0:
    try:
        cw.sum(x)
    except cw.GpuError as error:
        os._exit(7 if "forked" in str(error) and cw.sum([1, 2]) == 3 else 1)
    os._exit(2)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_after_a_fork():
    Torch()
    assert subprocess.run([sys.executable, "-c", FORKED], timeout=300).returncode == 7


def test_memory_does_not_grow():
    torch = Torch().torch
    x = torch.ones(1 << 20, device="cuda")
    cw.sum(x)
    cw.sum(x, axis=0)
    torch.cuda.synchronize()
    before = torch.cuda.mem_get_info()[0]
    for _ in range(2000):
        cw.sum(x)
    torch.cuda.synchronize()
    assert before - torch.cuda.mem_get_info()[0] <= 4 << 20


@pytest.mark.parametrize("program", programs_of_the_pages("needs-gpu"))
def test_programs_of_the_pages(program):
    Torch()
    subprocess.run([sys.executable, "-c", program], check=True, timeout=300)


def test_views_are_of_the_library():
    view = _device.find(Torch().put(np.zeros((2, 3), np.float32)))
    assert (view.shape, view.dtype, view.contiguous, view.device) == ((2, 3), "float32", True, 0)


def test_what_the_short_way_leaves_to_the_long_one():
    """Tensors that are not served by the native part alone have the same results."""
    library = Torch()
    torch = library.torch
    a = values((6, 7), np.float32)
    x = library.put(a)
    cw.sum(x)

    class Sub(torch.Tensor):
        pass

    strided = library.put(np.repeat(a, 2, axis=1))[:, ::2]
    wanting = x.clone().requires_grad_()
    for other in (x.as_subclass(Sub), strided, wanting, torch.nn.Parameter(x.clone())):
        for axis in (None, 0, 1, -1):
            same(library.get(cw.sum(other, axis=axis)), cw.sum(a, axis=axis))
    assert not cw.sum(wanting).requires_grad
    # A negated view has the bits of what it shows.
    negated = torch._neg_view(x)
    assert negated.is_contiguous() and negated.is_neg()
    same(library.get(cw.sum(negated, axis=0)), cw.sum(-a, axis=0))
    same(library.get(cw.transpose(negated)), cw.transpose(-a))
    for axis in (2, -3):
        with pytest.raises(cw.InputError, match="axis"):
            cw.sum(x, axis=axis)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.uint8, np.uint16, np.int32, np.int64, np.bool_])
def test_even_bins_that_are_kept(dtype):
    library = Torch()
    a = values(5000, dtype)
    x = library.put(a)
    for bins, span in ((10, (0, 9)), (10, (0.0, 9.0)), (7, (0, 9)), (10, (np.float64(0), np.float64(9)))):
        for samples in (x, x, x[:0], x):
            counts, edges = cw.histogram(samples, bins, span)
            expected, at = cw.histogram(a[: len(samples)], bins, span)
            same(library.get(counts), expected)
            same(library.get(edges), at)
            # Results are the caller's own.
            counts += 1
            edges += 1
