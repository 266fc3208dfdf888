"""How property tests choose their examples, which tests come first, and what several rooms share.

Property tests are repeatable: the same code is tried with the same examples everywhere, however busy the machine is.
`make explore` tries others.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

sys.path.append(str(Path(__file__).parent))

BY_THE_CLOCK = [HealthCheck.too_slow]
settings.register_profile(
    "repeatable", derandomize=True, database=None, deadline=None, print_blob=True, suppress_health_check=BY_THE_CLOCK
)
settings.register_profile(
    "explore", max_examples=1000, deadline=None, print_blob=True, suppress_health_check=BY_THE_CLOCK
)
settings.load_profile("repeatable")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the longest tests, so that no worker is left alone with them at the end."""
    items.sort(key=lambda item: item.path.parent.name != "stories")
