"""The repository's own fabric."""

from __future__ import annotations

from pathlib import Path

import pytest

from assay.declare.loader import load_fleet
from assay.model.fleet import Fleet
from assay.model.specs.fabric.fabric_design import FabricDesign


@pytest.fixture(scope="session")
def fabric_fleet() -> Fleet:
    return load_fleet(Path(__file__).parents[3])


@pytest.fixture(scope="session")
def fabric_design(fabric_fleet: Fleet) -> FabricDesign:
    return fabric_fleet.designs["compute"]
