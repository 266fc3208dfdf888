"""The cost of a pass over a large fleet in which no observation is due: nothing happens, or a rollout runs.

The ledger has 10,000 nodes, each with ten entries and twenty outcomes; every fabric was scanned, every probe and BMC
has answered. Warm is a turn of the loop with all its periodic work; cold includes the start of the process.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from assay.act.ingest.silent_nodes import list_sources, open_last_seen
from assay.act.loop.context import ControllerContext
from assay.act.loop.enrollment import enroll_nodes
from assay.act.loop.fleet_reload import FleetReloader
from assay.act.loop.rack_leases import RackAssignment
from assay.act.loop.reconcile_loop import LoopListener, ReconcileLoop
from assay.act.loop.snapshot import FleetSnapshotCache
from assay.decide.faults.detection import FaultObservation
from assay.decide.state import decision_and_fault_entries
from assay.declare.loader import load_fleet
from assay.fabric.design.compiler import compile_topology
from assay.fabric.scan import format_fabric_subject
from assay.ledger.store import Ledger
from assay.model.entries.faults import FaultClearedEntry
from assay.model.entries.rollouts import NodeProvenEntry, RolloutGroup, RolloutStartedEntry
from assay.model.evidence import EvidenceDocument
from assay.model.fleet import Fleet
from assay.model.ledger_entry import LedgerEntry
from assay.model.outcome import Outcome, SuiteRun
from assay.model.reading import value
from assay.model.specs.schedules import RolloutHours
from assay.model.timestamps import format_time
from assay.observe.evidence_store import EvidenceStore
from assay.validate.runs.subjects import DeclaredOutcomes
from bench.big_fabric import dump
from bench.big_fleet import make
from bench.measurement import Measurement

NODES, OUTCOMES, FAULTS = 10_000, 20, 5
BOUND_S, TIMES_QUIET = 2.0, 3.0
"""A pass of a rollout looks at each of its nodes once more: nothing else may cost as much as the pass itself."""
PROVEN, RETURNED = 4000, 300
"""So many nodes of the rollout are proven, and so many came back and no check has passed on them yet."""
THEN = datetime(2026, 11, 21, 12, tzinfo=UTC)


@dataclass
class Now:
    """A clock that moves only when it sleeps."""

    at: datetime

    def now(self) -> datetime:
        """Return its time."""
        return self.at

    def sleep(self, seconds: float) -> None:
        """Move on by `seconds`."""
        self.at += timedelta(seconds=seconds)


def measurements(folder: Path) -> Iterator[Measurement]:
    """Measure a pass over quiet nodes, cold and warm, in a fleet below `folder`."""
    root = make(folder / "quiet", NODES)
    context = make_context(root)
    write_past(context)
    context.ledger.close()
    start = time.process_time()
    context = make_context(root)
    read = time.process_time() - start
    loop = make_loop(context)
    loop.begin()
    loop.run_everything_due()
    cold = time.process_time() - start
    warm = min(_measure_pass(loop) for _ in range(3))
    parts = {"cold_cpu_s": cold, "of_it_reading_the_fleet_s": read, "outcomes_in_the_ledger": NODES * OUTCOMES}
    yield Measurement(f"a pass over {NODES:,} quiet nodes", warm, "CPU s", "at most", BOUND_S, parts)
    start_rollout(context)
    loop.run_everything_due()
    rolling = min(_measure_pass(loop) for _ in range(3))
    what = f"a pass with a rollout over {NODES:,} nodes / without one"
    yield Measurement(what, rolling / warm, "×", "at most", TIMES_QUIET, {"cpu_s": rolling, "without_cpu_s": warm})


def _measure_pass(loop: ReconcileLoop) -> float:
    start = time.process_time()
    loop.run_everything_due()
    return time.process_time() - start


def make_context(root: Path) -> ControllerContext:
    """Return the context of the fleet, a day after its nodes were judged."""
    home = root / ".assay"
    ledger, store = Ledger.open(home / "ledger.sqlite"), EvidenceStore(home / "evidence")
    fleet, now = load_fleet(root), Now(THEN + timedelta(days=1))
    rules = fleet.policy.rollouts.model_copy(update={"hours": RolloutHours(from_hour=3, to_hour=4)})
    policy = fleet.policy.model_copy(update={"rollouts": rules})
    fleet = replace(fleet, policies={policy.name: policy})
    return ControllerContext(fleet, ledger, store, now, home, root / "reports")


def make_loop(context: ControllerContext) -> ReconcileLoop:
    """Return a loop over all nodes that prints nothing."""
    listener = LoopListener(lambda _: None, lambda _: None)
    reloader = FleetReloader(context.fleet.root, lambda _cache: context.fleet, context.clock, listener.on_message)
    return ReconcileLoop(
        FleetSnapshotCache(context), RackAssignment(), reloader, lambda fleet: list(fleet.nodes), listener, 86_400.0
    )


def write_past(context: ControllerContext) -> None:
    """Write the fleet's past with the functions that the controller uses."""
    past = replace(context, clock=Now(THEN - timedelta(days=30)))
    enroll_nodes(past)
    context.ledger.append(*(entry for name in context.fleet.nodes for entry in _history(context.fleet, name)))
    names = list(context.fleet.nodes)
    declared = DeclaredOutcomes(context.fleet)
    for first in range(0, NODES, 500):
        some = names[first : first + 500]
        run = SuiteRun(f"run-{first:06}", THEN.isoformat(), ("production",), tuple(some))
        context.ledger.record(run, (one for name in some for one in _outcomes(declared, name)))
    open_last_seen(context).record_polls(
        {(node.name, source): True for node in context.fleet.nodes.values() for source in list_sources(node)},
        context.clock.now(),
    )
    for design in context.fleet.designs.values():
        text = "".join(dump(compile_topology(design, context.fleet)))
        context.evidence.store_latest(
            EvidenceDocument(format_fabric_subject(design), context.clock.now(), {"discovery": {"text": value(text)}})
        )


