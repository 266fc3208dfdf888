"""Drops failures that decide nothing: a known issue excuses them, a check only observes, a rollout explains them.

This runs at every decision, on the stored outcomes. On the day an issue expires, the failures that it excused count at
once. Until a rollout reaches a node, its drift asks nobody for anything.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace
from datetime import datetime

from assay.decide.moves.proposals import Proposal
from assay.decide.state.fleet_snapshot import FleetSnapshot, NodeSnapshot
from assay.model.decision import DecisionCause
from assay.model.faults.fault_record import FaultRecord
from assay.model.node import Node
from assay.model.outcome import Outcome, RecordedOutcome
from assay.model.specs.known_issues import KnownIssue, find_known_issue


def drop_excused_outcomes(
    latest: Iterable[RecordedOutcome],
    node: Node,
    known_issues: Collection[KnownIssue],
    observing_checks: Collection[str],
    now: datetime,
) -> list[RecordedOutcome]:
    """Return the outcomes of a node that count at `now`, for it or against it."""
    return [
        recorded
        for recorded in latest
        if recorded.outcome.check not in observing_checks
        and not find_known_issue(known_issues, recorded.outcome, node, now)
    ]


def select_proving_outcomes(
    latest: Collection[RecordedOutcome], observing_checks: Collection[str]
) -> list[RecordedOutcome]:
    """Return the outcomes that may end a fault.

    An observing check may end a fault if no other check judges the same fault and subject. Known issues drop no passes.
    If a wrong clock dated the evidence of a pass in the future, that pass proves nothing.
    """
    latest = [recorded for recorded in latest if not (recorded.outcome.verdict == "pass" and recorded.is_dated_ahead)]
    decided = {
        _fault_and_subject(recorded.outcome) for recorded in latest if recorded.outcome.check not in observing_checks
    }
    return [
        recorded
        for recorded in latest
        if recorded.outcome.check not in observing_checks or _fault_and_subject(recorded.outcome) not in decided
    ]


def drop_excused_faults(snapshot: FleetSnapshot) -> FleetSnapshot:
    """Return the snapshot without the open faults that only excused or observing checks report now."""
    if not snapshot.known_issues and not snapshot.observing_checks:
        return snapshot
    return _keep_faults(snapshot, lambda view, fault: not is_fault_excused(snapshot, view, fault))


def _keep_faults(snapshot: FleetSnapshot, counts: Callable[[NodeSnapshot, FaultRecord], bool]) -> FleetSnapshot:
    """Return the snapshot with the faults that count. A node that keeps all of them stays the same object."""
    nodes = []
    for view in snapshot.nodes:
        faults = tuple(fault for fault in view.node_state.faults if counts(view, fault))
        is_same = len(faults) == len(view.node_state.faults)
        nodes.append(view if is_same else replace(view, node_state=replace(view.node_state, faults=faults)))
    return replace(snapshot, nodes=tuple(nodes))


def is_fault_excused(snapshot: FleetSnapshot, view: NodeSnapshot, fault: FaultRecord) -> bool:
    """Whether an open fault decides nothing: only checks report it, and each observes or has only excused failures.

    If a check can no longer be judged, it excuses nothing: the fault stays.
    """
    if not fault.is_open or set(fault.marks) != {"check"}:
        return False
    key = (fault.fault_class, fault.subject)
    checks = {check.id for check, subject in view.declared if (check.fault, str(subject)) == key}
    if checks and checks <= snapshot.observing_checks:
        return True
    failures = [
        recorded
        for recorded in view.latest
        if recorded.outcome.verdict == "fail" and _fault_and_subject(recorded.outcome) == key
    ]
    counting = drop_excused_outcomes(
        failures, view.node, snapshot.known_issues, snapshot.observing_checks, snapshot.now
    )
    return bool(failures) and not counting


def _fault_and_subject(outcome: Outcome) -> tuple[str, str]:
    return (outcome.fault, outcome.subject)


def propose_known_issue_records(snapshot: FleetSnapshot, view: NodeSnapshot) -> Iterator[Proposal]:
    """Yield a record for each known issue that excuses a failure in a phase of the node's state.

    There is one record per stay. So the history says why the node stayed in its state, or could leave it.
    """
    if not snapshot.known_issues:
        return
    state = snapshot.policy_state_of(view)
    phases = {*state.watch, *(requirement.phase for requirement in state.requires)}
    excused: dict[KnownIssue, list[RecordedOutcome]] = {}
    for failure in sorted(
        (recorded for recorded in view.latest if recorded.outcome.verdict == "fail"), key=lambda recorded: recorded.id
    ):
        issue = find_known_issue(snapshot.known_issues, failure.outcome, view.node, snapshot.now)
        if issue and phases & set(failure.outcome.phases) and failure.outcome.check not in snapshot.observing_checks:
            excused.setdefault(issue, []).append(failure)
    for issue, failures in sorted(excused.items(), key=lambda item: item[0].sort_key):
        text = f"{issue.annotation}: {issue.reason} (followed by {issue.owner})"
        causes = (DecisionCause("known", issue.issue, text), *(make_failure_cause(failure) for failure in failures))
        keys = (issue.issue, issue.expires)
        yield Proposal(view.node_state.state, "record", "known", "known-issue", causes, keys, "none")


def make_failure_cause(failure: RecordedOutcome) -> DecisionCause:
    """Return a failed check as the cause of a decision."""
    outcome, test = failure.outcome, failure.outcome.check.rpartition("::")[2]
    return DecisionCause("outcome", failure.id, f"{test} failed on {outcome.subject}: {outcome.reason}")


def drop_explained_drift(snapshot: FleetSnapshot) -> FleetSnapshot:
    """Return the snapshot without the faults that a running rollout or an earlier spec explains."""
    return _keep_faults(snapshot, lambda view, fault: not is_drift_explained(snapshot, view, fault))


def is_drift_explained(snapshot: FleetSnapshot, view: NodeSnapshot, fault: FaultRecord) -> bool:
    """Whether a fault says only that a running rollout has not reached the node yet, or is of an earlier spec.

    An outcome that another spec judged says nothing of today's: after a revert, the node may be as it should be.
    """
    if fault.fault_class not in snapshot.policy.breaker.drift or not fault.is_open:
        return False
    if view.name in snapshot.rolling_nodes:
        return True
    key, today = (fault.fault_class, fault.subject), view.judging_hashes
    judged_by = [
        (recorded.outcome.judged_by, today.get(recorded.outcome.check, recorded.outcome.judged_by))
        for recorded in view.latest
        if recorded.outcome.verdict == "fail" and _fault_and_subject(recorded.outcome) == key
    ]
    return bool(judged_by) and set(fault.marks) == {"check"} and all(then != now for then, now in judged_by)
