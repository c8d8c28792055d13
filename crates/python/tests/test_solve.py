"""Solves against what is known of them, and against the command."""

import json
import subprocess
import sys
import warnings

import crosswarp as cw
import numpy as np
import pytest


def jacobi(field, free, source=0.0, sweeps=1):
    """The sweep as it is defined, operation by operation."""
    field = field.copy()
    changes = []
    quarter, h2f = field.dtype.type(0.25), np.asarray(source, field.dtype)
    for _ in range(sweeps):
        new = field.copy()
        inner = ((field[1:-1, 2:] + field[1:-1, :-2]) + field[2:, 1:-1]) + field[:-2, 1:-1]
        if np.any(h2f):
            inner = inner - h2f[1:-1, 1:-1]
        new[1:-1, 1:-1] = np.where(free[1:-1, 1:-1], quarter * inner, field[1:-1, 1:-1])
        changes.append(np.sqrt(np.mean((new - field).astype(np.float64) ** 2)))
        field = new
    return field, changes


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("threads", [1, 3])
def test_the_bits_of_a_sweep(dtype, threads):
    rng = np.random.default_rng(1)
    ny, nx = 70, 53
    initial = rng.standard_normal((ny, nx)).astype(dtype)
    fixed = rng.random((ny, nx)) < 0.1
    source = rng.standard_normal((ny, nx)).astype(dtype)
    sides = dict(left=initial[:, 0], right=initial[:, -1], top=initial[0], bottom=initial[-1])
    with pytest.warns(cw.ConvergenceWarning):
        found = cw.solve(
            (ny, nx), **sides, initial=initial, fixed=fixed, source=source,
            dtype=dtype, max_sweeps=25, tolerance=0, threads=threads,
        )  # fmt: skip
    field, changes = jacobi(initial, ~fixed, source, 25)
    assert found.field.tobytes() == field.tobytes()
    assert np.allclose(found.history, changes, rtol=1e-5)
    assert (found.sweeps, found.converged, found.change) == (25, False, found.history[-1])


def test_periodic_sides():
    y = np.linspace(0, 2 * np.pi, 66)
    found = cw.solve((66, 40), left=1.0, right=3.0, top="periodic", bottom="periodic", tolerance=1e-12)
    assert np.allclose(found.field[1:-1], np.linspace(1, 3, 40), atol=1e-7)
    with pytest.raises(cw.InputError, match="periodic"):
        cw.solve((66, 40), top="periodic", left=np.sin(y))


def test_a_line_is_straight():
    found = cw.solve(33, left=5, right=10, tolerance=1e-14)
    assert np.allclose(found.field, np.linspace(5, 10, 33), atol=1e-10)


def test_poisson_converges_to_the_solution():
    errors = []
    for n in (17, 33):
        x = np.linspace(0, 1, n)
        exact = np.outer(np.sin(np.pi * x), np.sin(np.pi * x))
        found = cw.poisson(-2 * np.pi**2 * exact, spacing=1 / (n - 1), tolerance=1e-13)
        errors.append(np.abs(found.field - exact).max())
    # Second order: half the spacing, a quarter of the error.
    assert 3.5 < errors[0] / errors[1] < 4.5


def test_fill_keeps_what_is_known_and_is_harmonic_elsewhere():
    rng = np.random.default_rng(3)
    dem = rng.random((60, 80)) + 5
    dem[20:30, 30:50] = np.nan
    dem[0, 5:9] = np.nan
    before = dem.copy()
    found = cw.fill(dem, tolerance=1e-13)
    assert found.method == "jacobi"
    known = ~np.isnan(dem)
    assert np.array_equal(found.field[known], dem[known])
    assert np.array_equal(dem, before, equal_nan=True)
    f = found.field
    mean = (f[1:-1, 2:] + f[1:-1, :-2] + f[2:, 1:-1] + f[:-2, 1:-1]) / 4
    assert np.abs((mean - f[1:-1, 1:-1])[~known[1:-1, 1:-1]]).max() < 1e-10
    again = cw.fill(np.nan_to_num(dem, nan=-9999), known, tolerance=1e-13, threads=3)
    assert again.sha256() == found.sha256()


def test_a_mask_makes_voids_of_a_fill():
    dem = np.add.outer(np.arange(40.0), np.arange(50.0) ** 2)
    hole = np.zeros(dem.shape, bool)
    hole[10:20, 12:30] = True
    expected = cw.fill(dem, ~hole)
    assert np.abs(expected.field - dem).max() > 1
    masked = np.ma.masked_array(np.where(hole, -9999.0, dem), hole)
    assert cw.fill(masked).sha256() == expected.sha256()
    # What is not known is a void, too.
    known = np.ones(dem.shape, bool)
    known[30:35, 5:9] = False
    assert cw.fill(masked, known).sha256() == cw.fill(dem, known & ~hole).sha256()


