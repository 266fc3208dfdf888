"""What did not pass, a line each: what it is, where, by which check, and why."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from assay.model.outcome import CheckVerdict, Outcome, SuiteRun
from assay.model.text_lists import fold_names, format_count, format_list
from assay.model.timestamps import format_minute
from assay.results.run_summary import FailureGroup, RunSummary

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
MAX_SINGLE_FAILURES = 10
"""So many failures, or fewer, are told one by one; more of them together, where they are alike."""
SUBJECT_WIDTH = 18


def format_problems(result: RunSummary, most: int) -> Iterator[str]:
    """Yield what did not pass, at most so many lines, and how many more there are."""
    groups = result.groups()
    alone = sum(group.outcomes for group in groups if group.verdict == "fail") <= MAX_SINGLE_FAILURES
    lines = [*_failure_lines(result)] if alone else [format_group(one) for one in groups if one.verdict == "fail"]
    lines += [format_group(group) for group in groups if group.verdict != "fail"]
    yield from lines[:most]
    if len(lines) > most:
        yield f"… and {len(lines) - most} lines more; `--check`, `--node` and the like say what to show"


def _failure_lines(result: RunSummary) -> Iterator[str]:
    failed = [one for one in result.problems() if one.verdict == "fail"]
    yield from map(format_outcome, sorted(failed, key=lambda one: not one.counts_against_subject))


def format_outcome(outcome: Outcome) -> str:
    """Return one outcome as a line."""
    word = verdict_word(outcome.verdict, outcome.known, observed=outcome.observed)
    return _line(word, outcome.subject, shorten_check(outcome.check), outcome.reason, outcome.known)


def format_group(group: FailureGroup) -> str:
    """Return a group as a line: of one outcome itself, of more where they are, and the first as an example."""
    word = verdict_word(group.verdict, group.known, observed=group.observed)
    check, subject, reason = group.example
    if group.outcomes == 1:
        return _line(word, subject, shorten_check(check), reason, group.known)
    what = shorten_check(group.check) if group.check else format_count(group.checks, "check")
    if group.outcomes > len(group.places):
        what += f", {group.outcomes} outcomes"
    first = f"{reason} ({subject})" if len(group.places) > 1 else reason
    return _line(word, format_places(group.places), what, first, group.known)


def verdict_word(verdict: CheckVerdict | str, known: str, *, observed: bool) -> str:
    """Return the word that a line begins with; what is excused is `known`, what a check on trial says `trial`."""
    if verdict not in ("fail", "error"):
        return str(verdict)
    return "known" if known else "trial" if observed else str(verdict)


def format_places(places: Sequence[str]) -> str:
    """Return names of nodes, racks or fabrics: one itself, of many how many and the first."""
    if len(places) == 1:
        return places[0]
    racks = [one for one in places if "/rack-" in one]
    noun = "rack" if len(racks) == len(places) else "place" if any("/" in one for one in places) else "node"
    return f"{format_count(len(places), noun)} ({format_list(fold_names(places), 4)})"


def shorten_check(check: str) -> str:
    """Return a check's id as people read it."""
    return check.removeprefix("suites/")


def describe_run(run: SuiteRun) -> str:
    """Return which run it is: id, time, specs and who."""
    specs = f"specs {run.spec_commit[:12] or 'of no commit'}{' with changes' if run.dirty else ''}"
    phases = f", {' and '.join(run.phases)}" if run.phases else ""
    return f"run {run.id}, {format_minute(run.at)}{phases}, {specs}{f', by {run.who}' if run.who else ''}"


def escape_control(text: str) -> str:
    r"""Return text with what a terminal would obey, which a node may have said, written as `\\x1b`."""
    return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


def _line(word: str, place: str, what: str, reason: str, known: str) -> str:
    return f"{word:<5} {place:<{SUBJECT_WIDTH}} {what}  {escape_control(reason)}{f'  [{known}]' if known else ''}"
