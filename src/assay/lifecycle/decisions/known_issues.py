"""What decides nothing about a node although it failed: a known issue excuses it, or its check only observes as yet.

Applied at every decision anew, to what is kept: on the day on which an entry expires, what it excused counts at once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from datetime import datetime

from assay.lifecycle.decisions.proposals import Proposal
from assay.lifecycle.fleet_snapshot import FleetSnapshot, NodeSnapshot
from assay.lifecycle.node_state import FaultRecord
from assay.model.decision import DecisionCause
from assay.model.node import Node
from assay.model.outcome import Outcome, RecordedOutcome
from assay.model.specs.known_issues import KnownIssue, find_known_issue


def drop_excused_outcomes(
    latest: Iterable[RecordedOutcome],
    node: Node,
    known: Collection[KnownIssue],
    observed: Collection[str],
    now: datetime,
) -> list[RecordedOutcome]:
    """Return the outcomes that may say something for or against a node at `now`."""
    return [
        one
        for one in latest
        if one.outcome.check not in observed and not find_known_issue(known, one.outcome, node, now)
    ]


def select_proving_outcomes(latest: Collection[RecordedOutcome], observed: Collection[str]) -> list[RecordedOutcome]:
    """Return the outcomes that may end a fault: those of a check that observes only where no other tells of the same.

    Passes are never held against a known issue. One whose evidence a wrong clock dated proves nothing.
    """
    latest = [one for one in latest if not (one.outcome.verdict == "pass" and one.is_dated_ahead)]
    told = {_fault_and_subject(one.outcome) for one in latest if one.outcome.check not in observed}
    return [one for one in latest if one.outcome.check not in observed or _fault_and_subject(one.outcome) not in told]


def drop_excused_faults(situation: FleetSnapshot) -> FleetSnapshot:
    """Return the situation without the open faults that only checks told of which decide nothing now."""
    if not situation.known_issues and not situation.observing_checks:
        return situation
    return replace(situation, nodes=tuple(_drop_excused_faults(situation, view) for view in situation.nodes))


def propose_known_issue_records(situation: FleetSnapshot, view: NodeSnapshot) -> Iterator[Proposal]:
    """Yield one record for each known issue that excuses a failure which the node's state asks about.

    It is made once in a stay, so that history says why the node was left where it is, or let through.
    """
    state, found = situation.policy_state_of(view), dict[KnownIssue, list[RecordedOutcome]]()
    asked = {*state.watch, *(want.phase for want in state.requires)}
    failed = [one for one in view.latest if one.outcome.verdict == "fail"] if situation.known_issues else []
    for one in sorted(failed, key=lambda one: one.id):
        issue = find_known_issue(situation.known_issues, one.outcome, view.node, situation.now)
        if issue and asked & set(one.outcome.phases) and one.outcome.check not in situation.observing_checks:
            found.setdefault(issue, []).append(one)
    for issue, outcomes in sorted(found.items(), key=lambda item: item[0].sort_key):
        said = DecisionCause("known", issue.issue, f"{issue.annotation}: {issue.reason} (followed by {issue.owner})")
        because = (said, *(make_failure_cause(one) for one in outcomes))
        keys = (issue.issue, issue.expires)
        yield Proposal(view.node_state.state, "record", "known", "known-issue", because, keys, "none")


def make_failure_cause(one: RecordedOutcome) -> DecisionCause:
    """Return a failed check as a link of the chain."""
    test = one.outcome.check.rpartition("::")[2]
    return DecisionCause("outcome", one.id, f"{test} failed on {one.outcome.subject}: {one.outcome.reason}")


def _drop_excused_faults(situation: FleetSnapshot, view: NodeSnapshot) -> NodeSnapshot:
    counted = tuple(known for known in view.node_state.faults if not _is_excused(situation, view, known))
    if len(counted) == len(view.node_state.faults):
        return view
    return replace(view, node_state=replace(view.node_state, faults=counted))


def _is_excused(situation: FleetSnapshot, view: NodeSnapshot, known: FaultRecord) -> bool:
    """Whether only checks told of an open fault, which all observe now, or of which each that fails is excused.

    A check that cannot be judged any more excuses nothing: the fault stays.
    """
    if not known.is_open or set(known.marks) != {"check"}:
        return False
    about = (known.fault_class, known.subject)
    tellers = {check.id for check, subject in view.declared if (check.fault, str(subject)) == about}
    if tellers and tellers <= situation.observing_checks:
        return True
    telling = [one for one in view.latest if one.outcome.verdict == "fail" and _fault_and_subject(one.outcome) == about]
    counted = drop_excused_outcomes(
        telling, view.node, situation.known_issues, situation.observing_checks, situation.now
    )
    return bool(telling) and not counted


def _fault_and_subject(outcome: Outcome) -> tuple[str, str]:
    return (outcome.fault, outcome.subject)
