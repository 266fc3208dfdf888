"""What comes to count, or counts no more: checks that are promoted or observe, known issues that come and go."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from fnmatch import fnmatchcase

from assay.lifecycle.excused import excuse_of
from assay.model.outcome import Recorded
from assay.plan.declared import Declared


@dataclass(frozen=True, slots=True)
class Recount:
    """One check or known issue (`what`), why it is told of, and on which nodes the last outcomes fail because of it.

    `counts`: these failures decide from the merge on; else they decide nothing from then on.
    """

    what: str
    why: str
    counts: bool
    nodes: tuple[str, ...]


def touched(before: Declared, after: Declared) -> set[str]:
    """Return the checks whose failures may count otherwise, so that only their last outcomes need be read."""
    patterns = {one.match.check for one in set(before.fleet.known_issues) ^ set(after.fleet.known_issues)}
    stages = before.fleet.observed_checks ^ after.fleet.observed_checks
    fitting = {check for check in after.checks for pattern in patterns if fnmatchcase(check, pattern)}
    return fitting | (stages & before.checks.keys() & after.checks.keys())


def recounts(before: Declared, after: Declared, last: Iterable[Recorded], now: datetime) -> tuple[Recount, ...]:
    """Return every change of stage, and every known issue that comes or goes and touches a failure, as of `now`.

    `last` are the newest outcomes of the checks that `touched` names.
    """
    failing = [one for one in last if one.outcome.verdict == "fail" and one.outcome.node in after.fleet.nodes]
    return (*_promoted(before, after, failing), *_issues(before, after, failing, now))


def newest(outcomes: Iterable[Recorded]) -> list[Recorded]:
    """Return the newest of each check and subject, by when its evidence was collected."""
    found: dict[tuple[str, str], Recorded] = {}
    for one in outcomes:
        key = (one.outcome.check, one.outcome.subject)
        if key not in found or found[key].measured_at <= one.measured_at:
            found[key] = one
    return list(found.values())


def _promoted(before: Declared, after: Declared, failing: Collection[Recorded]) -> Iterator[Recount]:
    was, shall = before.fleet.observed_checks, after.fleet.observed_checks
    for check in sorted((was ^ shall) & before.checks.keys() & after.checks.keys()):
        nodes = sorted({one.outcome.node for one in failing if one.outcome.check == check})
        why = "is promoted: from now on it decides" if check in was else "only observes from now on"
        yield Recount(check, why, check in was, tuple(nodes))


def _issues(before: Declared, after: Declared, failing: Iterable[Recorded], now: datetime) -> Iterator[Recount]:
    found: dict[tuple[str, bool], set[str]] = {}
    for one in failing:
        node = after.fleet.nodes[one.outcome.node]
        was, shall = (excuse_of(side.fleet.known_issues, node, one.outcome, now) for side in (before, after))
        if (was is None) != (shall is None):
            issue = was or shall
            found.setdefault((issue.issue if issue else "", shall is None), set()).add(node.name)
    for (link, counts), nodes in sorted(found.items()):
        why = "excuses no more what fails now" if counts else "excuses what fails now"
        yield Recount(link, why, counts, tuple(sorted(nodes)))
