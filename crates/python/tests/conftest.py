"""The suite runs against an installed package: nothing here adds the sources to the path."""

import pathlib
import re
import signal

import crosswarp
import pytest
from hypothesis import HealthCheck, settings

# Busy machines are slow; that is no failure.
settings.register_profile("any", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any")

# What a shell starts in the background ignores Ctrl-C, and so would the programs that tests start and interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)


def programs_of_the_pages(mark: str) -> list[str]:
    """The programs of the documentation that need something, where the documentation is."""
    docs = pathlib.Path(__file__).resolve().parents[3] / "docs" / "python"
    fence = re.compile(rf"^```python {mark}\n(.*?)^```", re.M | re.S)
    return [block for page in sorted(docs.glob("*.md")) for block in fence.findall(page.read_text("utf-8"))]


@pytest.fixture(scope="session")
def package() -> pathlib.Path:
    return pathlib.Path(crosswarp.__file__).parent
