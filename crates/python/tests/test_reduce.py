"""Reductions against NumPy, `math.fsum` and the command."""

import builtins
import fractions
import json
import math
import subprocess

import crosswarp as cw
import hypothesis.extra.numpy as hnp
import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

INTEGERS = [np.dtype(f"{kind}{size}") for kind in "iu" for size in (1, 2, 4, 8)]
FLOATS = [np.dtype(name) for name in ("float16", "float32", "float64")]
BF16 = np.dtype(ml_dtypes.bfloat16)
ALL = [np.dtype(bool), *INTEGERS, *FLOATS, BF16]
FUNCTIONS = ["sum", "prod", "min", "max", "argmin", "argmax", "mean", "norm"]

shapes = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=9)


@st.composite
def arrays_and_axes(draw, dtypes, nonempty=False):
    shape = draw(hnp.array_shapes(min_dims=1, max_dims=4, min_side=int(nonempty), max_side=9))
    dtype = draw(st.sampled_from(dtypes))
    if dtype == BF16:
        array = draw(hnp.arrays(np.float32, shape)).astype(BF16)
    else:
        array = draw(hnp.arrays(dtype, shape))
    axis = draw(st.one_of(st.none(), hnp.valid_tuple_axes(len(shape), min_size=1)))
    # Views of any layout.
    array = array.transpose(draw(st.permutations(range(len(shape)))))
    if draw(st.booleans()):
        array = array[tuple(slice(None, None, draw(st.sampled_from([1, 2, -1]))) for _ in shape)]
    if nonempty and array.size == 0:
        array = np.ones(shape, dtype)
    return array, axis


def same_bits(a, b):
    a, b = np.asarray(a), np.asarray(b)
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


@given(arrays_and_axes([d for d in ALL if d.kind in "biu"]))
def test_integers_are_numpys(case):
    a, axis = case
    assert same_bits(cw.sum(a, axis), np.sum(a, axis))
    assert same_bits(cw.prod(a, axis), np.prod(a, axis))


@given(arrays_and_axes(INTEGERS, nonempty=True))
def test_extrema_of_integers_are_numpys(case):
    a, axis = case
    assert same_bits(cw.min(a, axis), np.min(a, axis))
    assert same_bits(cw.max(a, axis), np.max(a, axis))
    one = None if axis is None else axis[0]
    assert same_bits(cw.argmin(a, one), np.argmin(a, one))
    assert same_bits(cw.argmax(a, one), np.argmax(a, one))


@given(arrays_and_axes(FLOATS, nonempty=True))
def test_extrema_of_floats_are_numpys(case):
    a, axis = case
    # NumPy does not order the zeros.
    a = a + a.dtype.type(0)
    assert np.array_equal(cw.min(a, axis), np.min(a, axis), equal_nan=True)
    assert np.array_equal(cw.max(a, axis), np.max(a, axis), equal_nan=True)
    one = None if axis is None else axis[0]
    assert same_bits(cw.argmax(a, one), np.argmax(a, one))
    assert same_bits(cw.argmin(a, one), np.argmin(a, one))


@given(hnp.arrays(np.float64, st.integers(0, 3000), elements=st.floats(allow_nan=False, allow_infinity=False)))
def test_the_exact_sum_is_fsums(a):
    try:
        expected = math.fsum(a)
    except OverflowError:  # fsum's partial sums overflow, ours do not.
        exact = sum(map(fractions.Fraction, a.tolist()))
        try:
            expected = float(exact)
        except OverflowError:
            expected = math.inf if exact > 0 else -math.inf
    assert float(cw.sum(a, exact=True)) == expected
    assert float(cw.sum(a[::-1], exact=True)) == expected


