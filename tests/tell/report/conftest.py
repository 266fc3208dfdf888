"""The example fleet, and runs of it that a test writes as `validate` does."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from assay.declare.loader import load_fleet
from assay.ledger.runs.reader import StoredRun
from assay.ledger.runs.writer import OutcomeWriter
from assay.ledger.store import Ledger
from assay.model.fleet import Fleet
from assay.model.outcome import Outcome, SuiteRun
from assay.tell.report.latest_outcomes import LatestOutcomes
from assay.tell.report.overview_model import FleetOverview, build_overview
from assay.tell.report.status_changes import NO_ROLLOUT, RolloutWaits
from tests.support.places import ROOT
from tests.validate.conftest import fleet_copy, read, read_once, verdicts

__all__ = ["fleet_copy", "read", "read_once", "verdicts"]

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
HEAT = "suites/production/test_cooling.py::test_temperatures"


def at(hours: float) -> str:
    """Return a time so many hours after noon, as evidence and runs have it."""
    return (NOON + timedelta(hours=hours)).isoformat()


def outcome(node: str, check: str = HEAT, part: str = "", hours: float = 0, pool: str = "h100-a", **more) -> Outcome:
    """Return an outcome on a node or its part, judged by evidence of that hour."""
    subject = f"{pool}/{node}/{part}" if part else f"{pool}/{node}"
    verdict = more.pop("verdict", "pass")
    reason = more.pop("reason", "" if verdict == "pass" else f"{verdict} as planted")
    return Outcome(
        check, subject, node, verdict, reason, evidence=f"{hours!s:0>64}"[-64:], evidence_at=at(hours), **more
    )


@dataclass
class Runs:
    """Runs below a folder, and what stands when they are laid over each other. Evidence may be `fresh_hours` old."""

    folder: Path
    fleet: Fleet
    ledger: Ledger
    fresh_hours = 30
    outcome = staticmethod(outcome)

    def run(self, hours: float, *outcomes: Outcome, **more) -> Path:
        """Store a run of that hour."""
        when = NOON + timedelta(hours=hours)
        run = replace(SuiteRun(f"{when:%Y%m%dT%H%M%S}.000-abcdef", when.isoformat(), spec_commit="a" * 40), **more)
        path = self.folder / "runs" / run.id / "run.sqlite"
        path.parent.mkdir(parents=True)
        writer = OutcomeWriter(path, run, {"ended": run.at})
        for one in outcomes:
            writer(one)
        writer.close()
        return path

    def standing(self, *paths: Path) -> LatestOutcomes:
        """Return what stands after these runs are recorded; none given: after all, oldest first."""
        checks = set[str]()
        for path in paths or sorted(self.folder.glob("runs/*/run.sqlite")):
            with StoredRun.open(path) as stored:
                self.ledger.record(stored.run, stored.outcomes())
                checks |= stored.judged_subjects().keys()
        return LatestOutcomes(self.ledger, self.folder, dict.fromkeys(checks, self.fresh_hours))

    def overview(self, hours: float = 24, rollout: RolloutWaits = NO_ROLLOUT) -> FleetOverview:
        """Look at all of them."""
        with self.standing() as standing:
            return build_overview(self.fleet, standing, hours * 3600, rollout)


@pytest.fixture(scope="session")
def fleet() -> Fleet:
    return load_fleet(ROOT)


@pytest.fixture
def runs(tmp_path: Path, fleet: Fleet) -> Iterator[Runs]:
    ledger = Ledger.open(tmp_path / "ledger.sqlite")
    yield Runs(tmp_path, fleet, ledger)
    ledger.close()