def command(tmp_path, *arguments):
    """What `crosswarp solve` says, and its field."""
    run = ["crosswarp", "solve", *map(str, arguments), "-o", tmp_path / "field.npy", "--json"]
    run += ["--history", tmp_path / "norms.csv"]
    ended = subprocess.run(run, check=True, capture_output=True, text=True)
    return json.loads(ended.stdout.splitlines()[-1]), np.load(tmp_path / "field.npy")


def same(found, said, field):
    """A result is what the command says."""
    assert np.array_equal(field, found.field)
    assert found.sha256() == said["field_sha256"]
    assert [x for _, x in said["history"]] == found.history.tolist()
    for name, key in [("change", "norm")] + [(name, name) for name in (
        "method", "sweeps", "cycles", "converged", "remaining_error_estimate", "relative_residual",
        "convergence_factor", "levels", "floor_reached",
    )]:  # fmt: skip
        assert getattr(found, name) == said[key], name


@pytest.fixture
def dem(tmp_path):
    """A grid with voids inside and on its rim, and the options that name it."""
    rng = np.random.default_rng(3)
    values = rng.random((70, 90)).astype(np.float32)
    known = rng.random((70, 90)) < 0.7
    known[10:40, 20:50] = False
    known[:15, :20] = False
    np.save(tmp_path / "dem.npy", values)
    np.save(tmp_path / "known.npy", known)
    return values, known, ["fill", "--values", tmp_path / "dem.npy", "--known", tmp_path / "known.npy"]


@pytest.mark.parametrize(
    "options, arguments",
    [
        ({}, []),
        ({"threads": 3}, ["--pes", "2"]),
        ({"method": "mg", "rim": "interpolated"}, ["--method", "mg", "--rim", "interpolated"]),
        ({"method": "mgcg"}, ["--method", "mgcg"]),
        ({"method": "cg"}, ["--method", "cg"]),
        ({"method": "chebyshev", "max_sweeps": 900}, ["--method", "chebyshev", "--max-sweeps", "900"]),
        ({"smooth": (1, 3), "max_cycles": 50}, ["--smooth", "1,3", "--max-cycles", "50"]),
        ({"relative_tolerance": 1e-3}, ["--stop", "residual=1e-3"]),
        ({"method": "jacobi"}, ["--method", "jacobi", "--backend", "cpu"]),
        ({"tolerance": 1e-5}, ["--tolerance", "1e-5", "--backend", "cpu"]),
        ({"nodata": 0.5}, ["--nodata", "0.5"]),
    ],
    ids=str,
)
def test_a_fill_is_the_commands(tmp_path, dem, options, arguments):
    values, known, problem = dem
    values[30, 60:70] = 0.5
    np.save(tmp_path / "dem.npy", values)
    said, field = command(tmp_path, *problem, *arguments)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cw.ConvergenceWarning)
        same(cw.fill(values, known, **options), said, field)


def test_sides_are_the_commands(tmp_path):
    x = np.linspace(0, 1, 90)
    np.save(tmp_path / "profile.npy", np.sin(3 * x))
    plane = ["laplace2d", "--nx", 90, "--ny", 70, "--dtype", "f64"]
    sides = ["--boundary", "left=2", "--boundary", "right=neumann:-1.5", "--boundary", "bottom=neumann:0"]
    top = ["--boundary", f"top=neumann:{tmp_path / 'profile.npy'}"]
    said, field = command(tmp_path, *plane, *sides, *top)
    right, above = ("neumann", -1.5), ("neumann", np.sin(3 * x))
    found = cw.solve((70, 90), left=2.0, right=right, bottom="neumann", top=above, spacing=1 / 89)
    same(found, said, field)
    again = cw.solve(
        (70, 90), sides={"left": 2.0, "right": right, "bottom": "neumann"}, top=above, spacing=1 / 89, threads=3
    )
    assert again.sha256() == found.sha256()


