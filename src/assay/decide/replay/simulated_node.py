"""One node of a replay: its present faults, who uses it, its cordon, and the last outcomes of its suites."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime

from assay.decide.faults.telemetry_silence import TELEMETRY_LOST
from assay.decide.replay.exposure import NodeCondition, find_worst_severity
from assay.decide.state.fleet_snapshot import NodeSnapshot
from assay.decide.state.node_state import NodeState
from assay.model.faults.fault_record import FaultRecord
from assay.model.faults.sightings import FaultSighting
from assay.model.node import Node
from assay.model.outcome import CheckSubject, Outcome, RecordedOutcome
from assay.model.specs.check_catalog_and_gates import CheckDeclaration
from assay.model.specs.fault_catalog import FaultCatalog, FaultSeverity
from assay.model.specs.management_profile import ManagementProfile
from assay.model.specs.policy_sections import LifecycleState
from assay.model.timestamps import NEVER, format_time, parse_time

CUSTOMER_JOBS = ("customer work",)


@dataclass(slots=True)
class SimulatedNode:
    """`present_faults`: the faults (class, part) that the history reported and did not clear.

    `verifying`: the running verification, "" for none. `verified_stay_id`: the stay in which one has ended.
    `last_disturbed_at`: the time of the last serious fault or move. `settled_faults`: faults of which another sighting
    is no news. `uncounted_sightings`: such sightings that are not counted yet.
    """

    node: Node
    profile: ManagementProfile
    declared: tuple[tuple[CheckDeclaration, CheckSubject], ...]
    present_faults: dict[tuple[str, str], None] = field(default_factory=dict)
    in_use: bool = False
    is_cordoned: bool = False
    verifying: str = ""
    verified_stay_id: str = ""
    last_disturbed_at: datetime = NEVER
    latest: dict[str, RecordedOutcome] = field(default_factory=dict)
    settled_faults: set[tuple[str, str]] = field(default_factory=set)
    uncounted_sightings: list[FaultSighting] = field(default_factory=list)

    def make_snapshot(self, node_state: NodeState) -> NodeSnapshot:
        """Return what a decision may look at."""
        jobs = CUSTOMER_JOBS if self.in_use else ()
        return NodeSnapshot(self.node, self.profile, node_state, self.declared, tuple(self.latest.values()), jobs)

    def subject(self, part: str) -> str:
        """Return the subject of a part, "" being the node."""
        return f"{self.node.subject}/{part}".rstrip("/")

    def is_blocked(self, node_state: NodeState) -> bool:
        """Whether a fault is present that a suite would see, or that stops every suite."""
        return any(
            name == TELEMETRY_LOST or self._is_serious(node_state, name, part) for name, part in self.present_faults
        )

    def _is_serious(self, node_state: NodeState, name: str, part: str) -> bool:
        return any(known.severity != "informational" for known in _open(node_state, name, self.subject(part)))

    def clear(self, fault: str, part: str) -> list[str]:
        """Clear a fault, on all parts if none is named; return the subjects that had it."""
        gone = [(name, where) for name, where in self.present_faults if name == fault and part in ("", where)]
        for key in gone:
            del self.present_faults[key]
            self.latest.pop(_check_name(*key), None)
        return [self.subject(where) for _, where in gone]

    def find_condition(self, node_state: NodeState, state: LifecycleState, catalog: FaultCatalog) -> NodeCondition:
        """Return how the node stands to customers. Faults count as the history shows them, whoever knows of them."""
        if not state.in_service:
            return NodeCondition("out")
        if self.is_cordoned and not self.in_use:
            return NodeCondition("cordoned_idle", is_cordoned=True)
        severity = find_worst_severity({self._find_severity(node_state, catalog, *one) for one in self.present_faults})
        return NodeCondition("serving", severity, self.is_cordoned, self.in_use)

    def _find_severity(self, node_state: NodeState, catalog: FaultCatalog, fault: str, part: str) -> FaultSeverity:
        """Return the severity of a present fault: what must be seen often has its own only once that is so."""
        known = catalog.find_class(fault)
        if known is None or known.count == 1:
            return catalog.find_treatment(fault).severity
        records = _open(node_state, fault, self.subject(part))
        return next((record.severity for record in records), "informational")

    def passes(self, checks: Iterable[CheckDeclaration], at: datetime) -> None:
        """Record that these checks pass on evidence of that time."""
        for check in checks:
            self._record(check.id, Outcome(check.id, self.node.subject, self.node.name, "pass"), check, at)

    @property
    def has_failures(self) -> bool:
        """Whether checks reported the present faults again."""
        return any(one.outcome.verdict == "fail" for one in self.latest.values())

    def still_fails(self, fault: str, part: str, at: datetime, since: datetime) -> bool:
        """Let checks report the present faults again, if none has done so `since` then; return whether one did."""
        name = _check_name(fault, part)
        if name in self.latest and parse_time(self.latest[name].measured_at) > since:
            return False
        found = Outcome(name, self.subject(part), self.node.name, "fail", "still there", fault)
        self._record(name, found, None, at)
        return True

    def _record(self, key: str, outcome: Outcome, check: CheckDeclaration | None, at: datetime) -> None:
        said = format_time(at)
        whole = Outcome(
            outcome.check,
            outcome.subject,
            outcome.node,
            outcome.verdict,
            outcome.reason,
            outcome.fault,
            phases=tuple(check.phases) if check else (),
            active=check.active if check else False,
            evidence_at=said,
        )
        self.latest[key] = RecordedOutcome(f"replay {said[:19]}", said, whole)


def _open(node_state: NodeState, name: str, subject: str) -> Iterator[FaultRecord]:
    return (
        known for known in node_state.faults if known.is_open and (known.fault_class, known.subject) == (name, subject)
    )


def _check_name(fault: str, part: str) -> str:
    return f"a look at {fault} {part}".rstrip()