@given(hnp.arrays(np.float64, st.integers(1, 3000), elements=st.floats(-1e6, 1e6)))
def test_sums_are_near_the_exact_one(a):
    # Fifteen additions in a lane, seven levels of lanes: each half a unit of the sum of magnitudes.
    slack = 23 * np.finfo(float).eps * math.fsum(np.abs(a))
    assert abs(float(cw.sum(a)) - math.fsum(a)) <= slack
    assert abs(float(cw.mean(a)) - math.fsum(a) / len(a)) <= slack / len(a) + abs(math.fsum(a)) * 1e-15
    root = math.sqrt(math.fsum(a * a))
    assert float(cw.norm(a)) == pytest.approx(root, rel=1e-14, abs=1e-150)
    assert float(cw.dot(a, a)) == pytest.approx(root * root, rel=1e-13, abs=1e-300)


@pytest.mark.parametrize("function", FUNCTIONS)
@given(case=arrays_and_axes(ALL, nonempty=True))
def test_views_have_the_bits_of_their_contiguous_copy(function, case):
    a, axis = case
    if function.startswith("arg") and axis is not None:
        axis = axis[0]
    f = getattr(cw, function)
    assert same_bits(f(a, axis), f(np.ascontiguousarray(a), axis))
    # Along axes, the bits are those of each part alone.
    if isinstance(axis, tuple):
        axis = [k % a.ndim for k in axis]
        kept = [k for k in range(a.ndim) if k not in axis]
        parts = a.transpose(*kept, *sorted(axis)).reshape(*(a.shape[k] for k in kept), -1)
        alone = [f(parts[at].reshape(-1).copy()) for at in np.ndindex(*parts.shape[:-1])]
        assert [cw.bits(x) for x in np.ravel(f(a, axis))] == [cw.bits(x) for x in alone]


@pytest.mark.parametrize("dtype", ALL, ids=str)
@pytest.mark.parametrize(
    "shape", [(3, 5000), (5000, 3), (4, 2500, 7), (70_000,), (70, 333), (129, 200), (5000, 100)]
)
def test_larger_arrays_by_rows_columns_and_threads(dtype, shape):
    rng = np.random.default_rng(5)
    a = (rng.standard_normal(shape) * 50).astype(dtype)
    for function in FUNCTIONS:
        f = getattr(cw, function)
        assert same_bits(f(a), f(a, threads=1))
        for axis in range(len(shape)):
            moved = np.moveaxis(a, axis, -1)
            rows = moved.reshape(-1, shape[axis])
            expected = [cw.bits(f(row.copy())) for row in rows[:10]]
            assert [cw.bits(x) for x in np.ravel(f(a, axis))[:10]] == expected
            assert same_bits(f(a, axis), f(a, axis, threads=7))


@given(arrays_and_axes([np.dtype(np.float64), np.dtype(np.int32)]), st.data())
def test_dot_along_axes(case, data):
    a, axis = case
    b = data.draw(hnp.arrays(a.dtype, a.shape))
    if axis is None and a.ndim > 1:
        with pytest.raises(cw.InputError):
            cw.dot(a, b)
        axis = tuple(range(a.ndim))
    got = cw.dot(a, b, axis)
    if a.dtype.kind == "i":
        with np.errstate(over="ignore"):
            assert same_bits(got, np.sum(a.astype(np.int64) * b, axis))
    else:
        with np.errstate(all="ignore"):
            size = np.sum(np.abs(a * b), axis)
            near = np.abs(got - np.sum(a * b, axis)) <= 1e-13 * size
        assert np.all(~np.isfinite(size) | near)


def test_special_values():
    nan = cw.sum(np.array([1.0, -np.nan]))
    assert cw.bits(nan) == "0x7ff8000000000000"
    assert cw.bits(cw.sum(np.array([np.inf, -np.inf]))) == "0x7ff8000000000000"
    # No overflow on the way.
    assert cw.sum(np.array([1e308, 1e308, -1e308, -1e308])) == 0
    assert cw.sum(np.array([1e308, 1e308])) == np.inf
    assert cw.norm(np.array([1e300])) == np.inf
    assert cw.bits(cw.sum(np.array([-0.0, -0.0]))) == "0x8000000000000000"
    assert np.isnan(cw.max(np.array([1.0, np.nan]))) and cw.argmax(np.array([1.0, np.nan, 2.0])) == 1
    assert cw.sum(np.array([2**63 - 1, 1])) == -(2**63)
    assert cw.sum(np.full(200, 65504, np.float16)) == np.float32(200 * 65504)


