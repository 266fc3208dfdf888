"""The burn-in that assay ships, and lines as a node writes them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[2]))  # for bench; tests/bench would be found first
from written_lines import Journal

from assay.declare.loader import load_fleet
from assay.model.specs.burn_in import BurnIn

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def day() -> BurnIn:
    """The shipped day."""
    return load_fleet(ROOT).burn_ins["day"]


@pytest.fixture
def journal() -> Journal:
    """An empty journal."""
    return Journal()
