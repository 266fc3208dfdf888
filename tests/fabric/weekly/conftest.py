"""A week of the lab's fabric, scanned every six hours while hands and age work on it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from assay.declare.loader import load_fleet
from assay.fabric.design.compiler import CompiledTopology, compile_topology
from assay.fabric.design.devices import map_adapter_rails
from assay.fabric.health.stored_scan import make_earlier_channel
from assay.lab.fabric import port_telemetry
from assay.lab.fabric.cabling import lay_cables
from assay.lab.world import LabWorld
from assay.model.evidence import EvidenceDocument
from assay.model.fleet import Fleet
from assay.model.reading import absent, value
from assay.observe.evidence_store import EvidenceStore
from tests.support.places import ROOT

START = datetime(2026, 11, 14, 6, tzinfo=UTC)
EVERY = timedelta(hours=6)
Change = Callable[[LabWorld, int], None]
Dead = Callable[[str, int], bool]


class Week:
    """Scans a fabric again and again, and keeps the evidence as `assay fabric scan` does."""

    def __init__(self, home: Path, fleet: Fleet) -> None:
        self.fleet, self.design = fleet, fleet.designs["compute"]
        self.plan: CompiledTopology = compile_topology(self.design, fleet)
        self.world, self.store = LabWorld(home / "lab"), EvidenceStore(home / "evidence")
        self.scans: list[EvidenceDocument] = []
        self.discovery: Callable[[int], dict[str, object]] | None = None
        self.world.home.mkdir(parents=True, exist_ok=True)
        lay_cables(self.world, self.plan)

    def pass_by(self, change: Change, scans: int = 28, dead: Dead = lambda name, number: False) -> EvidenceDocument:
        """Let `change(world, number)` work before each scan; return the last. `self.scans` has them all.

        A command prints nothing in the scans for which `dead(name, number)` holds.
        """
        self.scans.clear()
        for number in range(scans):
            change(self.world, number)
            silent = {name for name in port_telemetry.TOOL_OUTPUTS if dead(name, number)}
            self.scans.append(self._scan(number, self.scans[-1] if self.scans else None, silent))
        return self.scans[-1]

    def _scan(self, number: int, before: EvidenceDocument | None, silent: set[str]) -> EvidenceDocument:
        said = {
            name: {"text": value("" if name in silent else say(self.world)), "stderr": value("")}
            for name, say in port_telemetry.TOOL_OUTPUTS.items()
        }
        previous = value(before.digest()) if before else absent("first")
        found = {"discovery": self.discovery(number)} if self.discovery else {}
        channels = {**found, "ports": said, "earlier": make_earlier_channel(before), "previous": previous}
        scan = EvidenceDocument("fabric-compute", START + number * EVERY, channels)
        self.store.store_latest(scan)
        return scan

    @property
    def rails(self) -> dict[str, int]:
        """The rail of each adapter."""
        return map_adapter_rails(self.fleet, self.design)


@pytest.fixture(scope="session")
def fleet() -> Fleet:
    return load_fleet(ROOT)


@pytest.fixture(scope="module")
def a_week(tmp_path_factory: pytest.TempPathFactory, fleet: Fleet) -> Week:
    """One week that several tests look at."""
    return Week(tmp_path_factory.mktemp("week"), fleet)


@pytest.fixture
def week(tmp_path: Path, fleet: Fleet) -> Week:
    return Week(tmp_path, fleet)


@pytest.fixture(scope="module")
def quiet_week(tmp_path_factory: pytest.TempPathFactory, fleet: Fleet) -> Week:
    """Twelve scans in which nothing happens. Several tests look at them: change nothing."""
    week = Week(tmp_path_factory.mktemp("quiet"), fleet)
    week.pass_by(lambda world, number: None, 12)
    return week