def start_rollout(context: ControllerContext) -> None:
    """Write a rollout over all nodes that is half done, and whose next wave waits: `make_context` is outside hours."""
    names, at, ident = list(context.fleet.nodes), context.now, "rollout"
    group = RolloutGroup("zap", "bmc 1 → 2", "a" * 40, tuple(names))
    started = RolloutStartedEntry(ident, "a" * 40, context.fleet.commit, (group,))
    proofs = [
        NodeProvenEntry(ident, "9 checks passed").make_entry(f"proof-{name}", at, name) for name in names[:PROVEN]
    ]
    repairs = [entry for name in names[PROVEN : PROVEN + RETURNED] for entry in _repair(name, at)]
    context.ledger.append(started.make_entry(ident, at), *proofs, *repairs)


def _repair(name: str, at: str) -> Iterator[LedgerEntry]:
    """Yield the entries of a zap that was verified."""
    about = {"effect": f"zap-{name}", "action": "zap", "decision": f"decision-{name}", "reason": "", "facts": {}}
    yield LedgerEntry(f"intent-{name}", at, "effect.intent", name, about | {"before": {}, "params": {}})
    yield LedgerEntry(f"verified-{name}", at, "effect.verified", name, about)


def _history(fleet: Fleet, name: str) -> Iterator[LedgerEntry]:
    """Yield faults of a node that came and were cleared."""
    for number in range(FAULTS):
        at = THEN - timedelta(days=20 - number)
        seen, mark = format_time(at), {"kernel": f"b:{number}"}
        fault = FaultObservation(
            f"fault-{name}-{number}", name, "gpu.xid.13", f"{fleet.nodes[name].subject}/gpu{number}", "informational",
            "application", "none", 1, seen, seen, "a kernel of theirs", mark, (),
        )  # fmt: skip
        yield decision_and_fault_entries.make_fault_entry(fault, at)
        yield decision_and_fault_entries.make_cleared_entry(
            name, FaultClearedEntry(fault.id, "not seen again for 24 h"), at + timedelta(days=1)
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

    for measurement in measurements(Path(sys.argv[1])):
        print(json.dumps(measurement.as_json()))  # noqa: T201 — the answer
