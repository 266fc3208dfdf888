"""Controllers to be killed: a nursery that has everything loaded, and forks one whenever it is told to.

`python -m tests.integration.chaos.chaos_controller FOLDER LEDGER NODES RATE` reads lines: `go SEED` (passes one after
the other), `run SEED` (the running loop) and `settle SEED` (passes over all nodes until nothing is left to do) answer
with the id of the new process; `kill PID` and `wait PID` with how it ended.
"""

# ruff: noqa: T201 — its answers
from __future__ import annotations

import ctypes
import faulthandler
import json
import os
import random
import signal
import sys
import time
import traceback
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cache, partial
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any

from assay.act.effects import dbos_workflows  # durable: so that a child has DBOS loaded
from assay.act.effects.pending_effect_runner import list_pending_effects
from assay.act.ingest import collection, suite_runs
from assay.act.loop import reconcile_pass  # durable: so that a child has DBOS loaded
from assay.act.loop.context import ControllerContext
from assay.act.loop.fleet_reload import FleetReloader
from assay.act.loop.rack_leases import hold_rack_assignment
from assay.act.loop.reconcile_loop import LoopListener, ReconcileLoop
from assay.act.loop.snapshot import FleetSnapshotCache
from assay.decide.state.node_projection import project_node_states
from assay.declare.loader import load_fleet
from assay.ledger.store import Ledger
from assay.model.clock import ScaledClock
from assay.model.errors import AssayError
from assay.model.evidence import EvidenceDocument
from assay.model.fleet import Fleet
from assay.model.node import Node
from assay.model.outcome import CheckSubject, Outcome, SuiteRun
from assay.model.specs.check_catalog import CheckCatalog, CheckDeclaration
from assay.model.specs.node_settings import NodeSettings, ServiceImport
from assay.observe.evidence_store import EvidenceStore
from tests.integration.chaos.chaos_settling import STACKS, STACKS_PLEASE
from tests.integration.chaos.chaos_world import Deed, DrainNow, Nothing, Scheduler, World
from tests.support.places import ROOT

ALIVE = "suites/production/test_chaos.py::test_alive"
CHECKS = (
    CheckDeclaration(id="suites/seatrial/test_chaos.py::test_seated", subject="node", phases=["seatrial"]),
    CheckDeclaration(id="suites/zap/test_chaos.py::test_image", subject="node", phases=["zap"]),
    CheckDeclaration(id="suites/test/test_chaos.py::test_burn", subject="node", phases=["test"], active=True),
    CheckDeclaration(id=ALIVE, subject="node", phases=["production", "test"]),
)
RACK = 10
PR_SET_PDEATHSIG = 1
EACH_S, LEASE_S = 1800.0, 8.0
"""How often a node is looked at, in seconds of the fleet's clock; how long a dead controller's racks are its own.

A living one that gets no processor for so long loses its racks in the middle of a deed: with 3 s that happened once on
a machine with eight busy processes on two cores."""
WRONG_S = 3600.0
"""How far off the clock of a controller can be, in seconds of the fleet's clock."""
ORIGIN = "2026-11-21T00:00:00+00:00"
assert dbos_workflows


@cache
def _repository() -> Fleet:
    return load_fleet(ROOT)


def fleet_of(root: Path, nodes: int) -> Fleet:
    """Return this repository's policy over nodes in two pools and racks of ten, all in production."""
    real = _repository()
    model = next(node for node in real.nodes.values() if node.profile == "managed")
    names = [f"n{number:04}" for number in range(nodes)]
    imported = ServiceImport(nodes=names, reason="they serve already", expires="2999-01-01")
    starts = NodeSettings(service_import=imported)
    some = {
        name: replace(
            model, name=name, serial=f"S{name}", pool=f"p{n % 2}", rack=f"r{n // RACK}", u=n % RACK, settings=starts
        )
        for n, name in enumerate(names)
    }
    policy = next(iter(real.policies.values()))
    test = policy.states["test"].model_copy(update={"soak_hours": 1, "burn_in": [], "entry": []})
    limits = policy.limits.model_copy(update={"per_minute": 6000, "reboots_per_hour": 40})
    told = policy.model_copy(update={"states": {**policy.states, "test": test}, "limits": limits, "commits": None})
    catalogue = CheckCatalog.model_construct(kind="CheckCatalog", name="chaos", checks=list(CHECKS))
    return replace(
        real,
        root=root,
        nodes=some,
        policies={told.name: told},
        check_catalogs={"chaos": catalogue},
        known_issue_lists={},
        ticket_routes={},
        commit="",
    )