def test_no_elements():
    empty = np.zeros(0)
    assert (cw.sum(empty), cw.prod(empty), cw.norm(empty), cw.dot(empty, empty)) == (0, 1, 0, 0)
    for function in ["min", "max", "argmin", "argmax", "mean"]:
        with pytest.raises(cw.InputError, match="no elements"):
            getattr(cw, function)(empty)
    assert cw.sum(np.zeros((0, 3)), axis=0).tolist() == [0, 0, 0]
    assert cw.sum(np.zeros((3, 0)), axis=1).tolist() == [0, 0, 0]
    assert cw.min(np.zeros((0, 3)), axis=1).shape == (0,)


def test_dtype_and_keepdims():
    a = np.full((4, 5), 0.1, np.float32)
    assert cw.sum(a, dtype=np.float64).dtype == np.float64
    assert cw.sum(a, dtype=np.float64) == cw.sum(a.astype(np.float64))
    assert cw.sum(np.array([300, 300], np.int64), dtype=np.uint8) == np.sum([300, 300], dtype=np.uint8)
    assert cw.mean(a, 0, keepdims=True).shape == (1, 5)
    assert cw.max(a, keepdims=True).shape == (1, 1)
    assert cw.sum(a.astype(">f4")) == cw.sum(a)


def test_what_makes_no_sense_is_refused():
    a = np.ones((2, 3))
    for wrong in [
        lambda: cw.sum(a, axis=2),
        lambda: cw.sum(a, axis=(0, 0)),
        lambda: cw.sum(a, axis=(1, -1)),
        lambda: cw.argmax(a, axis=(0, 1)),
        lambda: cw.dot([1, 2], [1, 2, 3]),
        lambda: cw.sum(a, threads=0),
    ]:
        with pytest.raises(ValueError) as error:
            wrong()
        assert isinstance(error.value, cw.Error)
    for wrong in [np.array([1j]), np.array(["a"]), np.array([object()]), np.array([1], np.longdouble)]:
        with pytest.raises(TypeError) as error:
            cw.sum(wrong)
        assert isinstance(error.value, cw.Error)


def test_inputs_are_not_changed():
    a = np.arange(12.0).reshape(3, 4)[:, ::2]
    a.flags.writeable = False
    before = a.copy()
    for function in FUNCTIONS:
        getattr(cw, function)(a, 0)
    assert np.array_equal(a, before)


@pytest.mark.parametrize("dtype", [d for d in ALL if d != BF16 and d.kind != "b"], ids=str)
def test_the_bits_are_those_of_the_command(dtype, tmp_path):
    a = (np.random.default_rng(9).standard_normal(100_003) * 90).astype(dtype)
    np.save(tmp_path / "a.npy", a)
    for op, function in [("sum", cw.sum), ("prod", cw.prod), ("mean", cw.mean), ("norm2", cw.norm), ("max", cw.max)]:
        run = ["crosswarp", "reduce", op, tmp_path / "a.npy", "--backend", "cpu", "--json"]
        printed = subprocess.run(run, check=True, capture_output=True, text=True)
        assert json.loads(printed.stdout)["bits"] == cw.bits(function(a))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@given(data=st.data())
