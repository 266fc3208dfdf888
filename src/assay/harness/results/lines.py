"""What did not pass, a line each: what it is, where, by which check, and why."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from assay.harness.results.alike import Group
from assay.harness.results.result import Result
from assay.model.outcome import Outcome, Run, Verdict
from assay.model.spans import counted, folded, listed

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
FEW = 10
"""So many failures, or fewer, are told one by one; more of them together, where they are alike."""
WIDTH = 18


def wrong(result: Result, most: int) -> Iterator[str]:
    """Yield what did not pass, at most so many lines, and how many more there are."""
    groups = result.groups()
    alone = sum(group.outcomes for group in groups if group.verdict == "fail") <= FEW
    lines = [*_each(result)] if alone else [of_group(one) for one in groups if one.verdict == "fail"]
    lines += [of_group(group) for group in groups if group.verdict != "fail"]
    yield from lines[:most]
    if len(lines) > most:
        yield f"… and {len(lines) - most} lines more; `--check`, `--node` and the like say what to show"


def _each(result: Result) -> Iterator[str]:
    failed = [one for one in result.wrong() if one.verdict == "fail"]
    yield from map(of_outcome, sorted(failed, key=lambda one: not one.decides))


def of_outcome(outcome: Outcome) -> str:
    """Return one outcome as a line."""
    word = sign(outcome.verdict, outcome.known, observed=outcome.observed)
    return _line(word, outcome.subject, short(outcome.check), outcome.reason, outcome.known)


def of_group(group: Group) -> str:
    """Return a group as a line: of one outcome itself, of more where they are, and the first as an example."""
    word = sign(group.verdict, group.known, observed=group.observed)
    check, subject, reason = group.example
    if group.outcomes == 1:
        return _line(word, subject, short(check), reason, group.known)
    what = short(group.check) if group.check else counted(group.checks, "check")
    if group.outcomes > len(group.places):
        what += f", {group.outcomes} outcomes"
    first = f"{reason} ({subject})" if len(group.places) > 1 else reason
    return _line(word, where(group.places), what, first, group.known)


def sign(verdict: Verdict | str, known: str, *, observed: bool) -> str:
    """Return the word that a line begins with; what is excused is `known`, what a check on trial says `trial`."""
    if verdict not in ("fail", "error"):
        return str(verdict)
    return "known" if known else "trial" if observed else str(verdict)


def where(places: Sequence[str]) -> str:
    """Return names of nodes, racks or fabrics: one itself, of many how many and the first."""
    if len(places) == 1:
        return places[0]
    racks = [one for one in places if "/rack-" in one]
    noun = "rack" if len(racks) == len(places) else "place" if any("/" in one for one in places) else "node"
    return f"{counted(len(places), noun)} ({listed(folded(places), 4)})"


def short(check: str) -> str:
    """Return a check's id as people read it."""
    return check.removeprefix("suites/")


def named(run: Run) -> str:
    """Return which run it is: id, time, specs and who."""
    specs = f"specs {run.spec_commit[:12] or 'of no commit'}{' with changes' if run.dirty else ''}"
    phases = f", {' and '.join(run.phases)}" if run.phases else ""
    return f"run {run.id}, {when(run.at)}{phases}, {specs}{f', by {run.who}' if run.who else ''}"


def when(at: str) -> str:
    """Return an ISO 8601 time to the minute."""
    return f"{at[:16].replace('T', ' ')} UTC"


def visible(text: str) -> str:
    r"""Return text with what a terminal would obey, which a node may have said, written as `\\x1b`."""
    return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


def _line(word: str, place: str, what: str, reason: str, known: str) -> str:
    return f"{word:<5} {place:<{WIDTH}} {what}  {visible(reason)}{f'  [{known}]' if known else ''}"
