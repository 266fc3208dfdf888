"""Formats outcomes that did not pass as lines: verdict, place, check and reason."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from assay.ledger.runs.reader import StoredRun
from assay.model.outcome import CheckVerdict, Outcome, SuiteRun
from assay.model.text.lists import fold_names, format_count, format_list
from assay.model.timestamps import format_minute
from assay.validate.results.run_summary import FailureGroup, RunSummary

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
MAX_SINGLE_FAILURES = 10
"""Up to so many failures get a line each; more are grouped where they are similar."""
SUBJECT_WIDTH = 18


def format_problems(summary: RunSummary, max_lines: int) -> Iterator[str]:
    """Yield lines for what did not pass, at most `max_lines`, and how many more there are."""
    groups = summary.groups()
    failures = [group for group in groups if group.verdict == "fail"]
    if sum(group.outcomes for group in failures) <= MAX_SINGLE_FAILURES:
        failed = [outcome for outcome in summary.problems() if outcome.verdict == "fail"]
        lines = [*map(format_outcome, sorted(failed, key=lambda outcome: not outcome.counts_against_subject))]
    else:
        lines = [*map(format_group, failures)]
    lines += [format_group(group) for group in groups if group.verdict != "fail"]
    yield from lines[:max_lines]
    if len(lines) > max_lines:
        yield f"… and {len(lines) - max_lines} more lines; select with `--check`, `--node` and other options"


def format_outcome(outcome: Outcome) -> str:
    """Return one outcome as a line."""
    word = verdict_word(outcome.verdict, outcome.known, observed=outcome.observed)
    return _line(word, outcome.subject, shorten_check(outcome.check), outcome.reason, outcome.known)


def format_group(group: FailureGroup) -> str:
    """Return a group as a line; for several outcomes, it says where they are and gives one reason as an example."""
    word = verdict_word(group.verdict, group.known, observed=group.observed)
    check, subject, reason = group.example
    if group.outcomes == 1:
        return _line(word, subject, shorten_check(check), reason, group.known)
    checks = shorten_check(group.check) if group.check else format_count(group.checks, "check")
    if group.outcomes > len(group.places):
        checks += f", {group.outcomes} outcomes"
    first = f"{reason} ({subject})" if len(group.places) > 1 else reason
    return _line(word, format_places(group.places), checks, first, group.known)


def verdict_word(verdict: CheckVerdict | str, known: str, *, observed: bool) -> str:
    """Return the first word of a line: the verdict, `known` if a known issue excuses it, `trial` at stage `observe`."""
    if verdict not in ("fail", "error"):
        return str(verdict)
    return "known" if known else "trial" if observed else str(verdict)


def format_places(places: Sequence[str]) -> str:
    """Return names of nodes, racks or fabrics as text: one name, or the number and the first names."""
    if len(places) == 1:
        return places[0]
    is_rack = all("/rack-" in place for place in places)
    noun = "rack" if is_rack else "place" if any("/" in place for place in places) else "node"
    return f"{format_count(len(places), noun)} ({format_list(fold_names(places), 4)})"


def shorten_check(check: str) -> str:
    """Return a check's id without `suites/`."""
    return check.removeprefix("suites/")


def describe_run(run: SuiteRun) -> str:
    """Return a run's id, time, phases, specs and user as text."""
    specs = f"specs {run.spec_commit[:12] or 'of no commit'}{' with uncommitted changes' if run.dirty else ''}"
    phases = f", {' and '.join(run.phases)}" if run.phases else ""
    return f"run {run.id}, {format_minute(run.at)}{phases}, {specs}{f', by {run.who}' if run.who else ''}"


def describe_influences(stored: StoredRun) -> str:
    """Return which settings, conftests and plugins outside the suites may have changed the run, "" for none."""
    return "; ".join(f"{name} ({hooks})" for name, hooks in stored.influences.items())


def escape_control(text: str) -> str:
    r"""Return text with control characters, which may come from a node, written as `\\x1b`."""
    return _CONTROL.sub(lambda match: f"\\x{ord(match[0]):02x}", text)


def _line(word: str, place: str, checks: str, reason: str, known: str) -> str:
    return f"{word:<5} {place:<{SUBJECT_WIDTH}} {checks}  {escape_control(reason)}{f'  [{known}]' if known else ''}"
