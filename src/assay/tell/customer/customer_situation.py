"""What the records say of a node that matters to its customers: why it left, what was done, how far its tests are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Literal

from assay.decide.state.correction_record import SETTING_CAUSE
from assay.decide.state.node_state import EffectRecord, NodeState
from assay.decide.state.service_absences import AbsenceEstimate, ServiceAbsence, estimate_absence, list_absences
from assay.model.decision import DecisionCause
from assay.model.entries.effects import EffectIntentEntry
from assay.model.entries.node_entries import DecisionEntry
from assay.model.ledger_entry import LedgerEntry
from assay.model.outcome import read_part, read_whole
from assay.model.timestamps import parse_time
from assay.tell.customer.customer_faults import ReasonFault
from assay.tell.views.node_sync import find_node_rollout
from assay.tell.views.records import find_fault_catalog, find_unread

if TYPE_CHECKING:
    from assay.model.outcome import RecordedOutcome
    from assay.model.specs.fault_catalog import FaultCatalog
    from assay.model.specs.lifecycle_policy import LifecyclePolicy
    from assay.model.specs.policy_sections import LifecycleState
    from assay.tell.views.records import RecordSource

PlannedChange = Literal["", "waiting", "paused"]
RECORDS = (DecisionEntry.kind, EffectIntentEntry.kind)
"""The kinds of entries of the node that a situation is made from."""


@dataclass(frozen=True, slots=True)
class CustomerSituation:
    """A node and everything that its customers are told of it.

    - `policy`, `catalog`: None if the fleet has none that knows the state, or none at all.
    - `absence`: the present one, or the last one of a node in service; None if it never left service.
    - `faults`: the reasons of the absence, or of what is pending. `known_faults`: open ones
      that may harm jobs and have not led to anything.
    - `effects`: what was done during the absence, oldest first. `ended_jobs`: the effects that ended jobs.
    - `held_back`: what holds a move back ("limit", "breaker", "profile", "person"), "" for nothing.
    - `tests`: how many of the required tests have passed, and how many there are; None if none are due.
    - `planned_change`: a rollout will take the node out; it waits for its turn, or the rollout is paused. "" without.
    - `unread_since`: when a node in service was last read, if that is too long ago, "" for never; else None.
    """

    state: NodeState
    now: datetime
    policy: LifecyclePolicy | None = None
    catalog: FaultCatalog | None = None
    absence: ServiceAbsence | None = None
    faults: tuple[ReasonFault, ...] = ()
    known_faults: tuple[ReasonFault, ...] = ()
    cause_kinds: frozenset[str] = frozenset()
    effects: tuple[EffectRecord, ...] = ()
    ended_jobs: frozenset[str] = frozenset()
    held_back: str = ""
    tests: tuple[int, int] | None = None
    estimate: AbsenceEstimate | None = None
    planned_change: PlannedChange = ""
    unread_since: str | None = None

    @property
    def policy_state(self) -> LifecycleState | None:
        """The node's state in the policy, None if the policy does not have it."""
        return self.policy.states.get(self.state.state) if self.policy else None

    @property
    def in_service(self) -> bool:
        """Whether customers use the node."""
        return bool(self.policy_state and self.policy_state.in_service)


def read_customer_situation(source: RecordSource, states: Sequence[NodeState], state: NodeState) -> CustomerSituation:
    """Return the situation of a node, from the ledger and the specs. `states` are those of all nodes.

    Specs that cannot be read are left out: the answer is then in general words.
    """
    from assay.tell.views.node_explanation import judge_requirements

    ledger = source.ledger_for_reading
    policy, catalog = _find_policy(source, state), find_fault_catalog(source)
    records = ledger.entries(state.node, kinds=RECORDS)
    decisions = [DecisionEntry.read(entry) for entry in records if entry.kind == DecisionEntry.kind]
    causes = [cause for decision in decisions for cause in decision.causes]
    runs = dict.fromkeys(cause.id.partition("/")[0] for cause in causes if cause.kind == "outcome" and "[" in cause.id)
    failures = {outcome.id: outcome for run in runs for outcome in ledger.outcomes(run=run, node=state.node)}
    phases = judge_requirements(source, state)[0] if policy else ()
    passed = sum(phase.passed + phase.excused for phase in phases)
    tests = (passed, passed + sum(len(phase.lacks) for phase in phases))
    made = make_customer_situation(state, states, records, failures, policy, catalog, source.clock.now(), tests)
    unread_since = find_unread(source, [state]).get(state.node)
    return replace(made, planned_change=_find_planned_change(source, state.node), unread_since=unread_since)


