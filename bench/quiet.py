"""What a pass over a large fleet costs in which nothing happens and nobody's turn has come.

The ledger knows 10,000 nodes with ten lines of history and twenty outcomes each, every fabric was scanned, every
probe and BMC was heard. Warm is a turn of the loop with all that it does now and then; cold is a process that begins.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from assay.controller.cache.fleet_state import FleetStateCache
from assay.controller.context import ControllerContext
from assay.controller.enrollment import enroll_nodes
from assay.controller.fleet_reload import FleetReloader
from assay.controller.ingest.silent_nodes import list_sources, open_last_seen
from assay.controller.rack_leases import RackAssignment
from assay.controller.reconcile_loop import LoopListener, ReconcileLoop
from assay.fabric.scan import format_fabric_subject
from assay.fabric.topology.design_compiler import compile_topology
from assay.fleet.fleet_loader import load_fleet
from assay.harness.selection.declared_checks import DeclaredOutcomes
from assay.ledger.store import Ledger
from assay.lifecycle import ledger_entries
from assay.lifecycle.faults.detection import FaultClearance, FaultObservation
from assay.model.evidence import EvidenceDocument
from assay.model.fleet import Fleet
from assay.model.ledger_entry import LedgerEntry
from assay.model.outcome import Outcome, SuiteRun
from assay.model.reading import value
from assay.model.timestamps import format_time
from assay.observe.evidence_store import EvidenceStore
from bench.big_fabric import dump
from bench.big_fleet import make
from bench.measurement import Measurement

NODES, OUTCOMES, FAULTS = 10_000, 20, 5
BOUND_S = 2.0
THEN = datetime(2026, 11, 21, 12, tzinfo=UTC)


@dataclass
class Now:
    """A clock that stands still."""

    at: datetime

    def now(self) -> datetime:
        """Return its time."""
        return self.at

    def sleep(self, seconds: float) -> None:
        """Let time pass."""
        self.at += timedelta(seconds=seconds)


def measurements(folder: Path) -> Iterator[Measurement]:
    """Measure a pass over quiet nodes, cold and warm, in a fleet made below `folder`."""
    root = make(folder / "quiet", NODES)
    desk = desk_of(root)
    furnish(desk)
    desk.ledger.close()
    begun = time.process_time()
    desk = desk_of(root)
    read = time.process_time() - begun
    loop = loop_of(desk)
    loop.begin()
    loop.run_everything_due()
    cold = time.process_time() - begun
    warm = min(_of_one_pass(loop) for _ in range(3))
    parts = {"cold_cpu_s": cold, "of_it_reading_the_fleet_s": read, "outcomes_in_the_ledger": NODES * OUTCOMES}
    yield Measurement(f"a pass over {NODES:,} quiet nodes", warm, "CPU s", "at most", BOUND_S, parts)


def _of_one_pass(loop: ReconcileLoop) -> float:
    begun = time.process_time()
    loop.run_everything_due()
    return time.process_time() - begun


def desk_of(root: Path) -> ControllerContext:
    """Return the desk of the fleet, a day after its nodes were judged."""
    home = root / ".assay"
    ledger, store = Ledger.open(home / "ledger.sqlite"), EvidenceStore(home / "evidence")
    return ControllerContext(load_fleet(root), ledger, store, Now(THEN + timedelta(days=1)), home, root / "reports")


def loop_of(desk: ControllerContext) -> ReconcileLoop:
    """Return a loop over all nodes, with nobody who listens."""
    told = LoopListener(lambda _: None, lambda _: None)
    current = FleetReloader(desk.fleet.root, lambda: desk.fleet, desk.clock, told.on_message)
    return ReconcileLoop(
        FleetStateCache(desk), RackAssignment(), current, lambda fleet: list(fleet.nodes), told, 86_400.0
    )


def furnish(desk: ControllerContext) -> None:
    """Give the fleet a past, as written by what writes it."""
    past = replace(desk, clock=Now(THEN - timedelta(days=30)))
    enroll_nodes(past)
    desk.ledger.append(*(entry for name in desk.fleet.nodes for entry in _history(desk.fleet, name)))
    names = list(desk.fleet.nodes)
    declared = DeclaredOutcomes(desk.fleet)
    for first in range(0, NODES, 500):
        some = names[first : first + 500]
        run = SuiteRun(f"run-{first:06}", THEN.isoformat(), ("production",), tuple(some))
        desk.ledger.record(run, (one for name in some for one in _outcomes(declared, name)))
    open_last_seen(desk).record_polls(
        {(node.name, source): True for node in desk.fleet.nodes.values() for source in list_sources(node)},
        desk.clock.now(),
    )
    for design in desk.fleet.designs.values():
        text = "".join(dump(compile_topology(design, desk.fleet)))
        desk.evidence.store_latest(
            EvidenceDocument(format_fabric_subject(design), desk.clock.now(), {"discovery": {"text": value(text)}})
        )


def _history(fleet: Fleet, name: str) -> Iterator[LedgerEntry]:
    """Yield faults of a node that came and went."""
    for number in range(FAULTS):
        at = THEN - timedelta(days=20 - number)
        fault = FaultObservation(
            f"fault-{name}-{number}", name, "gpu.xid.13", f"{fleet.nodes[name].subject}/gpu{number}", "informational",
            "application", "none", 1, format_time(at), format_time(at), "a kernel of theirs", {"kernel": f"b:{number}"}, (),
        )  # fmt: skip
        yield ledger_entries.make_fault_entry(fault, at)
        yield ledger_entries.make_cleared_entry(
            name, FaultClearance(fault.id, "not seen again for 24 h"), at + timedelta(days=1)
        )


def _outcomes(declared: DeclaredOutcomes, name: str) -> Iterator[Outcome]:
    for check, subject in declared.of_node(name)[:OUTCOMES]:
        yield Outcome(
            check.id,
            str(subject),
            name,
            "pass",
            "",
            check.fault or "",
            tuple(check.phases),
            evidence_at=THEN.isoformat(),
        )


if __name__ == "__main__":
    import sys

    for one in measurements(Path(sys.argv[1])):
        print(json.dumps(one.as_json()))  # noqa: T201 — the answer
