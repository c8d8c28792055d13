"""Kernels: compiling needs NVRTC and no GPU. Launches are in `test_gpu.py`."""

import os
import subprocess
import sys

import crosswarp as cw
import numpy as np
import pytest
from conftest import programs_of_the_pages
from crosswarp import _kernel, _native

AXPY = """
extern "C" __global__ void axpy(float* y, const float* x, float a, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += a * x[i];
}
"""

LADDER = """
#include "block.cuh"
#include "cluster.cuh"
#include "grid.cuh"
extern "C" __global__ void __launch_bounds__(256) sums(const float* x, float* warps, float* blocks) {
    __shared__ float part[32];
    float mine = x[blockIdx.x * blockDim.x + threadIdx.x];
    float of_warp = cw::warp().sum(mine);
    if (threadIdx.x % 32 == 0) warps[(blockIdx.x * blockDim.x + threadIdx.x) / 32] = of_warp;
    part[threadIdx.x / 32] = of_warp;
    __syncthreads();
    float total = 0;
    for (unsigned warp = 0; warp < blockDim.x / 32; ++warp) total += part[warp];
    blocks[blockIdx.x] = total;
}
"""


def compiler():
    try:
        cw.Kernel('extern "C" __global__ void nop() {}').compile("sm_90")
        return None
    except cw.GpuError as error:
        return str(error)


MISSING = compiler()
with_compiler = pytest.mark.skipif(
    MISSING is not None and not os.environ.get("CROSSWARP_REQUIRE_TOOLS"), reason="no NVRTC"
)


@with_compiler
def test_compiles_for_an_architecture():
    code = cw.Kernel(AXPY).compile("sm_90")
    assert code.arch == "sm_90" and code.cubin.startswith(b"\x7fELF")
    (needs,) = code.resources
    assert needs.name == "axpy" and needs.parameters == 4 and 4 <= needs.registers <= 64
    assert needs.shared == 0 and needs.local == 0 and needs.max_threads is None
    assert cw.Kernel(AXPY).compile("9.0").cubin == code.cubin


@with_compiler
def test_the_headers_of_all_levels_are_there():
    code = cw.Kernel(LADDER).compile("sm_90")
    (needs,) = code.resources
    assert needs.max_threads == 256 and needs.shared >= 128
    text = "".join(f'#include "{name}"\n' for name in _native.HEADERS if "/" not in name)
    assert cw.Kernel(text + AXPY).compile("sm_80").resources[0].name == "axpy"


@with_compiler
def test_own_headers_and_macros():
    text = '#include "mine.cuh"\nextern "C" __global__ void k(int* out) { *out = SIZE + mine; }'
    kernel = cw.Kernel(text, headers={"mine.cuh": "constexpr int mine = 3;"}, defines={"SIZE": 4})
    assert kernel.compile("sm_90").resources[0].name == "k"
    with pytest.raises(cw.InputError, match="mine.cuh"):
        cw.Kernel(text).compile("sm_90")


@with_compiler
def test_errors_have_the_place_and_the_line():
    with pytest.raises(cw.InputError, match=r'(?s)kernel.cu:2: error: .*"undefined".*undefined\(\);'):
        cw.Kernel('extern "C" __global__ void k() {\n    undefined();\n}').compile("sm_90")
    with pytest.raises(cw.InputError, match="fill.cu:1: error"):
        cw.Kernel("nonsense;", file="fill.cu").compile("sm_90")


@with_compiler
def test_arithmetic_is_not_contracted():
    """A multiplication and an addition stay two: the code has no fused instruction of its own."""
    text = 'extern "C" __global__ void k(float* x) { x[0] = x[1] * x[2] + x[3]; }'
    fused = text.replace("x[1] * x[2] + x[3]", "__fmaf_rn(x[1], x[2], x[3])")
    assert cw.Kernel(text).compile("sm_90").cubin != cw.Kernel(fused).compile("sm_90").cubin


@with_compiler
@pytest.mark.parametrize("program", programs_of_the_pages("needs-nvrtc"))
def test_programs_of_the_pages(program):
    subprocess.run([sys.executable, "-c", program], check=True, timeout=300)


def test_an_architecture_that_is_none():
    with pytest.raises(cw.InputError, match="sm_90"):
        cw.Kernel(AXPY).compile("hopper")
    with pytest.raises(cw.GpuError):
        cw.Kernel(AXPY).compile("sm_10")


def test_a_cubin_that_is_none():
    with pytest.raises(cw.InputError, match="cubin"):
        _native.cubin_resources(b"\x7fELF nothing")


def test_a_source_that_is_none():
    with pytest.raises(cw.DtypeError, match="text"):
        cw.Kernel(b"bytes")
    assert repr(cw.Kernel(AXPY, "axpy")) == "<Kernel axpy of kernel.cu>"


@pytest.mark.parametrize("size, expected", [(5, (5, 1, 1)), ((2, 3), (2, 3, 1)), ([1, 2, 3], (1, 2, 3))])
def test_sizes(size, expected):
    assert _kernel._size("grid", size) == expected


@pytest.mark.parametrize("size", [(), (1, 2, 3, 4), -1, 1.5, (2**32,), "ab"])
def test_sizes_that_are_none(size):
    with pytest.raises(cw.InputError, match="grid is"):
        _kernel._size("grid", size)


@pytest.mark.parametrize(
    "argument, size, expected",
    [
        (1, 4, b"\1\0\0\0"), (-1, 4, b"\xff" * 4), (2**32 - 1, 4, b"\xff" * 4), (True, 1, b"\1"), (-1, 8, b"\xff" * 8),
        (1.5, 4, np.float32(1.5).tobytes()), (1.5, 8, np.float64(1.5).tobytes()), (np.float16(1), 2, b"\0\x3c"),
        (np.uint8(7), 1, b"\7"), (np.array((1, 2.0), "i4,f4")[()], 8, b"\1\0\0\0\0\0\0\x40"),
    ],
)  # fmt: skip
def test_arguments(argument, size, expected):
    assert _kernel._packed("k", 0, argument, None, size) == expected


@pytest.mark.parametrize(
    "argument, size, error, text",
    [
        (2**32, 4, cw.InputError, "4294967296, its parameter has 4 bytes"),
        (-129, 1, cw.InputError, "has 1 bytes"),
        (True, 3, cw.InputError, "has 3 bytes"),
        (1.0, 2, cw.InputError, "is a float"),
        (np.float32(1), 8, cw.InputError, "has 4 bytes, its parameter 8"),
        (np.zeros(3), 8, cw.DtypeError, "in the processor's memory"),
        ([1], 8, cw.DtypeError, "is a list"),
        ("a", 8, cw.DtypeError, "is a str"),
    ],
)
def test_arguments_that_do_not_fit(argument, size, error, text):
    with pytest.raises(error, match=text):
        _kernel._packed("k", 0, argument, None, size)


def test_a_launch_without_a_gpu():
    try:
        _native.device_count()
    except cw.GpuError:
        with pytest.raises(cw.GpuError, match="no CUDA driver|no GPU"):
            cw.Kernel(AXPY)(1, 1)
    else:
        pytest.skip("there is a GPU: see test_gpu.py")
