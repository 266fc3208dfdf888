"""The example fleet with two days of history in its ledger: decided by the real policy, with what devices may say."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

from assay.act.tickets.ticket_diff import diff_tickets
from assay.declare.loader import load_fleet
from assay.ledger.store import Ledger
from assay.model.entries.rollouts import RolloutGroup, RolloutStartedEntry
from assay.model.fleet import Fleet
from assay.model.ledger_entry import LedgerEntry, derive_id
from assay.model.outcome import Measurement, Outcome, SuiteRun
from assay.model.ticket import Ticket, TicketPlace
from tests.decide.conftest import Paper
from tests.support.noted_readings import note_readings
from tests.support.places import ROOT
from tests.support.serving_fleet import start_history

ROLLOUT = "0123456789abcdef"
HOSTILE = "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">'\"&{{7*7}}"
"""What a device may say: it must be shown as it is, and do nothing."""
TEMPERATURES = (61.0, 62.0, 61.5, 64.0, 70.0, 83.0)
LIMIT = "specs/nodes/hgx-h100.yaml:41"
CHECK = "suites/production/test_gpu.py::test_temperature"
IN_SERVICE = tuple(f"n{number:04}" for number in range(3, 21))


def copy_fleet(root: Path) -> Fleet:
    """Copy the example fleet to `root`, a repository without a ledger."""
    for part in ("inventory", "specs", "suites"):
        shutil.copytree(ROOT / part, root / part, ignore=shutil.ignore_patterns("__pycache__"))
    start_history(root)
    (root / ".assay").mkdir()
    return load_fleet(root)


def make_fleet_with_history(root: Path) -> Fleet:
    """Copy the example fleet to `root`, and write its history into its ledger."""
    fleet = copy_fleet(root)
    ledger = Ledger.open(root / ".assay" / "ledger.sqlite")
    ledger.append(*tell_history(fleet))
    for number, temperature in enumerate(TEMPERATURES):
        _record_run(ledger, fleet, number, temperature)
    ledger.close()
    note_readings(root)
    return fleet


def tell_history(fleet: Fleet) -> list[LedgerEntry]:
    """Return two days of entries: a repaired node, one that waits for a job, one held, one for technicians."""
    paper = Paper(fleet.policy, fleet.fault_catalog, dict(fleet.profiles))
    paper.lines = dict(fleet.lines)
    paper.now = datetime.now(UTC).replace(microsecond=0) - timedelta(days=2)
    for node in fleet.nodes.values():
        state = "production" if node.name in IN_SERVICE else "onboard"
        paper.add(node.name, state, pool=node.pool, rack=node.rack, serial=node.serial, profile=node.profile)
    paper.later(hours=20)
    _repair(paper, "n0003")
    paper.later(hours=20)
    paper.jobs["n0006"] = ("job 4711 of alice, until 2026-12-01T12:00:00Z at the latest",)
    paper.fault("n0006", "gpu.nvlink.down", "gpu2", detail=HOSTILE)
    paper.fault("n0007", "gpu.xid.79", "gpu4", detail="GPU has fallen off the bus")
    paper.step()
    paper.settle("n0007")
    paper.later(minutes=30)
    paper.fault("n0007", "gpu.xid.79", "gpu4", detail="GPU has fallen off the bus, again")
    paper.step()
    paper.say("hold", "n0005", reason=f"RCA with the vendor {HOSTILE}")
    tickets = diff_tickets({}, [make_ticket()], lambda *_: "", paper.now.isoformat(), timedelta(days=7))
    group = RolloutGroup("zap", "firmware of the BMC", "a" * 40, ("n0013", "n0014"))
    started = RolloutStartedEntry(ROLLOUT, "a" * 40, "b" * 40, (group,))
    rollout = started.make_entry(derive_id(ROLLOUT), paper.now.isoformat())
    return [*paper.log.values(), *tickets, rollout]


def make_ticket() -> Ticket:
    """Return a ticket with a cable's two ends."""
    ends = (TicketPlace("n0009", "lab1", "r03", 4, "mlx5_3", "R3"), TicketPlace("leaf-su01-r3", "lab1", "r06", 40, "9"))
    return Ticket(
        derive_id("a ticket"),
        "link n0009",
        f"Cable of n0009 flaps {HOSTILE}",
        "n0009",
        ends,
        expected="4xNDR, active",
        seen=f"down {HOSTILE}",
        verify="fabric scan",
        severity="degraded",
        cause="a bad transceiver",
        steps="Reseat both ends.\nIf the link stays down, replace the cable.\nClose the rack.",
    )


def _repair(paper: Paper, node: str) -> None:
    """Let a node fail, get a reboot, and come back."""
    paper.fault(node, "gpu.xid.79", "gpu3", detail="GPU has fallen off the bus")
    paper.step()
    paper.settle(node)
    paper.later(hours=1)
    paper.pass_all(node)
    paper.step()
    paper.settle(node)


def _record_run(ledger: Ledger, fleet: Fleet, number: int, temperature: float) -> None:
    at = datetime.now(UTC).replace(microsecond=0) - timedelta(hours=len(TEMPERATURES) - number - 0.5)
    outcomes = [
        _make_outcome(fleet, node, gpu, at, temperature if node == "n0004" and gpu == 0 else 55.0 + gpu)
        for node in IN_SERVICE
        for gpu in range(8)
    ]
    run = SuiteRun(f"run-{number}", at.isoformat(), ("production",), IN_SERVICE, who="test")
    ledger.record(run, outcomes, at)


def _make_outcome(fleet: Fleet, node: str, gpu: int, at: datetime, temperature: float) -> Outcome:
    is_hot = temperature > 80
    return Outcome(
        CHECK,
        f"{fleet.nodes[node].pool}/{node}/gpu{gpu}",
        node,
        "fail" if is_hot else "pass",
        reason=f"temperature is {temperature:g} Cel, at most 80 Cel {HOSTILE}" if is_hot else "",
        fault="gpu.thermal",
        phases=("production",),
        evidence="0" * 64,
        evidence_at=at.isoformat(),
        measurements=(
            Measurement("temperature", temperature, "Cel", at_most=80.0, source="specs/nodes/hgx-h100.yaml:41"),
        ),
    )