def _find_planned_change(source: RecordSource, node: str) -> PlannedChange:
    rollout = find_node_rollout(source, node)
    if rollout is None or rollout.progress != "waiting":
        return ""
    return "paused" if rollout.status == "paused" else "waiting"


def _find_policy(source: RecordSource, state: NodeState) -> LifecyclePolicy | None:
    """Return the policy that has the node's state, else the only one; None if there is none."""
    policies = list(source.fleet.policies.values())
    known = [policy for policy in policies if state.state in policy.states]
    return known[0] if known else policies[0] if len(policies) == 1 else None


def make_customer_situation(
    state: NodeState,
    others: Iterable[NodeState],
    records: Iterable[LedgerEntry],
    failures: Mapping[str, RecordedOutcome],
    policy: LifecyclePolicy | None,
    catalog: FaultCatalog | None,
    now: datetime,
    tests: tuple[int, int] | None = None,
) -> CustomerSituation:
    """Return the situation of a node. `others` are all nodes; `records` are the node's entries of the kinds RECORDS.

    `failures` are failed outcomes, by the id that a decision's cause names.
    """
    records = list(records)
    serving = policy.states_in_service if policy else frozenset()
    absences = list_absences(state, serving)
    absence = absences[-1] if absences else None
    made = {entry.id: (entry, DecisionEntry.read(entry)) for entry in records if entry.kind == DecisionEntry.kind}
    reasons = _list_reasons(state, absence, list(made.values()), is_serving=state.state in serving)
    faults = tuple(_list_faults(state, reasons, failures, catalog))
    drains = [EffectIntentEntry.read(entry) for entry in records if entry.kind == EffectIntentEntry.kind]
    drains = [intent for intent in drains if intent.action == "drain-now" and intent.before.get("jobs")]
    return CustomerSituation(
        state=state,
        now=now,
        policy=policy,
        catalog=catalog,
        absence=absence,
        faults=faults,
        known_faults=tuple(_list_known_faults(state, reasons, catalog)),
        cause_kinds=frozenset(cause.kind for cause in reasons),
        effects=_list_effects(state, absence),
        ended_jobs=frozenset(intent.effect for intent in drains),
        held_back=_find_obstacle(state, [decision for _, decision in made.values()]),
        tests=tests,
        estimate=_estimate(state, absence, others, policy, serving, now),
    )


def _list_reasons(
    state: NodeState,
    absence: ServiceAbsence | None,
    decisions: Sequence[tuple[LedgerEntry, DecisionEntry]],
    *,
    is_serving: bool,
) -> list[DecisionCause]:
    """Return the causes of what is pending, else of every transition of the absence, and of calls for a technician.

    For a node that never served: of every transition so far.
    """
    if state.pending and is_serving:
        return list(state.pending.because)
    moves = {move.decision for move in (absence.transitions if absence else state.transitions)}
    since = absence.began_at if absence else parse_time(state.enrolled_at)
    until = absence.ended_at if absence and absence.ended_at else None
    reasons: list[DecisionCause] = []
    for entry, decision in decisions:
        at = parse_time(entry.at)
        asks = decision.remedy == "ticket" and decision.timing == "record" and not is_serving and at >= since
        if decision.decision in moves or (asks and (until is None or at <= until)):
            reasons += decision.causes
    return reasons


