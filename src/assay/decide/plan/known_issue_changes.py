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
    patterns = {one.match.check for one in set(before.fleet.known_issues) ^ set(after.fleet.known_issues)}
    stages = before.fleet.observed_checks ^ after.fleet.observed_checks
    fitting = {check for check in after.checks for pattern in patterns if fnmatchcase(check, pattern)}
    return fitting | (stages & before.checks.keys() & after.checks.keys())


def find_counting_changes(
    before: FleetRevision, after: FleetRevision, last: Iterable[RecordedOutcome], now: datetime
) -> tuple[CountingChange, ...]:
    """Return every change of stage, and every known issue that comes or goes and matches a failure, as of `now`.

    `last` are the newest outcomes of the checks that `find_affected_checks` names.
    """
    failing = [one for one in last if one.outcome.verdict == "fail" and one.outcome.node in after.fleet.nodes]
    return (*_find_stage_changes(before, after, failing), *_find_issue_changes(before, after, failing, now))


def select_newest_outcomes(outcomes: Iterable[RecordedOutcome]) -> list[RecordedOutcome]:
    """Return the newest outcome of each check and subject, by the time of its evidence."""
    found: dict[tuple[str, str], RecordedOutcome] = {}
    for one in outcomes:
        key = (one.outcome.check, one.outcome.subject)
        if key not in found or found[key].measured_at <= one.measured_at:
            found[key] = one
    return list(found.values())


def _find_stage_changes(
    before: FleetRevision, after: FleetRevision, failing: Collection[RecordedOutcome]
) -> Iterator[CountingChange]:
    was, shall = before.fleet.observed_checks, after.fleet.observed_checks
    for check in sorted((was ^ shall) & before.checks.keys() & after.checks.keys()):
        nodes = sorted({one.outcome.node for one in failing if one.outcome.check == check})
        why = "is promoted: from now on it decides" if check in was else "only observes from now on"
        yield CountingChange(check, why, check in was, tuple(nodes))


def _find_issue_changes(
    before: FleetRevision, after: FleetRevision, failing: Iterable[RecordedOutcome], now: datetime
) -> Iterator[CountingChange]:
    found: dict[tuple[str, str], set[str]] = {}
    for one in failing:
        node = after.fleet.nodes[one.outcome.node]
        was, shall = (find_known_issue(side.fleet.known_issues, one.outcome, node, now) for side in (before, after))
        if (was is None) != (shall is None):
            issue = was or shall
            found.setdefault((issue.issue if issue else "", _describe_excuse(after, one, shall)), set()).add(node.name)
    for (link, why), nodes in sorted(found.items()):
        yield CountingChange(link, why, why == NO_EXCUSE, tuple(sorted(nodes)))


def _describe_excuse(after: FleetRevision, failure: RecordedOutcome, issue: KnownIssue | None) -> str:
    """Return what a known issue does with a failure from the merge on; it may admit no node to service."""
    if issue is None:
        return NO_EXCUSE
    policy, check = after.policy, failure.outcome.check
    doors = [one for one in policy.states.values() if one.pass_to and policy.states[one.pass_to].in_service]
    is_required = {need.phase for one in doors for need in one.requires} & set(failure.outcome.phases)
    admits = not is_required or policy.excuses.may_excuse_admission(check)
    return "excuses what fails now" if admits else "excuses what fails now in service, and admits no node"
