"""The repository's own fabric."""

from __future__ import annotations

import pytest

from assay.declare.loader import load_fleet
from assay.model.fleet import Fleet
from assay.model.specs.fabric.fabric_design import FabricDesign
from tests.support.places import ROOT


@pytest.fixture(scope="session")
def fabric_fleet() -> Fleet:
    return load_fleet(ROOT)


@pytest.fixture(scope="session")
def fabric_design(fabric_fleet: Fleet) -> FabricDesign:
    return fabric_fleet.designs["compute"]
