"""`python -m bench.made_standings FLEET [drift]` records in a fleet's ledger that every check of drift has passed.

With `drift`, one of them fails on every node, and another on every hundredth, as after a merge that nobody rolls out.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from assay.act.loop.sync_reading import ExpectedChecks
from assay.decide.state.decision_and_fault_entries import make_enrolled_entry
from assay.declare.fleet_cache import load_cached_fleet
from assay.ledger.store import Ledger
from assay.model.fleet import Fleet
from assay.model.outcome import Outcome, SuiteRun

FIRMWARE = "suites/zap/test_firmware.py::test_firmware_is_the_bundles"
DRIVER = "suites/zap/test_configuration.py::test_driver_version"
OLD_BIOS = "BIOS 1.0, expected 2.7.3 (specs/firmware/hgx-h100-2026-10.yaml:9)"
OLD_DRIVER = "driver 1.2, expected 570.172.08 (specs/nodes/hgx-h100.yaml:9)"


def make(folder: Path, *, drift: bool) -> None:
    """Enrol every node in service, and record one run that is a minute old."""
    (folder / ".assay").mkdir(exist_ok=True)
    fleet, now = load_cached_fleet(folder, ()), datetime.now(UTC)
    ledger = Ledger.open(folder / ".assay" / "ledger.sqlite")
    nodes, enrolled = fleet.nodes.values(), now - timedelta(days=1)
    ledger.append(*(make_enrolled_entry(node.name, node.pool, "production", enrolled) for node in nodes))
    at = (now - timedelta(minutes=1)).isoformat()
    run = SuiteRun(f"run-{'drift' if drift else 'passes'}", at, spec_commit=fleet.commit)
    ledger.record(run, _list_outcomes(fleet, at, drift=drift), now)
    ledger.close()


def _list_outcomes(fleet: Fleet, at: str, *, drift: bool) -> Iterator[Outcome]:
    expected = ExpectedChecks(fleet)
    for number, node in enumerate(fleet.nodes.values()):
        for one in expected.of_node(node):
            check, judged_by = one.check, one.judged_by or expected.find_own_hash(one.check.id, node)
            reason = (
                OLD_BIOS if check.id == FIRMWARE else OLD_DRIVER if check.id == DRIVER and number % 100 == 0 else ""
            )
            reason = reason if drift else ""
            for part in one.parts if "production" in check.phases else ():
                subject = f"{node.subject}/{part}".rstrip("/")
                yield Outcome(
                    check.id,
                    subject,
                    node.name,
                    "fail" if reason else "pass",
                    reason,
                    check.fault,
                    tuple(check.phases),
                    evidence=f"document of {node.name}",
                    evidence_at=at,
                    judged_by=judged_by,
                )


if __name__ == "__main__":
    make(Path(sys.argv[1]), drift="drift" in sys.argv[2:])