def _list_faults(
    state: NodeState,
    reasons: Sequence[DecisionCause],
    failures: Mapping[str, RecordedOutcome],
    catalog: FaultCatalog | None,
) -> Iterator[ReasonFault]:
    """Yield the faults and the failed tests among the causes, each once."""
    named = {ident for cause in reasons for ident in cause.fault_ids}
    seen = {(fault.fault_class, fault.subject) for fault in state.faults if fault.id in named}
    for fault in state.faults:
        if fault.id in named:
            part = _find_part(state.node, fault.subject)
            yield ReasonFault(fault.fault_class, part, fault.severity, fault.first_seen)
    for cause in reasons:
        failure = failures.get(cause.id) if cause.kind == "outcome" else None
        outcome = failure.outcome if failure else None
        if failure and outcome and outcome.verdict == "fail" and (outcome.fault, outcome.subject) not in seen:
            seen.add((outcome.fault, outcome.subject))
            severity = catalog.find_treatment(outcome.fault).severity if catalog else "degraded"
            part = _find_part(state.node, outcome.subject)
            yield ReasonFault(outcome.fault, part, severity, failure.measured_at)


def _list_known_faults(
    state: NodeState, reasons: Sequence[DecisionCause], catalog: FaultCatalog | None
) -> Iterator[ReasonFault]:
    """Yield the open faults that may harm jobs, by their class, and are not among the reasons."""
    named = {ident for cause in reasons for ident in cause.fault_ids}
    for fault in state.faults:
        fault_class = catalog.find_class(fault.fault_class) if catalog else None
        harms = fault_class is not None and fault_class.for_customers.means and fault.severity != "informational"
        if fault.is_open and harms and fault.id not in named:
            part = _find_part(state.node, fault.subject)
            yield ReasonFault(fault.fault_class, part, fault.severity, fault.first_seen)


def _find_part(node: str, subject: str) -> str:
    """Return the part of the node that a subject names, "" for the whole node and for what is no part of it."""
    whole = read_whole(subject)
    return read_part(subject) if whole.endswith(f"/{node}") else ""


def _list_effects(state: NodeState, absence: ServiceAbsence | None) -> tuple[EffectRecord, ...]:
    """Return the effects of the absence's decisions, of the present stay, and of what is pending."""
    moves = {move.decision for move in absence.transitions} if absence else set()
    wanted = {state.decision, state.pending.decision if state.pending else "", *moves} - {""}
    effects = (effect for effect in state.effects if effect.decision in wanted)
    return tuple(sorted(effects, key=lambda effect: effect.at))


def _find_obstacle(state: NodeState, decisions: Sequence[DecisionEntry]) -> str:
    """Return the kind of what holds the newest wanted move back, "" if nothing does."""
    newest = next((decision for decision in reversed(decisions) if decision.remedy != "none"), None)
    if newest is None or newest.from_state != state.state or (newest.timing, newest.remedy) != ("record", "wait"):
        return ""
    named = {ident for cause in newest.causes for ident in cause.fault_ids}
    if named and not any(fault.id in named and fault.is_open for fault in state.faults):
        return ""
    kinds = [cause.kind for cause in newest.causes]
    return kinds[0] if kinds and SETTING_CAUSE not in kinds else ""


def _estimate(
    state: NodeState,
    absence: ServiceAbsence | None,
    others: Iterable[NodeState],
    policy: LifecyclePolicy | None,
    serving: frozenset[str],
    now: datetime,
) -> AbsenceEstimate | None:
    """Return how long an absence like the present one takes, or like the one that is pending."""
    if policy is None or (state.state in serving and not state.pending):
        return None
    if state.pending and state.state in serving:
        first = present = state.pending.to
    elif absence and absence.ended_at is None:
        first, present = absence.first_state, state.state
    else:
        return None
    every = ((other.node, past) for other in others for past in list_absences(other, serving))
    earlier = (past for node, past in every if node != state.node or past.ended_at)
    gone = {name for name, declared in policy.states.items() if declared.final}
    return estimate_absence(earlier, first, present, gone, now)
