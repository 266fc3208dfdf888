"""Finds failures that begin or stop to count: checks change their stage, known issues come or go."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from datetime import datetime
from fnmatch import fnmatchcase

from assay.decide.plan.inputs import CountingChange, FleetRevision
from assay.model.outcome import RecordedOutcome
from assay.model.specs.known_issues import KnownIssue, find_known_issue

NO_EXCUSE = "excuses no more what fails now"


def find_affected_checks(before: FleetRevision, after: FleetRevision) -> set[str]:
    """Return the checks whose failures may begin or stop to count. Only their last outcomes need to be read."""
    patterns = {issue.match.check for issue in set(before.fleet.known_issues) ^ set(after.fleet.known_issues)}
    stages = before.fleet.observed_checks ^ after.fleet.observed_checks
    fitting = {check for check in after.checks for pattern in patterns if fnmatchcase(check, pattern)}
    return fitting | (stages & before.checks.keys() & after.checks.keys())


def find_counting_changes(
    before: FleetRevision, after: FleetRevision, last: Iterable[RecordedOutcome], now: datetime
) -> tuple[CountingChange, ...]:
    """Return every change of stage, and every known issue that comes or goes and matches a failure, as of `now`.

    `last` are the newest outcomes of the checks that `find_affected_checks` names.
    """
    failing = [
        recorded
        for recorded in last
        if recorded.outcome.verdict == "fail" and recorded.outcome.node in after.fleet.nodes
    ]
    return (*_find_stage_changes(before, after, failing), *_find_issue_changes(before, after, failing, now))


def select_newest_outcomes(outcomes: Iterable[RecordedOutcome]) -> list[RecordedOutcome]:
    """Return the newest outcome of each check and subject, by the time of its evidence."""
    newest: dict[tuple[str, str], RecordedOutcome] = {}
    for recorded in outcomes:
        key = (recorded.outcome.check, recorded.outcome.subject)
        if key not in newest or newest[key].measured_at <= recorded.measured_at:
            newest[key] = recorded
    return list(newest.values())


def _find_stage_changes(
    before: FleetRevision, after: FleetRevision, failing: Collection[RecordedOutcome]
) -> Iterator[CountingChange]:
    was, shall = before.fleet.observed_checks, after.fleet.observed_checks
    for check in sorted((was ^ shall) & before.checks.keys() & after.checks.keys()):
        nodes = sorted({recorded.outcome.node for recorded in failing if recorded.outcome.check == check})
        effect = "is promoted: from now on it decides" if check in was else "only observes from now on"
        yield CountingChange(check, effect, check in was, tuple(nodes))


def _find_issue_changes(
    before: FleetRevision, after: FleetRevision, failing: Iterable[RecordedOutcome], now: datetime
) -> Iterator[CountingChange]:
    nodes_by_issue: dict[tuple[str, str], set[str]] = {}
    for recorded in failing:
        node = after.fleet.nodes[recorded.outcome.node]
        was, shall = (
            find_known_issue(side.fleet.known_issues, recorded.outcome, node, now) for side in (before, after)
        )
        if (was is None) != (shall is None):
            issue = was or shall
            nodes_by_issue.setdefault(
                (issue.issue if issue else "", _describe_excuse(after, recorded, shall)), set()
            ).add(node.name)
    for (link, reason), nodes in sorted(nodes_by_issue.items()):
        yield CountingChange(link, reason, reason == NO_EXCUSE, tuple(sorted(nodes)))


def _describe_excuse(after: FleetRevision, failure: RecordedOutcome, issue: KnownIssue | None) -> str:
    """Return what a known issue does with a failure from the merge on; it may admit no node to service."""
    if issue is None:
        return NO_EXCUSE
    policy, check = after.policy, failure.outcome.check
    doors = [state for state in policy.states.values() if state.pass_to and policy.states[state.pass_to].in_service]
    is_required = {need.phase for state in doors for need in state.requires} & set(failure.outcome.phases)
    admits = not is_required or policy.excuses.may_excuse_admission(check)
    return "excuses what fails now" if admits else "excuses what fails now in service, and admits no node"