def test_short_rows_have_the_bits_of_long_ones(dtype, data):
    # Elements that are -0.0 (their squares: 0.0) change no sum, and make the row longer than a leaf.
    width = np.dtype(dtype).itemsize * 8
    magnitude = data.draw(st.sampled_from([1.0, 2.0**-83, 2.0**100]))
    elements = st.one_of(st.floats(-magnitude, magnitude, width=32), st.floats(width=width))
    x = data.draw(hnp.arrays(dtype, st.integers(1, 300), elements=elements))
    y = data.draw(hnp.arrays(dtype, x.shape, elements=elements))
    more = np.full(2100, -0.0, dtype)
    longer = np.concatenate([x, more])
    with np.errstate(all="ignore"):
        ones = np.concatenate([y, np.ones(2100, dtype)])
    assert cw.bits(cw.sum(x)) == cw.bits(cw.sum(longer))
    assert cw.bits(cw.norm(x)) == cw.bits(cw.norm(longer))
    assert cw.bits(cw.dot(x, y)) == cw.bits(cw.dot(longer, ones))
    for function in [cw.sum, cw.norm, cw.mean]:
        both = function(np.stack([x, y], axis=1), axis=0)
        assert [cw.bits(one) for one in both] == [cw.bits(function(x)), cw.bits(function(y))]
    if dtype == np.float64 and math.isfinite(cw.sum(x)) and cw.sum(x) != 0:
        assert cw.mean(x) == float(fractions.Fraction(float(cw.sum(x))) / len(x))


@given(hnp.arrays(np.float32, (4200, 2), elements=st.sampled_from([1.0, -3e38, 3e38, np.inf, np.nan, 1e-30, -0.0])))
def test_columns_of_doubtful_leaves(a):
    for function in [cw.sum, cw.norm, cw.mean]:
        expected = [cw.bits(function(a[:, k].copy())) for k in (0, 1)]
        assert [cw.bits(one) for one in function(a, axis=0)] == expected


