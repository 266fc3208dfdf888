"""A week of the lab's fabric, scanned every six hours while hands and age work on it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from assay.fabric.design import Plan, plan
from assay.fabric.health.scanned import earlier
from assay.fabric.weekly.rails import rails_of
from assay.fleet.load import load_fleet
from assay.lab import port_facts
from assay.lab.fabric import lay
from assay.lab.world import World
from assay.model.evidence import Evidence
from assay.model.fleet import Fleet
from assay.model.reading import absent, value
from assay.observe.store import EvidenceStore

START = datetime(2026, 11, 14, 6, tzinfo=UTC)
EVERY = timedelta(hours=6)
Change = Callable[[World, int], None]


class Week:
    """Scans a fabric again and again, and keeps the evidence as `assay fabric scan` does."""

    def __init__(self, home: Path, fleet: Fleet) -> None:
        self.fleet, self.design = fleet, fleet.designs["compute"]
        self.plan: Plan = plan(self.design, fleet)
        self.world, self.store = World(home / "lab"), EvidenceStore(home / "evidence")
        self.world.home.mkdir(parents=True, exist_ok=True)
        lay(self.world, self.plan)

    def pass_by(self, change: Change, scans: int = 28) -> Evidence:
        """Let `change(world, number)` work before each scan; return the last."""
        last = None
        for number in range(scans):
            change(self.world, number)
            last = self._scan(START + number * EVERY, last)
        assert last is not None
        return last

    def _scan(self, at: datetime, before: Evidence | None) -> Evidence:
        said = {name: {"text": value(say(self.world)), "stderr": value("")} for name, say in port_facts.SAY.items()}
        previous = value(before.digest()) if before else absent("first")
        channels = {"ports": said, "earlier": earlier(before), "previous": previous}
        scan = Evidence("fabric-compute", at, channels)
        self.store.put(scan)
        return scan

    @property
    def rails(self) -> dict[str, int]:
        """The rail of each adapter."""
        return rails_of(self.fleet, self.design)


@pytest.fixture(scope="session")
def fleet() -> Fleet:
    return load_fleet(Path(__file__).parents[2])


@pytest.fixture(scope="module")
def a_week(tmp_path_factory: pytest.TempPathFactory, fleet: Fleet) -> Week:
    """One week that several tests look at."""
    return Week(tmp_path_factory.mktemp("week"), fleet)


@pytest.fixture
def week(tmp_path: Path, fleet: Fleet) -> Week:
    return Week(tmp_path, fleet)
