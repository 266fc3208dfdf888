"""A small fleet on paper: its history is a list of entries, its time is moved by hand, its policy is the real one."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import yaml

from assay.decide.faults.detection import FaultObservation
from assay.decide.moves import decide as deciding
from assay.decide.moves.required_checks import list_due_phases
from assay.decide.state import decision_and_fault_entries
from assay.decide.state.fleet_snapshot import FleetSnapshot, NodeSnapshot
from assay.decide.state.node_projection import NodeStateProjection
from assay.decide.state.node_state import NodeState
from assay.decide.state.outstanding_effects import list_outstanding_effects
from assay.declare.loader import fill_in_hours
from assay.model.decision import Decision
from assay.model.entries.effects import BurnInEndedEntry, BurnInOutcome, BurnInStartedEntry
from assay.model.evidence import EvidenceBasis
from assay.model.ledger_entry import LedgerEntry, derive_id
from assay.model.node import Node
from assay.model.outcome import CheckSubject, Outcome, RecordedOutcome
from assay.model.specs.burn_in import BurnIn
from assay.model.specs.check_catalog import CheckDeclaration
from assay.model.specs.fault_catalog import FaultCatalog, merge_catalogs
from assay.model.specs.known_issues import KnownIssue
from assay.model.specs.lifecycle_policy import LifecyclePolicy
from assay.model.specs.management_profile import ManagementProfile
from assay.model.timestamps import parse_time
from tests.support.places import ROOT

START = datetime(2026, 11, 21, 12, tzinfo=UTC)
CHECKS = {
    "seatrial": CheckDeclaration(
        id="suites/s.py::test_inventory", subject="node", phases=["seatrial"], fault="gpu.missing"
    ),
    "zap": CheckDeclaration(id="suites/z.py::test_firmware", subject="node", phases=["zap"], fault="firmware.drift"),
    "test": CheckDeclaration(
        id="suites/t.py::test_burn", subject="node", phases=["test"], active=True, fault="gpu.burn.failed"
    ),
    "production": CheckDeclaration(
        id="suites/p.py::test_heat", subject="node", phases=["production"], fault="gpu.thermal"
    ),
    "fabric": CheckDeclaration(id="suites/f.py::test_link", subject="node", phases=["fabric"], fault="ib.link.flap"),
}


def spec(kind: Any, path: str) -> Any:
    return kind.model_validate(yaml.safe_load((ROOT / "specs" / path).read_text()))


class Paper:
    """The fleet on paper."""

    def __init__(self, policy: LifecyclePolicy, catalog: FaultCatalog, profiles: dict[str, ManagementProfile]) -> None:
        self.policy, self.catalog, self.profiles = policy, catalog, profiles
        self.now = START
        self.nodes: dict[str, Node] = {}
        self.log: dict[str, LedgerEntry] = {}
        self.times: list[datetime] = []
        self.chronicle = NodeStateProjection()
        self.outcomes: dict[str, dict[str, RecordedOutcome]] = {}
        self.jobs: dict[str, tuple[str, ...] | None] = {}
        self.cordons: dict[str, str | None] = {}
        self.foreign: dict[str, str] = {}
        self.boots: dict[str, str] = {}
        self.serial = 0
        self.known: tuple[KnownIssue, ...] = ()
        self.checks = dict(CHECKS)
        self.lines: dict[tuple[str, str], str] = {}

    def add(
        self,
        name: str,
        state: str = "production",
        *,
        pool: str = "a",
        rack: str = "r01",
        profile: str = "managed",
        kind: str = "hgx",
        serial: str = "",
    ):
        self.nodes[name] = Node(name, pool, "lab1", rack, 1, serial or f"s-{name}", kind, profile)
        self.outcomes[name] = {}
        self.jobs[name] = ()
        self.write(decision_and_fault_entries.make_enrolled_entry(name, pool, state, self.now, serial))

    def write(self, *entries: LedgerEntry) -> None:
        for entry in entries:
            if entry.id not in self.log:
                self.log[entry.id] = numbered = replace(entry, seq=len(self.log) + 1)
                insort(self.times, parse_time(entry.at))
                self.chronicle.apply(numbered)

    def later(self, **span: float) -> None:
        self.now += timedelta(**span)

    def stories(self) -> dict[str, NodeState]:
        return dict(self.chronicle.node_states())

    def story(self, name: str) -> NodeState:
        story = self.chronicle.node_state(name)
        assert story is not None, f"{name} was never enrolled"
        return story

    def view(self, name: str, story: NodeState | None = None) -> NodeSnapshot:
        node = self.nodes[name]
        subject = CheckSubject(node.pool, name)
        return NodeSnapshot(
            node=node,
            profile=self.profiles[node.profile],
            node_state=story or self.story(name),
            declared=tuple((check, subject) for check in self.checks.values()),
            latest=tuple(self.outcomes[name].values()),
            jobs=self.jobs[name],
            cordon=self.cordons.get(name),
            foreign_cordon=self.foreign.get(name, ""),
        )

    def situation(self, *views: NodeSnapshot, **lines: Any) -> FleetSnapshot:
        """Return what is known of these nodes, by default of all."""
        views = views or tuple(self.view(name) for name in self.nodes)
        known = {"known_issues": self.known, "observing_checks": self.observed, "proofs": self.catalog.proofs}
        weeks, relations = self.chronicle.fault_weeks, self.catalog.fault_relations
        more = {"lines": self.lines, "relations": relations, "fault_weeks": weeks, **known, **lines}
        return FleetSnapshot(self.now, self.policy, views, **more)

    @property
    def observed(self) -> frozenset[str]:
        return frozenset(check.id for check in self.checks.values() if check.is_observe_only)

    def decide(self) -> list[Decision]:
        return deciding.decide(self.situation())

    def step(self, decide: Callable[[FleetSnapshot], list[Decision]] = deciding.decide) -> list[Decision]:
        """Decide once, and write down what was decided."""
        situation = self.situation()
        views = {view.name: view for view in situation.nodes}
        made = decide(situation)
        for decision in made:
            self.write(
                *decision_and_fault_entries.make_decision_entries(self.policy, views[decision.node], decision, self.now)
            )
        self.later(seconds=1)
        return made

    def judge(
        self,
        name: str,
        phase: str,
        verdict: str = "pass",
        reason: str = "",
        age: timedelta = timedelta(),
        basis: EvidenceBasis | None = None,
    ) -> None:
        """Record an outcome of the phase's one check, on evidence of `age` ago, which is when its reading began."""
        self.serial += 1
        check, at = self.checks[phase], (self.now - age).isoformat()
        before = bisect_right(self.times, self.now - age)
        outcome = Outcome(
            check=check.id,
            subject=f"{self.nodes[name].pool}/{name}",
            node=name,
            verdict=verdict,  # type: ignore[arg-type]
            reason=reason or ("" if verdict == "pass" else "as planted"),
            fault=check.fault,
            phases=tuple(check.phases),
            active=check.active,
            evidence_at=at,
            basis=basis or EvidenceBasis(before, self.boots.get(name, "")),
        )
        self.outcomes[name][check.id] = RecordedOutcome(f"run-{self.serial}", at, outcome)

    def pass_all(self, name: str) -> None:
        """Judge everything that is due, and let it pass."""
        view = self.view(name)
        for phase in list_due_phases(self.situation(view), view):
            self.judge(name, phase)

    def fault(self, name: str, fault_class: str, part: str = "", **other: Any) -> str:
        """See a fault now; return its id."""
        self.serial += 1
        treatment = self.catalog.find_treatment(fault_class)
        at = self.now.isoformat()
        subject = f"{self.nodes[name].subject}/{part}".rstrip("/")
        plain: dict[str, Any] = {
            "severity": treatment.severity,
            "blame": treatment.blame,
            "remedy": treatment.remedy,
            "count": 1,
            "first_seen": at,
            "last_seen": at,
            "detail": "as planted",
            "marks": {"kernel": f"{self.boots.get(name, 'boot')}:{self.serial}"},
            "times": (at,),
        }
        seen = FaultObservation(
            **{"id": f"fault-{self.serial}"} | plain | other, node=name, fault_class=fault_class, subject=subject
        )
        self.write(decision_and_fault_entries.make_fault_entry(seen, self.now))
        return seen.id

    def effect(self, name: str, standing: str, decision: str, action: str, reason: str = "", **facts: Any) -> None:
        """Take an effect to a standing: intent, done, verified, failed or unknown."""
        effect = derive_id(decision, action)
        boot = {"boot_id": self.boots[name]} if name in self.boots else {}
        body = {"effect": effect, "action": action, "decision": decision, "before": boot, "params": {}}
        self.write(LedgerEntry(effect, self.now.isoformat(), "effect.intent", name, body))
        if standing != "intent":
            if boot and standing == "verified" and action in ("reboot", "powercycle"):
                self.boots[name] = boot["boot_id"] = f"{name}-{effect}"
            told = {"effect": effect, "reason": reason, "facts": boot | facts}
            self.write(LedgerEntry(derive_id(effect, standing), self.now.isoformat(), f"effect.{standing}", name, told))
        if action == "burn-in" and standing == "verified":
            self.burn_in(name, effect)

    def settle(self, name: str) -> list[str]:
        """Verify everything that the node is owed; return the actions."""
        wanted = list_outstanding_effects(self.policy, self.story(name))
        for one in wanted:
            self.effect(name, "verified", one.decision, one.action, "as planted")
        self.later(seconds=1)
        return [one.action for one in wanted]

    def burn_in(self, name: str, ident: str, outcome: BurnInOutcome = "done", reason: str = "") -> None:
        """Let a burn-in begin and end."""
        for entry in (BurnInStartedEntry(ident, "day", 24.0), BurnInEndedEntry(ident, outcome, reason, 24.0)):
            self.write(entry.make_entry(derive_id(ident, entry.kind), self.now.isoformat(), name))

    def say(self, kind: str, name: str, who: str = "ann", reason: str = "as planted", **more: Any) -> None:
        """Let a person hold, release, certify or move a node."""
        self.serial += 1
        body = {"who": who, "reason": reason, **more}
        entry = LedgerEntry(f"{kind}-{self.serial}", self.now.isoformat(), kind, name, body)
        self.write(entry)
        self.later(seconds=1)


@pytest.fixture(scope="session")
def policy() -> LifecyclePolicy:
    day = spec(BurnIn, "burnin/day.yaml")
    return fill_in_hours(spec(LifecyclePolicy, "lifecycle/default.yaml"), {"day": day})


@pytest.fixture(scope="session")
def catalog() -> FaultCatalog:
    found = sorted((ROOT / "specs" / "faults").glob("*.yaml"))
    return merge_catalogs(spec(FaultCatalog, f"faults/{path.name}") for path in found)


@pytest.fixture(scope="session")
def profiles() -> dict[str, ManagementProfile]:
    return {name: spec(ManagementProfile, f"profiles/{name}.yaml") for name in ("managed", "unmanaged")}


@pytest.fixture
def paper(policy, catalog, profiles) -> Paper:
    return Paper(policy, catalog, profiles)


@pytest.fixture(scope="session")
def new_paper(policy, catalog, profiles) -> Callable[[], Paper]:
    return lambda: Paper(policy, catalog, profiles)