@pytest.mark.parametrize("dtype", ALL, ids=str)
@pytest.mark.parametrize("columns", [3, 33, 100])
def test_threads_have_rows_of_tall_matrices(dtype, columns):
    # A MiB for each of three threads, and six leaves.
    rows = max(13_000, (3 << 20) // (columns * dtype.itemsize) + 1)
    rng = np.random.default_rng(8)
    a = rng.integers(0, 5, (rows, columns)).astype(dtype)
    if dtype.kind not in "biu":
        a += rng.standard_normal(a.shape).astype(dtype)
        # What a leaf's value does not say, in the first and in the last part.
        a[5, 0], a[rows - 1, 1], a[rows // 2, 2] = np.inf, np.nan, -0.0
    if dtype == np.float32:
        a[:, columns - 1] *= np.float32(1e-30)
    seen = [0, 1, 2, columns - 1]
    for function in [cw.sum, cw.mean, cw.norm, cw.min, cw.max, cw.argmin, cw.argmax]:
        expected = [cw.bits(function(a[:, k].copy())) for k in seen]
        assert [cw.bits(x) for x in function(a, 0, threads=3)[seen]] == expected, function
    expected = [cw.bits(cw.dot(a[:, k].copy(), a[:, 0].copy())) for k in seen]
    assert [cw.bits(x) for x in cw.dot(a, np.repeat(a[:, :1], columns, 1), 0, threads=3)[seen]] == expected


def by_the_rule(values):
    """The sum as docs/determinism.md defines it, element by element."""
    leaves = []
    for start in range(0, len(values), 2048):
        lanes = np.full(128, -0.0, values.dtype)
        for row in range(start, min(start + 2048, len(values)), 128):
            part = values[row : min(row + 128, start + 2048)]
            lanes[: len(part)] += part
        while len(lanes) > 1:
            lanes = lanes[: len(lanes) // 2] + lanes[len(lanes) // 2 :]
        leaves.append(fractions.Fraction(float(lanes[0])))
    return values.dtype.type(float(builtins.sum(leaves)))


SHAPES = [(1, 1), (2, 70), (5, 1100), (16, 33), (17, 64), (100, 65), (128, 3), (129, 300)]
SHAPES += [(2048, 2), (2049, 70), (4500, 7)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sums_along_axes_follow_the_rule(dtype, shape):
    a = np.random.default_rng(6).standard_normal(shape).astype(dtype)
    expected = np.array([by_the_rule(column) for column in a.T[:5]])
    assert same_bits(cw.sum(a, 0)[:5], expected)
    assert same_bits(cw.sum(a.T.copy(), 1)[:5], expected)
    assert same_bits(cw.dot(a, np.ones_like(a), 0)[:5], expected)
    squares = np.array([by_the_rule(column * column) for column in a.T[:5]])
    assert np.allclose(cw.norm(a, 0)[:5], np.sqrt(squares), rtol=1e-6 if dtype == np.float32 else 1e-15)
    assert np.allclose(cw.mean(a, 0)[:5], expected / dtype(shape[0]), rtol=1e-6 if dtype == np.float32 else 1e-15)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_extrema_and_integers_along_axes(dtype, shape):
    rng = np.random.default_rng(7)
    few = rng.integers(0, 5, shape).astype(dtype)
    if dtype.kind in "iu":
        wide = np.iinfo(dtype)
        few.flat[:: 7] = rng.choice([wide.min, wide.max], few.flat[::7].shape).astype(dtype)
    for a, axis in ((few, 0), (few.T.copy(), 1)):
        # float64 holds the narrow floats, and NumPy takes the first of equals, too.
        there = a.astype(np.float64) if dtype.kind not in "biu" else a
        for name in ("min", "max"):
            assert same_bits(getattr(cw, name)(a, axis), getattr(np, name)(there, axis).astype(dtype))
            assert same_bits(getattr(cw, "arg" + name)(a, axis), getattr(np, "arg" + name)(there, axis))
        if dtype.kind in "biu":
            with np.errstate(over="ignore"):
                assert same_bits(cw.sum(a, axis), np.sum(a, axis))
            parts = a.T if axis == 0 else a
            exact = [builtins.sum(int(x) for x in part) for part in parts[:5]]
            assert cw.mean(a, axis)[:5].tolist() == [float(fractions.Fraction(x, shape[0])) for x in exact]
            squares = [builtins.sum(int(x) ** 2 for x in part) for part in parts[:5]]
            assert cw.norm(a, axis)[:5].tolist() == [math.sqrt(float(x)) for x in squares]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_nans_along_axes(dtype):
    a = np.zeros((300, 40), dtype)
    a[250, 3], a[70, 5], a[200, 5] = np.nan, -np.nan, np.nan
    for b, axis in ((a, 0), (a.T.copy(), 1)):
        for name in ("min", "max"):
            got = getattr(cw, name)(b, axis)
            assert np.isnan(got[[3, 5]]).all() and not np.signbit(got[[3, 5]]).any() and np.isnan(got).sum() == 2
            places = getattr(cw, "arg" + name)(b, axis)
            assert places[3] == 250 and places[5] == 70 and places.sum() == 320
    # -0.0 is below 0.0, wherever it is.
    a[:] = 0.0
    a[133] = -0.0
    assert set(cw.argmin(a, 0)) == {133} == set(cw.argmin(a.T.copy(), 1)) and set(cw.argmax(a, 0)) == {0}


def test_masks_are_not_passed_over():
    masked = np.ma.masked_array([1.0, 2.0, -9999.0], [False, False, True])
    for reduction in (cw.sum, cw.mean, cw.min, cw.argmax, cw.norm):
        with pytest.raises(cw.InputError, match="looks at no mask"):
            reduction(masked)
    with pytest.raises(cw.InputError, match="looks at no mask"):
        cw.dot(masked, masked)
    with pytest.raises(cw.InputError, match="looks at no mask"):
        cw.histogram(masked, bins=3, range=(0, 3))
    with pytest.raises(cw.InputError, match="looks at no mask"):
        cw.bincount(np.ma.masked_array([1, 2], [False, True]))
    assert cw.sum(masked.compressed()) == 3.0
    # Without a masked element there is nothing to pass over.
    assert cw.sum(np.ma.masked_array([1.0, 2.0])) == 3.0


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int16])
@pytest.mark.parametrize("length", [255, 256, 257, 2048, 2049, 65536, 65537])
def test_extrema_of_rows_whatever_their_length(length, dtype):
    # Many equal ones: of these the first counts.
    a = np.random.default_rng(length).integers(-9, 10, (5, length)).astype(dtype)
    for name in ("min", "max", "argmin", "argmax"):
        expected = getattr(np, name)(a, axis=1)
        assert np.array_equal(getattr(cw, name)(a, axis=1), expected), name
