"""Levels that are made once, and boxes: against `solve`, NumPy and SciPy."""

import gc
import os

import crosswarp as cw
import numpy as np
import pytest


def problem(ny, nx):
    """A plane with known cells, a derivative on the right, and values on the other sides."""
    rng = np.random.default_rng(5)
    known = rng.random((ny, nx)) < 0.02
    initial = rng.standard_normal((ny, nx))
    return dict(fixed=known, initial=initial, left=1.0, top=np.linspace(1, 2, nx), right="neumann", spacing=0.5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("threads", [1, 3])
def test_every_solve_is_that_of_solve(dtype, threads):
    options = problem(150, 70)
    levels = cw.Hierarchy((150, 70), **options, dtype=dtype, threads=threads)
    x = np.linspace(0, 1, 70)
    for source in (None, np.outer(np.linspace(0, 1, 150), x), np.full((150, 70), 1e6)):
        found = levels.solve(source, relative_tolerance=1e-7)
        alone = cw.solve((150, 70), **options, source=source, dtype=dtype, relative_tolerance=1e-7, threads=1)
        assert found.converged and found.sha256() == alone.sha256()
        assert np.array_equal(found.history, alone.history)
    other = options["initial"] + 1
    found = levels.solve(initial=other, method="mgcg")
    alone = cw.solve((150, 70), **{**options, "initial": other}, dtype=dtype, method="mgcg")
    assert found.method == "mgcg" and found.sha256() == alone.sha256()


def matrix(ny, nx, fixed):
    """The operator by the letter, dense: 4u less the unknown neighbours, half at the right side; 1 where u is kept."""
    kept = fixed.copy()
    kept[0], kept[-1], kept[:, 0] = True, True, True
    made = np.zeros((ny * nx, ny * nx))
    for y in range(ny):
        for x in range(nx):
            here = y * nx + x
            if kept[y, x]:
                made[here, here] = 1
                continue
            half = 0.5 if x == nx - 1 else 1.0
            for dy, dx, face in ((0, -1, 1.0), (0, 1, 1.0), (-1, 0, half), (1, 0, half)):
                if x + dx == nx:
                    continue
                made[here, here] += face
                if not kept[y + dy, x + dx]:
                    made[here, (y + dy) * nx + x + dx] -= face
    return made


@pytest.mark.parametrize("threads", [1, 2])
def test_operator_and_preconditioner_are_matrices(threads):
    ny, nx = 36, 20
    options = problem(ny, nx)
    levels = cw.Hierarchy((ny, nx), **options, threads=threads)
    a = matrix(ny, nx, options["fixed"])
    rng = np.random.default_rng(1)
    u, v = rng.standard_normal((2, ny * nx))
    assert levels.operator.shape == a.shape
    assert np.allclose(levels.operator @ u, a @ u, atol=1e-12)
    of_u, of_v = levels.preconditioner @ u, levels.preconditioner @ v
    assert abs(of_u @ v - u @ of_v) < 1e-5 * np.sqrt((of_u @ u) * (of_v @ v)) and of_u @ u > 0
    # About the inverse.
    error = np.linalg.solve(a, u) - of_u
    assert error @ a @ error < 0.1 * (u @ np.linalg.solve(a, u))


def test_scipy_takes_it_as_a_preconditioner():
    linalg = pytest.importorskip("scipy.sparse.linalg")
    sparse = pytest.importorskip("scipy.sparse")
    ny, nx = 90, 110
    options = problem(ny, nx)
    levels = cw.Hierarchy((ny, nx), **options)
    # Another matrix: the operator and something on its diagonal.
    rng = np.random.default_rng(2)
    shift = sparse.diags(rng.random(ny * nx) * 0.05)
    a = linalg.LinearOperator(levels.operator.shape, lambda u: levels.operator @ u.ravel() + shift @ u.ravel(), dtype=float)
    b = rng.standard_normal(ny * nx)
    steps = {"with": [], "without": []}
    u, failed = linalg.cg(a, b, rtol=1e-10, M=levels.preconditioner, callback=steps["with"].append)
    plain, _ = linalg.cg(a, b, rtol=1e-10, callback=steps["without"].append)
    assert failed == 0 and np.linalg.norm(a @ u - b) < 1e-9 * np.linalg.norm(b)
    assert np.allclose(u, plain, atol=1e-6)
    assert len(steps["with"]) <= 25 < len(steps["without"])
    # And of its own operator, which SciPy takes as it is: the solution that `solve` finds.
    ones = np.zeros((ny, nx))
    ones[1:-1, 1:] = 1.0
    ones[1:-1, -1] = 0.5
    ones[options["fixed"]] = 0.0
    u, failed = linalg.cg(levels.operator, ones.ravel(), rtol=1e-12, M=levels.preconditioner)
    zeros = {**options, "initial": np.zeros((ny, nx)), "left": 0.0, "top": 0.0}
    found = cw.solve((ny, nx), **zeros, source=np.full((ny, nx), -4.0), relative_tolerance=1e-12)
    assert failed == 0 and np.allclose(u.reshape(ny, nx), found.field, atol=1e-7)


def test_a_wrong_hierarchy_is_an_error():
    for shape in (5, (5,), (5, 2), (5, 5, 5)):
        with pytest.raises(cw.InputError, match="two sizes of at least 3"):
            cw.Hierarchy(shape)
    with pytest.raises(cw.InputError, match="nothing to solve"):
        cw.Hierarchy((5, 5), fixed=np.ones((5, 5)))
    levels = cw.Hierarchy((9, 8), threads=2)
    with pytest.raises(cw.InputError, match="source"):
        levels.solve(np.zeros((8, 9)))
    with pytest.raises(cw.InputError, match="not finite"):
        levels.solve(np.full((9, 8), np.nan))
    with pytest.raises(cw.InputError, match="72 points"):
        levels.operator @ np.zeros(71)
    with pytest.raises(cw.InputError, match="jacobi"):
        levels.solve(method="jacobi")
    # It goes on after an error, and ends with its threads.
    assert levels.solve(np.ones((9, 8))).converged
    del levels
    gc.collect()


@pytest.mark.parametrize("threads", [1, 3])
def test_a_box(threads):
    n = 33
    x = np.linspace(0, 1, n)
    wave = np.sin(np.pi * x)
    exact = wave[:, None, None] * wave[None, :, None] * wave[None, None, :]
    found = cw.poisson(-3 * np.pi**2 * exact, spacing=1 / (n - 1), threads=threads)
    assert found.method == "mg" and found.converged and found.cycles <= 12
    half = (2 * (n - 1) * np.sin(np.pi / 2 / (n - 1))) ** 2
    assert np.allclose(found.field, exact * np.pi**2 / half, atol=1e-7)


def test_sides_of_a_box():
    # 1 + 2x - y + 3z, x being the last axis.
    nz, ny, nx = 10, 12, 9
    z, y, x = np.meshgrid(np.arange(nz) / 4, np.arange(ny) / 2, np.arange(nx), indexing="ij")
    exact = 1 + 2 * x - y + 3 * z
    options = dict(
        left=exact[:, :, 0], right=("neumann", 2.0), top=exact[:, 0], bottom=exact[:, -1], front=exact[0],
        back=("neumann", 3.0), spacing=(1.0, 0.5, 0.25), relative_tolerance=1e-12,
    )  # fmt: skip
    found = cw.solve((nz, ny, nx), **options)
    assert np.allclose(found.field, exact, atol=1e-9)
    periodic = cw.solve((8, 6, 7), sides={"front": "periodic", "back": "periodic", "left": 1.0, "right": 1.0,
                                          "top": 1.0, "bottom": 1.0})  # fmt: skip
    assert np.allclose(periodic.field, 1.0)
    for wrong, text in (
        (dict(method="jacobi"), "a box is not solved by Jacobi sweeps"),
        (dict(left=np.ones((7, 8))), "left side has values of shape"),
        (dict(back=("neumann", np.ones((6, 7)))), "a box has numbers"),
        (dict(top="periodic"), "top side is periodic but the bottom side is not"),
        (dict(spacing=(1.0, 2.0)), "one number or three"),
    ):
        with pytest.raises(cw.InputError, match=text):
            cw.solve((8, 6, 7), **wrong)
    with pytest.raises(cw.InputError, match="has no front"):
        cw.solve((8, 6), front=1.0)


# A Hierarchy has threads, of which Python 3.12 and later warn.
@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_fork_has_no_levels_of_its_parent():
    levels = cw.Hierarchy((33, 33), threads=2)
    expected = levels.solve(np.ones((33, 33))).sha256()
    child = os.fork()
    if child == 0:
        answer = 1
        try:
            levels.solve(np.ones((33, 33)))
        except cw.WorldError as error:
            here = cw.Hierarchy((33, 33), threads=2).solve(np.ones((33, 33)))
            answer = 0 if "forked" in str(error) and here.sha256() == expected else 1
        finally:
            os._exit(answer)
    assert os.waitpid(child, 0)[1] == 0
    assert levels.solve(np.ones((33, 33))).sha256() == expected