class Controller:
    """One controller's life, among BMCs that refuse some of its orders: two in a row bring a node to triage."""

    lease_s, each_s = LEASE_S, EACH_S

    def __init__(
        self, root: Path, ledger: str, fleet: Fleet, clock: ScaledClock, seed: int, refused: float = 0.05
    ) -> None:
        self.root, self.where, self.fleet, self.clock = root, ledger, fleet, clock
        self.chance, self.world = random.Random(seed), World(root)
        for what in ("reboot", "powercycle", "zap"):
            sys.modules[f"assay.act.actions.{what}"] = Deed(self.world, what, self.chance, refused)  # type: ignore[assignment]
        for what in ("collect", "wipe", "dossier"):
            sys.modules[f"assay.act.actions.{what}"] = Nothing()  # type: ignore[assignment]
        sys.modules["assay.act.actions.drain_now"] = DrainNow()  # type: ignore[assignment]
        os.fsync = lambda _: None  # of evidence: no machine is killed here; databases have their own
        collection.stream_evidence = self._collect  # type: ignore[assignment]
        suite_runs.run_validation = self._validate  # type: ignore[assignment]

    def live(self, *, settle: bool) -> None:
        """Take the fleet round the loop until killed, or until everything is settled."""
        while True:
            try:
                ledger = Ledger.open(self.where, patience_s=20)
                while True:
                    self.take_pass(ledger, settle=settle)
                    self._note("passes", "x")
                    if settle and self.settled(ledger) and not self.world.ill():
                        return ledger.close()
            except AssayError as trouble:
                self._note("troubles", str(trouble))
                time.sleep(0.1)

    def take_pass(self, ledger: Ledger, *, settle: bool) -> None:
        """Take the nodes once round the loop; or the ill ones and a quarter of the others, unless it is to `settle`."""
        names = list(self.fleet.nodes)
        ill = self.world.ill()
        part = sorted({*self.chance.sample(names, len(names) // 4), *ill})
        some = names if settle or self.chance.random() < 0.5 else part
        context = self._desk(ledger)
        reconcile_pass.reconcile_once(context, some, scan_fabric=False)

    @property
    def scheduler(self) -> Scheduler:
        return Scheduler(self.world)

    @property
    def store(self) -> EvidenceStore:
        return EvidenceStore(self.root / ".assay" / "evidence")

    def run(self) -> None:
        """Run as `assay reconcile` does, beside others where the ledger is shared, until killed."""
        while True:
            try:
                desk = self._desk(Ledger.open(self.where, patience_s=20))
                current = FleetReloader(self.root, self.read_fleet, self.clock, self._complain)
                told = LoopListener(lambda _: None, self._complain)
                with hold_rack_assignment(desk, lease_s=self.lease_s) as share:
                    ReconcileLoop(
                        FleetSnapshotCache(desk), share, current, lambda fleet: list(fleet.nodes), told, self.each_s
                    ).run(Event())
            except AssayError as trouble:
                self._note("troubles", str(trouble))
                time.sleep(0.1)

    def read_fleet(self, _: object = None) -> Fleet:
        """Return the fleet as it is declared now."""
        return self.fleet

    def _complain(self, text: str) -> None:
        self._note("crashes" if "internal error" in text else "troubles", text)

    def _desk(self, ledger: Ledger) -> ControllerContext:
        home, scheduler = self.root / ".assay", self.scheduler
        return ControllerContext(
            self.fleet, ledger, self.store, self.clock, home, self.root / "reports", lambda _: scheduler
        )

    def settled(self, ledger: Ledger) -> bool:
        """Whether nothing is owed to any node, and nothing that was begun is open."""
        desk = self._desk(ledger)
        stories = project_node_states(ledger.entries()).values()
        return not any(not wish.has_ended for story in stories for wish in list_pending_effects(desk, story))

    def _collect(self, fleet: Fleet, names: Collection[str], *, clock: Any, **_: object) -> Iterator[EvidenceDocument]:
        now = clock.now()
        with self.world.open() as world:
            deeds = dict(world.execute("SELECT name, deeds FROM node"))
        yield from (EvidenceDocument(name, now, {"probe": {"boot": {"value": deeds[name]}}}) for name in names)

    def _validate(self, fleet: Fleet, *_: object, nodes: Sequence[str], phases: Sequence[str], **with_: Any) -> Any:
        """Judge as the suites would: whatever is ill fails the check that sees it."""
        now, ill = with_["clock"].now().isoformat(), self.world.ill()  # in this order: it is no older than it says
        wanted = [(fleet.nodes[name], check) for name in nodes for check in _asked(phases)]
        told = [_outcome(node, check, ill.get(node.name, ""), now) for node, check in wanted]
        run = SuiteRun(f"{now}-{self.chance.getrandbits(64):016x}", now, tuple(phases), tuple(nodes), who="chaos")
        with_["ledger"].record(run, told)
        return SimpleNamespace(run=run)

    def _note(self, file: str, text: str) -> None:
        with (self.root / file).open("a") as notes:
            notes.write(f"{text}\n")


def _asked(phases: Sequence[str]) -> list[CheckDeclaration]:
    return [check for check in CHECKS if set(check.phases) & set(phases)]


def _outcome(node: Node, check: CheckDeclaration, ill: str, now: str) -> Outcome:
    plain: dict[str, Any] = {"verdict": "pass"}
    if ill and check.id == ALIVE:
        plain = {"verdict": "fail", "reason": f"{ill} is seen", "fault": ill}
    plain |= {"phases": tuple(check.phases), "active": check.active, "evidence_at": now}
    return Outcome(check.id, str(CheckSubject(node.pool, node.name)), node.name, **plain)


def _child(word: str, make: Callable[[], Controller]) -> None:
    """Live in the forked process; what is no Trouble is a crash, and is written down."""
    code, stacks = 0, (Path(sys.argv[1]) / STACKS).open("w")
    faulthandler.register(STACKS_PLEASE, file=stacks)
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # where a test fails, nobody else would end it
    try:
        one = make()
        if word == "run":
            one.run()
        else:
            one.live(settle=word == "settle")
    except BaseException:  # whatever it is, the test wants to know
        with (Path(sys.argv[1]) / "crashes").open("a") as crashes:
            crashes.write(traceback.format_exc())
        code = 1
    os._exit(code)


def _set_wrong(clock: ScaledClock, seed: int) -> ScaledClock:
    """Return the clock as one controller has it: every other one is up to WRONG_S fast or slow."""
    chance = random.Random(f"clock {seed}")
    wrong = timedelta(seconds=chance.uniform(-WRONG_S, WRONG_S)) if chance.random() < 0.5 else timedelta()
    return ScaledClock(clock.origin + wrong, clock.anchor, clock.rate)


def serve(root: Path, rate: float, make: Callable[[ScaledClock, int], Controller]) -> None:
    """Fork the controllers that are asked for, each made with its clock and its seed."""
    clock = ScaledClock(datetime.fromisoformat(ORIGIN), time.time(), rate)
    (root / "clock").write_text(json.dumps([clock.anchor, rate]))
    print("ready", flush=True)
    for line in sys.stdin:
        word, number = line.split()
        if word in ("go", "run", "settle"):
            pid = os.fork()
            if pid == 0:
                own = clock if word == "settle" else _set_wrong(clock, int(number))
                _child(word, partial(make, own, int(number)))
            print(pid, flush=True)
            continue
        if word == "kill":
            os.kill(int(number), signal.SIGKILL)
        print(os.waitstatus_to_exitcode(os.waitpid(int(number), 0)[1]), flush=True)


if __name__ == "__main__":
    fleet = fleet_of(Path(sys.argv[1]), int(sys.argv[3]))
    serve(Path(sys.argv[1]), float(sys.argv[4]), partial(Controller, Path(sys.argv[1]), sys.argv[2], fleet))
