"""Nodes of a scheduler that lies in a file, for a process that dies at the moment that it is told (MOMENTS)."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

from assay.act.loop.context import ControllerContext
from assay.adapters.scheduler import CustomerJob, SchedulerNodeStatus
from assay.declare.loader import load_fleet
from assay.ledger.store import Ledger
from assay.model.clock import SystemClock
from assay.model.errors import AssayError
from assay.model.fleet import Fleet
from assay.model.ledger_entry import LedgerEntry
from assay.model.node import Node
from assay.observe.evidence_store import EvidenceStore
from tests.support.places import ROOT

MOMENTS = ("before the intents", "after the intents", "half-way", "after the order", "after the ends")


class FileScheduler:
    """Cordons in a file, and a count of the orders given for each node. Dies where it is told."""

    places_jobs = True

    def __init__(self, home: Path, moment: str = "never") -> None:
        self.file, self.moment = home / "cordons.json", moment
        self.asked, self.silent_after, self.strangers, self.refuses = 0, 10**6, set[str](), ""
        self._lock = threading.Lock()

    def read(self) -> dict[str, list[str]]:
        return json.loads(self.file.read_text()) if self.file.exists() else {}

    def read_statuses(self, nodes: Collection[str]) -> dict[str, SchedulerNodeStatus]:
        self._answer()
        cordons = self.read()
        known = [node for node in nodes if node not in self.strangers]
        return {node: SchedulerNodeStatus((), cordons.get(node, [""])[-1]) for node in known}

    def cordon_many(self, reasons: Mapping[str, str]) -> None:
        self._answer()
        self.dies("after the intents")
        if self.refuses:
            raise AssayError(self.refuses)
        for number, (node, reason) in enumerate(reasons.items()):
            self._write(node, f"assay: {reason}")
            if number == len(reasons) // 2:
                self.dies("half-way")
        self.dies("after the order")

    def uncordon(self, node: str) -> None:
        self._answer()
        self._write(node, "")

    def list_jobs(self, node: str) -> tuple[CustomerJob, ...]:
        self._answer()
        return ()

    def read_cordon_reason(self, node: str) -> str:
        return self.read_statuses([node])[node].cordon

    def dies(self, moment: str) -> None:
        if moment == self.moment:
            os.kill(os.getpid(), signal.SIGKILL)

    def _write(self, node: str, reason: str) -> None:
        with self._lock:
            cordons = self.read()
            cordons.setdefault(node, []).append(reason)
            self.file.write_text(json.dumps(cordons))

    def _answer(self) -> None:
        self.asked += 1
        if self.asked > self.silent_after:
            raise AssayError("slurmctld does not answer")


@cache
def declared() -> Fleet:
    """Return this repository's fleet, read once."""
    return replace(load_fleet(ROOT), is_lab=True)


def desk_of(home: Path, scheduler: FileScheduler, count: int = 24, tell=lambda line: None) -> ControllerContext:
    """Return the desk of some nodes that have that scheduler; its ledger dies around writing what is asked."""
    real = declared()
    nodes = {name: Node(name, "h100-a", "s1", "r1", 1, "", "", "") for name in _names(count)}
    ledger = Ledger.open(home / "ledger.sqlite")
    append = ledger.append

    def dying(*entries: LedgerEntry) -> list[bool]:
        kinds = {entry.kind for entry in entries}
        if "effect.intent" in kinds:
            scheduler.dies("before the intents")
        told = append(*entries)
        if "effect.verified" in kinds:
            scheduler.dies("after the ends")
        return told

    ledger.append = dying  # type: ignore[method-assign]
    store = EvidenceStore(home / "evidence")
    policy = next(iter(real.policies.values()))
    draining = policy.states["draining"].model_copy(update={"entry": ["cordon"]})
    policy = policy.model_copy(update={"states": policy.states | {"draining": draining}})
    fleet = replace(real, root=home, nodes=nodes, policies={policy.name: policy})
    return ControllerContext(fleet, ledger, store, SystemClock(), home, home / "reports", lambda _: scheduler, tell)


def moved(desk: ControllerContext, origin: str, to: str, decision: str) -> Iterator[LedgerEntry]:
    """Yield what the ledger has of decisions that sent every node somewhere."""
    now = desk.now
    for node in desk.fleet.nodes:
        ident = f"{decision}-{node}"
        body = {"decision": ident, "from": origin, "to": to, "timing": "immediate", "rule": "a rule", "remedy": ""}
        yield LedgerEntry(f"e-{node}", now, "node.enrolled", node, {"pool": "h100-a", "state": origin})
        yield LedgerEntry(ident, now, "decision", node, body | {"because": [], "blockers": []})
        yield LedgerEntry(f"{ident}-moved", now, "transition", node, {"from": origin, "to": to, "decision": ident})


def _names(count: int) -> list[str]:
    return [f"n{number:04}" for number in range(count)]