def test_coefficients_and_mixed_sides_are_the_commands(tmp_path):
    y, x = np.mgrid[0:70, 0:90]
    kappa = np.exp(np.sin(x / 9) * np.cos(y / 7))
    np.save(tmp_path / "kappa.npy", kappa)
    b = np.linspace(1, 2, 90)
    np.save(tmp_path / "b.npy", b)
    said, field = command(
        tmp_path, "laplace2d", "--nx", 90, "--ny", 70, "--dtype", "f64", "--spacing", "0.01,0.02", "--source", -3,
        "--coefficient", tmp_path / "kappa.npy", "--reaction", 0.5,
        "--boundary", "left=2", "--boundary", "right=neumann:0", "--boundary", "bottom=neumann:0",
        "--boundary", f"top=robin:1.5,{tmp_path / 'b.npy'},0.25",
    )  # fmt: skip
    of = {"sides": {"left": 2.0, "right": "neumann", "bottom": "neumann"}, "top": ("robin", 1.5, b, 0.25)}
    more = {"coefficient": kappa, "reaction": 0.5, "spacing": (0.01, 0.02)}
    found = cw.poisson(np.full((70, 90), -3.0), **of, **more)
    same(found, said, field)
    levels = cw.Hierarchy((70, 90), source=-3.0, **of, **more)
    assert levels.solve().sha256() == found.sha256()


def test_a_flow_through_a_changing_coefficient():
    # kappa u' = 1 with kappa = 1 + x is u = ln(1 + x); at the right end u + 2 u' = ln 2 + 1.
    x = np.linspace(0, 1, 201)
    found = cw.solve(
        (9, 201), left=0.0, right=("robin", 1.0, 2.0, np.log(2) + 1), top="neumann", bottom="neumann",
        coefficient=np.broadcast_to(1 + x, (9, 201)), spacing=x[1],
    )  # fmt: skip
    assert found.converged and np.abs(found.field - np.log1p(x)).max() < 1e-5


def test_a_box_with_everything():
    # div(kappa grad u) - 2 u = f with u = 1 + 2x - y + 3z and kappa = 1 + y.
    z, y, x = np.mgrid[0:10, 0:12, 0:9] * 0.25
    u = 1 + 2 * x - y + 3 * z
    fixed = np.random.default_rng(3).random(u.shape) < 0.05
    found = cw.poisson(
        -1 - 2 * u, coefficient=1 + y, reaction=2.0, fixed=fixed, initial=np.where(fixed, u, 0), spacing=0.25,
        left=u[:, :, 0], right=u[:, :, -1], front=u[0], back=("robin", 0.0, 1.0, 3.0),
        top=("neumann", 1.0), bottom=("robin", 0.0, 2.0, -2.0), relative_tolerance=1e-12,
    )  # fmt: skip
    assert np.abs(found.field - u).max() < 1e-9


@pytest.mark.parametrize("method", ["mgcg", "cg", "chebyshev"])
def test_a_box_by_other_methods(method):
    source = np.random.default_rng(5).standard_normal((17, 20, 23))
    by_cycles = cw.poisson(source, relative_tolerance=1e-11)
    found = cw.poisson(source, method=method, relative_tolerance=1e-11)
    assert found.method == method and found.converged
    if method == "mgcg":
        assert found.cycles == len(found.history) and found.levels > 1
    else:
        assert found.sweeps == len(found.history) > len(by_cycles.history) and found.levels is None
    assert np.abs(found.field - by_cycles.field).max() < 1e-9 * np.abs(found.field).max()
    with pytest.raises(cw.InputError, match="a box is not solved by"):
        cw.poisson(source, method="jacobi")


def test_a_problem_without_fixed_values_has_mean_zero():
    y, x = np.mgrid[0:64, 0:64] * (2 * np.pi / 64)
    exact = np.sin(x) * np.cos(2 * y)
    source = np.zeros((66, 66))
    source[1:-1, 1:-1] = -5 * exact
    found = cw.poisson(source, sides="periodic", spacing=2 * np.pi / 64)
    inner = found.field[1:-1, 1:-1]
    assert abs(inner.mean()) < 1e-12 and np.abs(inner - exact).max() < 1e-2
    with pytest.raises(cw.InputError, match="cancel"):
        cw.solve((20, 20), sides={"left": ("neumann", 1.0), "right": "neumann", "top": "neumann", "bottom": "neumann"})


