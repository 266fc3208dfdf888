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

from assay.controller.desk import Desk
from assay.controller.enrol import enroll
from assay.controller.known.current import Current
from assay.controller.known.memory import Memory
from assay.controller.looking.silence import heard_of, sources
from assay.controller.loop import Loop, Told
from assay.controller.share import Share
from assay.fabric.design import plan
from assay.fabric.scan import subject_name
from assay.fleet.load import load_fleet
from assay.harness.declared import Declared
from assay.ledger.store import Ledger
from assay.lifecycle import journal
from assay.lifecycle.classify import Cleared, FaultSeen
from assay.lifecycle.when import written
from assay.model.entry import Entry
from assay.model.evidence import Evidence
from assay.model.fleet import Fleet
from assay.model.outcome import Outcome, Run
from assay.model.reading import value
from assay.observe.store import EvidenceStore
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
    loop.pass_over()
    cold = time.process_time() - begun
    warm = min(_of_one_pass(loop) for _ in range(3))
    parts = {"cold_cpu_s": cold, "of_it_reading_the_fleet_s": read, "outcomes_in_the_ledger": NODES * OUTCOMES}
    yield Measurement(f"a pass over {NODES:,} quiet nodes", warm, "CPU s", "at most", BOUND_S, parts)


def _of_one_pass(loop: Loop) -> float:
    begun = time.process_time()
    loop.pass_over()
    return time.process_time() - begun


def desk_of(root: Path) -> Desk:
    """Return the desk of the fleet, a day after its nodes were judged."""
    home = root / ".assay"
    ledger, store = Ledger.open(home / "ledger.sqlite"), EvidenceStore(home / "evidence")
    return Desk(load_fleet(root), ledger, store, Now(THEN + timedelta(days=1)), home, root / "reports")


def loop_of(desk: Desk) -> Loop:
    """Return a loop over all nodes, with nobody who listens."""
    told = Told(lambda _: None, lambda _: None)
    current = Current(desk.fleet.root, lambda: desk.fleet, desk.clock, told.say)
    return Loop(Memory(desk), Share(), current, lambda fleet: list(fleet.nodes), told, 86_400.0)


def furnish(desk: Desk) -> None:
    """Give the fleet a past, as written by what writes it."""
    past = replace(desk, clock=Now(THEN - timedelta(days=30)))
    enroll(Memory(past))
    desk.ledger.append(*(entry for name in desk.fleet.nodes for entry in _history(desk.fleet, name)))
    names = list(desk.fleet.nodes)
    declared = Declared(desk.fleet)
    for first in range(0, NODES, 500):
        some = names[first : first + 500]
        run = Run(f"run-{first:06}", THEN.isoformat(), ("production",), tuple(some))
        desk.ledger.record(run, (one for name in some for one in _outcomes(declared, name)))
    heard_of(desk).looked(
        {(node.name, source): True for node in desk.fleet.nodes.values() for source in sources(node)}, desk.clock.now()
    )
    for design in desk.fleet.designs.values():
        text = "".join(dump(plan(design, desk.fleet)))
        desk.evidence.put(Evidence(subject_name(design), desk.clock.now(), {"discovery": {"text": value(text)}}))


def _history(fleet: Fleet, name: str) -> Iterator[Entry]:
    """Yield faults of a node that came and went."""
    for number in range(FAULTS):
        at = THEN - timedelta(days=20 - number)
        fault = FaultSeen(
            f"fault-{name}-{number}", name, "gpu.xid.13", f"{fleet.nodes[name].subject}/gpu{number}", "informational",
            "application", "none", 1, written(at), written(at), "a kernel of theirs", {"kernel": f"b:{number}"}, (),
        )  # fmt: skip
        yield journal.fault(fault, at)
        yield journal.cleared(name, Cleared(fault.id, "not seen again for 24 h"), at + timedelta(days=1))


def _outcomes(declared: Declared, name: str) -> Iterator[Outcome]:
    for check, subject in declared.of(name)[:OUTCOMES]:
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
