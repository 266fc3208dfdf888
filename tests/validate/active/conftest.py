"""The burn-in that assay ships, lines as a node writes them, and a battery that found nothing."""

from __future__ import annotations

import pytest

from assay.declare.loader import load_fleet
from assay.model.specs.burn_in import BurnIn
from assay.validate.active.unit_results import LoadRun
from tests.support.places import ROOT
from tests.validate.active.battery_runs import make_run
from tests.validate.active.written_lines import Journal


@pytest.fixture(scope="session")
def day() -> BurnIn:
    """The shipped day."""
    return load_fleet(ROOT).burn_ins["day"]


@pytest.fixture
def journal() -> Journal:
    """An empty journal."""
    return Journal()


@pytest.fixture
def all_right() -> LoadRun:
    """A run of two tests on eight GPUs that agree."""
    return make_run({"gemm.float32.ones": {"0": "9f3a01bc", "1": "11111111"}, "exp.float32": {"0": "22222222"}})