@pytest.mark.parametrize("shape", [(21, 30), (13, 21, 30)])
def test_an_incompatible_source_is_projected_on_request(shape):
    axes = np.meshgrid(*(np.pi * np.arange(n) / (n - 1) for n in shape), indexing="ij")
    waves = np.cos(axes[0]) * np.cos(2 * axes[-1])
    with pytest.raises(cw.InputError, match="cancel"):
        cw.poisson(waves + 0.25, sides="neumann")
    asked = cw.poisson(waves, sides="neumann", relative_tolerance=1e-11)
    found = cw.poisson(waves + 0.25, sides="neumann", relative_tolerance=1e-11, project_source=True)
    assert asked.projected is None and found.converged and found.projected < -0.1
    assert np.abs(found.field - asked.field).max() < 1e-9 * np.abs(asked.field).max()
    with pytest.raises(cw.InputError, match="project_source belongs to multigrid"):
        cw.poisson(waves, method="jacobi", sides="periodic", project_source=True)


@pytest.mark.parametrize("method", ["mg", "mgcg"])
def test_multigrid_solves_the_equations(method):
    rng = np.random.default_rng(4)
    source, fixed = rng.standard_normal((101, 77)), rng.random((101, 77)) < 0.02
    initial = rng.standard_normal((101, 77))
    found = cw.poisson(source, method=method, initial=initial, fixed=fixed, relative_tolerance=1e-12)
    f = found.field
    left = f[1:-1, 2:] + f[1:-1, :-2] + f[2:, 1:-1] + f[:-2, 1:-1] - 4 * f[1:-1, 1:-1]
    assert np.abs(left - source[1:-1, 1:-1])[~fixed[1:-1, 1:-1]].max() < 1e-8
    assert np.array_equal(f[1:-1, 1:-1][fixed[1:-1, 1:-1]], initial[1:-1, 1:-1][fixed[1:-1, 1:-1]])
    assert found.method == method and found.converged and found.sweeps is None and found.change is None
    assert found.cycles == len(found.history) and found.history[-1] == found.relative_residual <= 1e-12
    assert 0 < found.convergence_factor < 0.5 and found.levels > 2


def test_a_field_that_is_the_solution_takes_no_cycle():
    found = cw.solve((20, 20))
    assert (found.cycles, found.converged, found.relative_residual) == (0, True, 0.0)
    assert not found.field.any() and found.convergence_factor is None


def test_what_is_far_from_the_solution_is_said():
    with pytest.warns(cw.ConvergenceWarning, match="times the tolerance; method='mg'"):
        found = cw.solve((200, 200), top=1.0, tolerance=1e-4)
    exact = cw.solve((200, 200), top=1.0).field
    away = np.sqrt(np.mean((found.field - exact) ** 2))
    assert found.converged and found.tolerance * 10 < found.remaining_error_estimate < 3 * away
    with pytest.warns(cw.ConvergenceWarning, match="after 2 cycles the relative residual"):
        cw.solve((200, 200), top=1.0, max_cycles=2)


def test_rounding_is_an_end_unless_more_was_asked_for():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert cw.solve((50, 50), top=1.0).converged
    with pytest.warns(cw.ConvergenceWarning, match="rounding"):
        found = cw.solve((50, 50), top=1.0, relative_tolerance=0.0)
    assert found.floor_reached and not found.converged


def test_progress_is_told_and_may_end_the_solve():
    seen = []
    found = cw.solve((200, 200), top=1.0, tolerance=1e-5, progress=lambda sweeps, change: seen.append((sweeps, change)))
    assert seen[-1] == (found.sweeps, found.change)
    assert [sweeps for sweeps, _ in seen] == sorted(sweeps for sweeps, _ in seen)
    seen.clear()
    found = cw.solve((200, 200), top=1.0, progress=lambda cycles, residual: seen.append((cycles, residual)))
    assert seen[-1] == (found.cycles, found.relative_residual)

    class Enough(Exception):
        pass

    def enough(sweeps, change):
        raise Enough

    with pytest.raises(Enough):
        cw.solve((500, 500), top=1.0, tolerance=0.0, max_sweeps=10**9, progress=enough)


def test_progress_in_a_bar_of_tqdm(capfd):
    tqdm = pytest.importorskip("tqdm", reason="tqdm is not installed").tqdm
    with tqdm(unit=" cycles") as bar:
        found = cw.solve((200, 200), top=1.0, progress=lambda cycles, residual: bar.update(cycles - bar.n))
    assert bar.n == found.cycles
    assert f"{found.cycles} cycles" in capfd.readouterr().err


