"""The example fleet in production on a ledger of its own, with a clock moved by hand and a scheduler that counts."""

from __future__ import annotations

import itertools
from collections.abc import Collection
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from assay.act.loop.context import ControllerContext
from assay.act.loop.snapshot import FleetSnapshotCache
from assay.adapters.scheduler import CustomerJob, SchedulerNodeStatus
from assay.decide.faults.detection import FaultObservation
from assay.decide.state import decision_and_fault_entries
from assay.decide.state.outstanding_effects import list_outstanding_effects
from assay.declare.loader import load_fleet
from assay.ledger.store import Ledger
from assay.model.errors import AssayError
from assay.model.ledger_entry import LedgerEntry, derive_id
from assay.model.outcome import Outcome, SuiteRun
from assay.model.timestamps import format_time
from assay.observe.evidence_store import EvidenceStore
from assay.validate.runs.subjects import list_declared_outcomes
from tests.support.places import ROOT

FLEET = replace(load_fleet(ROOT), is_lab=True)
NODES = sorted(FLEET.nodes, key=lambda name: (FLEET.nodes[name].pool != "h100-a", name))
START = datetime(2026, 11, 21, 12, tzinfo=UTC)


class Hands:
    """A clock that is moved by hand."""

    def __init__(self) -> None:
        self.at = START

    def now(self) -> datetime:
        return self.at


class Far:
    """One scheduler of all nodes, that counts what it is asked."""

    places_jobs = True

    def __init__(self) -> None:
        self.asked: list[set[str]] = []
        self.jobs: dict[str, tuple[CustomerJob, ...]] = {}
        self.cordons: dict[str, str] = {}
        self.strangers: set[str] = set()
        self.silent = False

    def read_statuses(self, nodes: Collection[str]) -> dict[str, SchedulerNodeStatus]:
        if self.silent:
            raise AssayError("slurmctld does not answer")
        self.asked.append(set(nodes))
        known = [node for node in nodes if node not in self.strangers]
        return {node: SchedulerNodeStatus(self.jobs.get(node, ()), self.cordons.get(node, "")) for node in known}


class Site:
    """The example fleet in production, on an empty ledger."""

    def __init__(self, place: Path | str, home: Path) -> None:
        self.clock, self.far, self.said, self.serial = Hands(), Far(), list[str](), itertools.count()
        store = EvidenceStore(home / "evidence")
        self.ledger = Ledger.open(place)
        self.desk = ControllerContext(
            FLEET, self.ledger, store, self.clock, home, home / "reports", lambda _: self.far, self.said.append
        )
        self.ledger.append(
            *(
                decision_and_fault_entries.make_enrolled_entry(name, FLEET.nodes[name].pool, "production", START)
                for name in NODES
            )
        )

    def later(self, **span: float) -> None:
        self.clock.at += timedelta(**span)

    def fault(self, name: str, what: str = "gpu.xid.79", part: str = "gpu0") -> None:
        number, at, treatment = next(self.serial), format_time(self.clock.at), FLEET.fault_catalog.find_treatment(what)
        subject = f"{FLEET.nodes[name].subject}/{part}"
        seen = FaultObservation(
            f"f{number}", name, what, subject, treatment.severity, treatment.blame, treatment.remedy, 1, at, at,
            "as planted", {"kernel": f"b:{number}"}, (at,),
        )  # fmt: skip
        self.ledger.append(decision_and_fault_entries.make_fault_entry(seen, self.clock.at))

    def say(self, kind: str, name: str, **body: str) -> None:
        body = {"who": "ann", "reason": "as planted"} | body
        self.ledger.append(LedgerEntry(f"{kind}-{next(self.serial)}", format_time(self.clock.at), kind, name, body))

    def settle(self, name: str, standing: str = "verified", only: str = "") -> None:
        """Let everything that is owed to a node, or this action of it, come to an end."""
        every = list_outstanding_effects(self.desk.policy, FleetSnapshotCache(self.desk).node_states()[name])
        for one in [one for one in every if only in ("", one.action)]:
            effect, at = derive_id(one.decision, one.action), format_time(self.clock.at)
            about = {"effect": effect, "action": one.action, "decision": one.decision, "reason": "", "facts": {}}
            begun = LedgerEntry(effect, at, "effect.intent", name, about | {"before": {}, "params": {}})
            self.ledger.append(begun, LedgerEntry(derive_id(effect, standing), at, f"effect.{standing}", name, about))
            if one.action in ("cordon", "uncordon") and standing == "verified":
                self.far.cordons[name] = "assay: as planted" if one.action == "cordon" else ""

    def judge(self, name: str, verdict: str = "pass") -> None:
        at = self.clock.at.isoformat()
        told = [
            Outcome(check.id, str(subject), name, verdict, "" if verdict == "pass" else "as planted", check.fault or "",
                    tuple(check.phases), check.active, evidence_at=at)  # type: ignore[arg-type]
            for check, subject in list_declared_outcomes(FLEET, name, ["production", "test"])
            if subject.part in ("", "gpu0")
        ]  # fmt: skip
        self.ledger.record(SuiteRun(f"run-{next(self.serial)}", at), told)
