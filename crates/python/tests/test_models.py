"""Models against worked examples of others."""

import crosswarp as cw
import pytest


def test_occupancy():
    # NVIDIA's programming guide: 64 warps of an SM of compute capability 9.0; 64 K registers.
    full = cw.occupancy(1024, registers=32)
    assert (full.blocks, full.warps, full.fraction, full.limited_by) == (2, 64, 1.0, "warps")
    assert cw.occupancy(1024, registers=64).blocks == 1
    assert cw.occupancy(128, shared=100_000).limited_by == "shared"


def test_bank_conflicts():
    assert cw.bank_conflicts("lane").degrees == (1,)
    assert cw.bank_conflicts("lane * 2").degrees == (2,)
    assert cw.bank_conflicts("0").degrees == (1,)  # a broadcast
    found = cw.bank_conflicts("lane * (i + 1)", iterations=4)
    assert found.degrees == (1, 2, 1, 4) and found.slowdown == 2.0
    assert cw.bank_conflicts("lane", bytes=8).requests == (2,)


def test_roofline():
    assert cw.roofline(1e9, 1e9).bound == "memory"
    assert cw.roofline(1.0, 1e9).bound == "compute"
    found = cw.roofline(2e9, 1e9, bandwidth=1e9, rate=1e9)
    assert (found.seconds, found.intensity, found.attainable) == (2.0, 0.5, 0.5e9)


def test_plots():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    curve, point = cw.occupancy(256, registers=62, arch="7.0").plot().get_lines()
    assert list(point.get_xydata()[0]) == [256, 0.5]
    # 1024 threads of 62 registers each do not fit into 64 K twice.
    assert list(curve.get_xydata()[-1]) == [1024, 0.5]
    bars = cw.bank_conflicts("lane * (i + 1)", iterations=4).plot().patches
    assert [bar.get_height() for bar in bars] == [1, 2, 1, 4]
    assert cw.roofline(8e9, 2e9, gpu="h200").plot().get_title()


def test_what_makes_no_sense_is_refused():
    for wrong in [
        lambda: cw.occupancy(0),
        lambda: cw.occupancy(2000),
        lambda: cw.occupancy(-1),
        lambda: cw.occupancy(32, arch="1.0"),
        lambda: cw.occupancy(32, arch="new"),
        lambda: cw.bank_conflicts("lane +"),
        lambda: cw.bank_conflicts("-lane"),
        lambda: cw.bank_conflicts("lane", bytes=3),
        lambda: cw.roofline(0, 1),
        lambda: cw.roofline(1, 1, gpu="none"),
    ]:
        with pytest.raises(ValueError) as error:
            wrong()
        assert isinstance(error.value, cw.Error)
