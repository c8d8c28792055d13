"""Solves against what is known of them, and against the command."""

import json
import subprocess
import sys

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
    known = ~np.isnan(dem)
    assert np.array_equal(found.field[known], dem[known])
    assert np.array_equal(dem, before, equal_nan=True)
    f = found.field
    mean = (f[1:-1, 2:] + f[1:-1, :-2] + f[2:, 1:-1] + f[:-2, 1:-1]) / 4
    assert np.abs((mean - f[1:-1, 1:-1])[~known[1:-1, 1:-1]]).max() < 1e-10
    again = cw.fill(np.nan_to_num(dem, nan=-9999), known, tolerance=1e-13, threads=3)
    assert again.sha256() == found.sha256()


def test_the_field_is_the_commands(tmp_path):
    dem = np.random.default_rng(3).random((50, 60)).astype(np.float32)
    known = np.ones((50, 60), bool)
    known[10:40, 20:50] = False
    np.save(tmp_path / "dem.npy", dem)
    np.save(tmp_path / "known.npy", known)
    (tmp_path / "fill.toml").write_text(
        'kind = "fill"\nvalues = "dem.npy"\nknown = "known.npy"\ntolerance = 1e-4\ndtype = "f32"\n'
    )
    run = ["crosswarp", "solve", tmp_path / "fill.toml", "-o", tmp_path / "field.npy", "--backend", "cpu", "--json"]
    printed = subprocess.run(run, check=True, capture_output=True, text=True).stdout
    said = json.loads(printed.splitlines()[-1])
    found = cw.fill(dem, known)
    assert found.sha256() == said["field_sha256"]
    assert found.sweeps == said["sweeps"]
    assert np.array_equal(np.load(tmp_path / "field.npy"), found.field)


def test_progress_is_told_and_may_end_the_solve():
    seen = []
    found = cw.solve((200, 200), top=1.0, tolerance=1e-5, progress=lambda sweeps, change: seen.append((sweeps, change)))
    assert seen[-1] == (found.sweeps, found.change)
    assert [sweeps for sweeps, _ in seen] == sorted(sweeps for sweeps, _ in seen)

    class Enough(Exception):
        pass

    def enough(sweeps, change):
        raise Enough

    with pytest.raises(Enough):
        cw.solve((500, 500), top=1.0, tolerance=0.0, max_sweeps=10**9, progress=enough)


def test_ctrl_c_ends_a_solve():
    program = """
import os, signal, threading, time
import crosswarp as cw
threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    cw.solve((1000, 1000), top=1.0, tolerance=0.0, max_sweeps=10**9)
except KeyboardInterrupt:
    print("interrupted")
print(cw.solve((100, 100), top=1.0).converged)
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300)
    assert ended.stdout.split() == ["interrupted", "True"], ended.stderr


def test_what_makes_no_sense_is_refused():
    for wrong in [
        lambda: cw.solve((2, 5)),
        lambda: cw.solve((5, 5, 5)),
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
    assert "<td>9 × 9</td>" in found._repr_html_()


def test_a_plot(monkeypatch):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    assert "converged" in cw.solve((9, 9), top=1.0).plot().get_title()
    assert "converged" in cw.solve(9, right=1.0).plot().get_title()
