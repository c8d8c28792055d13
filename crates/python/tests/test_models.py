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
