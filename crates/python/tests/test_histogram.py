"""Histograms, counts and transpositions against NumPy."""

import math

import crosswarp as cw
import hypothesis.extra.numpy as hnp
import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

INTEGERS = [np.dtype(f"{kind}{size}") for kind in "iu" for size in (1, 2, 4, 8)]
finite = st.floats(-1e6, 1e6, width=32)


def check(a, bins, span=None, weights=None):
    try:
        expected, expected_edges = np.histogram(a, bins, span, weights=weights)
    except ValueError:  # More bins than there are numbers in the range.
        with pytest.raises(cw.InputError):
            cw.histogram(a, bins, span, weights=weights)
        return None
    counts, edges = cw.histogram(a, bins, span, weights=weights)
    assert edges.dtype == expected_edges.dtype and np.array_equal(edges, expected_edges)
    assert np.array_equal(counts, expected)
    return counts


def test_the_right_edge_is_in_the_last_bin():
    assert check([0, 1, 2, 3], 3).tolist() == [1, 1, 2]
    assert check([0.0, 1.0, 2.0, 3.0], 3).tolist() == [1, 1, 2]
    assert check([0, 1, 2, 3], [0, 1, 2, 3]).tolist() == [1, 1, 2]


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
@given(data=st.data())
def test_even_bins_of_integers(dtype, data):
    small = st.integers(max(np.iinfo(dtype).min, -1000), min(np.iinfo(dtype).max, 1000))
    # Beyond 2^53 NumPy compares what it has rounded.
    elements = data.draw(st.sampled_from([small, None])) if dtype.itemsize < 8 else small
    a = data.draw(hnp.arrays(dtype, st.integers(0, 300), elements=elements))
    bins = data.draw(st.integers(1, 70))
    if a.size and a.min() == a.max():
        a[0] = a[0] // 2
    check(a, bins)
    check(a, bins, (-3.5, 77.25))
    check(a, sorted(data.draw(st.sets(st.integers(-1000, 1000), min_size=2))))
    check(a, sorted(data.draw(st.lists(st.floats(-50, 50), min_size=2))))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@given(data=st.data())
def test_bins_of_floats(dtype, data):
    a = data.draw(hnp.arrays(dtype, st.integers(0, 300), elements=finite))
    check(a, data.draw(st.integers(1, 70)))
    check(a, data.draw(st.integers(1, 70)), (-100.0, 1e3))
    a[::7] = np.nan
    a[3::11] = np.inf
    check(a, sorted(data.draw(st.lists(finite, min_size=2))))
    check(a, np.array([-math.inf, 0.0, math.inf]))


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.int32, np.int64, np.float32, np.float64], ids=str)
def test_many_samples(dtype):
    a = (np.random.default_rng(3).random(3_000_000) * 120).astype(dtype)
    for bins in [7, 100, 5000]:
        counts = check(a, bins)
        assert np.array_equal(counts, cw.histogram(a, bins, threads=3)[0])


def test_names_of_rules_and_density():
    a = np.random.default_rng(1).standard_normal(1000)
    check(a, "auto")
    ours, theirs = cw.histogram(a, 20, density=True)[0], np.histogram(a, 20, density=True)[0]
    assert np.allclose(ours, theirs, rtol=1e-14)


def test_weights():
    a = np.array([0, 0, 1, 1, 2])
    check(a, 3, None, np.array([1, 2, 3, 4, 2**62]))
    weights = np.array([1e16, 1.0, -1e16, 0.5, 7.0])
    assert cw.histogram([0, 0, 0, 1, 1], 2, weights=weights)[0].tolist() == [1.0, 7.5]
    # The order is of no matter.
    rng = np.random.default_rng(2)
    samples, weights = rng.random(20_000), rng.standard_normal(20_000)
    order = rng.permutation(20_000)
    there = cw.histogram(samples, 9, (0, 1), weights=weights)[0]
    back = cw.histogram(samples[order], 9, (0, 1), weights=weights[order])[0]
    assert there.tobytes() == back.tobytes()
    inside = [math.fsum(weights[(samples * 9).astype(int) == k]) for k in range(9)]
    assert there.tolist() == inside


@given(hnp.arrays(st.sampled_from(INTEGERS), st.integers(0, 200), elements=st.integers(0, 100)), st.integers(0, 150))
def test_bincount(a, minlength):
    if a.dtype == np.uint64:  # NumPy refuses these.
        expected = np.bincount(a.astype(np.int64), minlength=minlength)
    else:
        expected = np.bincount(a, minlength=minlength)
    got = cw.bincount(a, minlength=minlength)
    assert got.dtype == expected.dtype and np.array_equal(got, expected)


def test_bincount_of_many():
    a = np.random.default_rng(4).integers(0, 1000, 5_000_001)
    assert np.array_equal(cw.bincount(a), np.bincount(a))
    assert np.array_equal(cw.bincount(a, threads=1), np.bincount(a))


def test_what_makes_no_sense_is_refused():
    for wrong in [
        lambda: cw.histogram([1.0], 0),
        lambda: cw.histogram([1.0], [2.0, 1.0]),
        lambda: cw.histogram([1.0], [1.0, math.nan]),
        lambda: cw.histogram([1.0, math.nan]),
        lambda: cw.histogram([1.0], 3, (2.0, 1.0)),
        lambda: cw.histogram([1.0], 3, weights=[1.0, 2.0]),
        lambda: cw.histogram([1.0], 1 << 40),
        lambda: cw.bincount([-1]),
        lambda: cw.bincount([1 << 40]),
        lambda: cw.bincount([[1]]),
        lambda: cw.transpose([1]),
        lambda: cw.transpose(np.ones((2, 3)), out=np.ones((2, 3))),
        lambda: cw.transpose(np.ones((2, 1)), out=np.frombuffer(bytes(16)).reshape(1, 2)),
    ]:
        with pytest.raises(ValueError) as error:
            wrong()
        assert isinstance(error.value, cw.Error)
    for wrong in [
        lambda: cw.bincount([0.5]),
        lambda: cw.histogram(["a"]),
        lambda: cw.transpose(np.ones((2, 3)), out=np.ones((3, 2), np.float32)),
    ]:
        with pytest.raises(TypeError):
            wrong()


@pytest.mark.parametrize("dtype", ["bool", "u1", "i2", "f2", "f4", "f8", "i8", ml_dtypes.bfloat16], ids=str)
@pytest.mark.parametrize("shape", [(0, 3), (1, 1), (5, 7), (300, 513), (2, 3, 65, 33)])
def test_transpose(dtype, shape):
    a = (np.arange(math.prod(shape)) % 200).astype(dtype).reshape(shape)
    expected = np.swapaxes(a, -1, -2)
    got = cw.transpose(a)
    assert got.dtype == a.dtype and got.flags.c_contiguous and np.array_equal(got, expected)
    out = np.empty_like(got)
    assert cw.transpose(a, out=out) is out and np.array_equal(out, expected)
    assert np.array_equal(cw.transpose(expected), a)


def test_transpose_of_much():
    a = np.arange(9000 * 5001, dtype=np.float32).reshape(9000, 5001)
    assert np.array_equal(cw.transpose(a), a.T)


def test_transpose_into_itself_is_refused():
    a = np.ones((4, 4))
    with pytest.raises(cw.InputError):
        cw.transpose(a, out=a)