def test_ctrl_c_ends_a_solve():
    program = """
import os, signal, threading, time
import crosswarp as cw
try:
    # On a busy machine the signal may come before the call.
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
    cw.solve((1000, 1000), top=1.0, tolerance=0.0, max_sweeps=10**9)
except KeyboardInterrupt:
    print("interrupted")
passes = []
try:
    threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
    # A pass of billions of updates: the call does not wait for its end.
    seen = lambda *_: passes.append(0)
    cw.solve((3000, 3000), top=1.0, tolerance=0.0, sweeps_per_pass=1000, threads=1, progress=seen)
except KeyboardInterrupt:
    print("interrupted", len(passes))
print(cw.solve((100, 100), top=1.0).converged)
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300)
    assert ended.stdout.split() == ["interrupted", "interrupted", "0", "True"], ended.stderr


def test_what_makes_no_sense_is_refused():
    for wrong in [
        lambda: cw.solve((2, 5)),
        lambda: cw.solve((5, 5, 5, 5)),
        lambda: cw.solve((5, 5), left=[1.0, 2.0]),
        lambda: cw.solve((5, 5), left=np.nan),
        lambda: cw.solve((5, 5), left="open"),
        lambda: cw.solve((5, 5), initial=np.ones((4, 4))),
        lambda: cw.solve((5, 5), tolerance=-1.0),
        lambda: cw.solve((5, 5), tolerance=np.nan),
        lambda: cw.solve((5, 5), max_sweeps=0),
        lambda: cw.solve((5, 5), method="magic"),
        lambda: cw.solve((5, 5), norm="max"),
        lambda: cw.solve((5, 5), spacing=0, source=1.0),
        lambda: cw.solve((5, 5), fixed=np.ones((5, 5))),
        lambda: cw.solve(9, source=1.0),
        lambda: cw.solve(9, method="mg"),
        lambda: cw.solve((5, 5), method="mg", tolerance=1e-3),
        lambda: cw.solve((5, 5), method="jacobi", max_cycles=3),
        lambda: cw.solve((5, 5), tolerance=1e-3, relative_tolerance=1e-3),
        lambda: cw.solve((5, 5), method="jacobi", left="neumann"),
        lambda: cw.solve((5, 5), left=("periodic", 1.0)),
        lambda: cw.solve((5, 5), left=("neumann", 1.0, 2.0)),
        lambda: cw.solve((5, 5), left=("neumann", np.ones(3))),
        lambda: cw.solve((5, 5), left=("robin", 1.0, 2.0)),
        lambda: cw.solve((5, 5), left=("robin", 1.0, 0.0, 2.0)),
        lambda: cw.solve((5, 5), left=("robin", 1.0, -1.0, 2.0)),
        lambda: cw.solve((5, 5), coefficient=-1.0),
        lambda: cw.solve((5, 5), coefficient=np.ones((4, 5))),
        lambda: cw.solve((5, 5), coefficient=1.0, tolerance=1e-3),
        lambda: cw.solve((5, 5), reaction=-1.0),
        lambda: cw.solve((5, 5), spacing=(1.0, 2.0, 3.0)),
        lambda: cw.solve((5, 5, 5), coefficient=-1.0),
        lambda: cw.solve((5, 5, 5), top=("robin", 1.0, 2.0, np.ones((5, 5)))),
        lambda: cw.solve((5, 5, 5), fixed=np.ones((5, 5))),
        lambda: cw.solve(9, reaction=1.0),
        lambda: cw.solve((5, 5), sides={"front": 1.0}),
        lambda: cw.solve((5, 5), sides=1.0, left=1.0),
        lambda: cw.solve((5, 5), smooth=(0, 2)),
        lambda: cw.solve((5, 5), max_cycles=0),
        lambda: cw.solve((5, 5), relative_tolerance=-1.0),
        lambda: cw.fill(np.ones((5, 5)), rim="open"),
        lambda: cw.fill(np.ones((5, 5)), rim="natural", method="jacobi"),
        lambda: cw.fill(np.full((5, 5), np.nan)),
        lambda: cw.fill(np.ones(5)),
        lambda: cw.fill(np.full((5, 5), np.inf)),
    ]:
        with pytest.raises(ValueError) as error:
            wrong()
        assert isinstance(error.value, cw.Error)
    with pytest.raises(TypeError):
        cw.solve((5, 5), dtype=np.int32)


def test_a_result_shows_itself():
    found = cw.solve((9, 9), top=1.0)
    assert "converged=True" in repr(found)
    assert "<td>9 × 9</td>" in found._repr_html_() and "relative residual" in found._repr_html_()
    assert "or more" in cw.solve(9, right=1.0)._repr_html_()


def test_a_plot(monkeypatch):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    assert "converged" in cw.solve((9, 9), top=1.0).plot().get_title()
    assert "converged" in cw.solve(9, right=1.0).plot().get_title()
