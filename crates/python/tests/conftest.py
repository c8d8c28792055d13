"""The suite runs against an installed package: nothing here adds the sources to the path."""

import pathlib

import crosswarp
import pytest
from hypothesis import HealthCheck, settings

# Busy machines are slow; that is no failure.
settings.register_profile("any", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any")


@pytest.fixture(scope="session")
def package() -> pathlib.Path:
    return pathlib.Path(crosswarp.__file__).parent
