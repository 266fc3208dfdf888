"""What a pass makes of a failing check that is known, before and after the expiry, by the time of the loop."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from assay.act.loop.context import ControllerContext
from assay.act.loop.snapshot import FleetSnapshotCache
from assay.adapters.scheduler import SchedulerNodeStatus
from assay.decide.moves.decide import decide
from assay.decide.state import decision_and_fault_entries
from assay.decide.state.decision_and_fault_entries import make_fault_entries
from assay.declare.loader import load_fleet
from assay.ledger.store import Ledger
from assay.model.evidence import EvidenceDocument
from assay.model.outcome import Outcome, SuiteRun
from assay.observe.evidence_store import EvidenceStore
from tests.support.places import ROOT

HEAT = "suites/production/test_gpu.py::test_gpu_temperature"
ENDS = datetime(2026, 12, 1, tzinfo=UTC)
KNOWN = f"""kind: KnownIssues
name: fleet
issues:
  - issue: https://git.example/issues/7
    match: {{check: "{HEAT}", node: n0003}}
    reason: the sensor reads ten too much
    owner: thermal
    expires: 2026-12-01
"""


class Then:
    """A clock that is set by hand."""

    def __init__(self, at: datetime) -> None:
        self.at = at

    def now(self) -> datetime:
        return self.at

    def sleep(self, seconds: float) -> None:
        raise AssertionError


def failing_at(root: Path, now: datetime) -> ControllerContext:
    """Return the desk of a fleet whose node n0003, in production, is too hot."""
    ledger = Ledger.open(root / "ledger.sqlite")
    ledger.append(
        decision_and_fault_entries.make_enrolled_entry("n0003", "h100-a", "production", now - timedelta(days=9))
    )
    at = (now - timedelta(minutes=1)).isoformat()
    hot = Outcome(HEAT, "h100-a/n0003/gpu0", "n0003", "fail", "98 °C", "gpu.thermal", ("production",), evidence_at=at)
    ledger.record(SuiteRun("run-1", at), [hot])
    store = EvidenceStore(root / ".assay" / "evidence")
    return ControllerContext(
        load_fleet(root), ledger, store, Then(now), root / ".assay", root / "reports", lambda _: Idle()
    )


class Idle:
    """A scheduler without jobs."""

    def read_statuses(self, nodes: list[str]) -> dict[str, SchedulerNodeStatus]:
        return dict.fromkeys(nodes, SchedulerNodeStatus())


@pytest.mark.parametrize(
    ("now", "listed", "faults", "moved"),
    [
        (ENDS - timedelta(seconds=1), True, [], False),
        (ENDS, True, ["gpu.thermal"], True),
        (ENDS - timedelta(seconds=1), False, ["gpu.thermal"], True),
    ],
)
def test_a_known_failure_is_no_fault_until_the_entry_expires(now, listed, faults, moved, tmp_path):
    for folder in ("inventory", "specs"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    if listed:
        (tmp_path / "specs" / "known-issues.yaml").write_text(KNOWN)
    desk = failing_at(tmp_path, now)
    view = next(
        view for view in FleetSnapshotCache(desk).build_snapshot(desk.fleet.nodes).nodes if view.name == "n0003"
    )
    found = make_fault_entries(desk.fleet, view.node_state, now, EvidenceDocument("n0003", now), view.latest)
    assert [entry.body["class"] for entry in found if entry.kind == "fault"] == faults
    desk.ledger.append(*found)
    made = decide(FleetSnapshotCache(desk).build_snapshot(desk.fleet.nodes))
    assert any(one.timing != "record" for one in made) is moved
    if not moved:
        assert [cause.kind for one in made for cause in one.causes] == ["known", "outcome"]
        assert "known: https://git.example/issues/7 until 2026-12-01" in made[0].causes[0].text
    desk.ledger.close()
