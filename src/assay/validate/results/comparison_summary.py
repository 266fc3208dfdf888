"""Summarises a comparison of two runs: groups of similar changes, in sections.

Changes are similar where they are of one kind and of one cause (`failure_causes`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from assay.model.outcome import SuiteRun
from assay.model.text.lists import fold_names, format_count, format_list
from assay.validate.results.outcome_lines import (
    SUBJECT_WIDTH,
    escape_control,
    format_places,
    shorten_check,
    verdict_word,
)
from assay.validate.results.run_comparison import CHANGE_KINDS, WORSE_KINDS, ChangeKind, OutcomeChange, RunComparison
from assay.validate.results.run_summary import find_cause

KIND_TITLES: dict[ChangeKind, str] = {
    "new_failure": "newly failing",
    "newly_unknown": "no longer known",
    "unexcused": "no longer excused",
    "unseen": "wrong where the older run did not look",
    "still_failing": "still failing",
    "still_unknown": "still not known",
    "vanished": "no longer judged",
    "fixed": "fixed",
    "judged_again": "passing, and not known before",
    "appeared": "judged for the first time",
}
EARLIER_VERDICT_PHRASES = {"pass": "passed", "fail": "failed", "error": "could not be judged", "skip": "was skipped"}


@dataclass
class ChangeGroup:
    """Similar changes of one kind; `example` is the first of them."""

    example: OutcomeChange
    outcomes: int
    places: dict[str, None]
    checks: set[str]

    @property
    def kind(self) -> ChangeKind:
        """The kind of the changes."""
        return self.example.kind

    @property
    def decides(self) -> bool:
        """Whether the changes count."""
        return self.example.decides

    @property
    def line(self) -> str:
        """One line for people."""
        example, reason = self.example, _describe_reason(self.example)
        word = verdict_word(example.now or "gone", example.known, observed=example.observed)
        checks = shorten_check(example.check) if len(self.checks) == 1 else format_count(len(self.checks), "check")
        if self.outcomes == 1:
            return f"{word:<5} {example.subject:<{SUBJECT_WIDTH}} {checks}  {reason}"
        first = f" ({example.subject})" if len(self.places) > 1 else ""
        checks += f", {self.outcomes} outcomes" if self.outcomes > len(self.places) else ""
        return f"{word:<5} {format_places(list(self.places)):<{SUBJECT_WIDTH}} {checks}  {reason}{first}"


def group_changes(comparison: RunComparison) -> list[ChangeGroup]:
    """Return groups of similar changes by kind; within a kind those that count first, the widest first."""
    groups = []
    for kind in CHANGE_KINDS:
        of_kind = _group_kind(comparison, kind)
        groups += sorted(of_kind, key=lambda group: (not group.decides, -len(group.places), -group.outcomes))
    return groups


def _group_kind(comparison: RunComparison, kind: ChangeKind) -> list[ChangeGroup]:
    groups: dict[tuple[object, ...], ChangeGroup] = {}
    for change in comparison.changes(kind):
        cause = find_cause(change.check, change.now, change.reason or change.was_reason, change.node, change.was)
        key = (cause, change.known, change.observed, change.decides)
        group = groups.get(key)
        if group is None:
            group = groups[key] = ChangeGroup(change, 0, {}, set())
        group.outcomes += 1
        group.places[change.node or change.subject] = None
        group.checks.add(change.check)
    return list(groups.values())


def _describe_reason(change: OutcomeChange) -> str:
    before = f"{EARLIER_VERDICT_PHRASES[change.was]} before" if change.was else ""
    if change.kind in ("fixed", "judged_again", "vanished"):
        reason = f": {escape_control(change.was_reason)}" if change.was and change.was_reason else ""
        return before + reason
    note = f" ({before})" if before and change.kind == "newly_unknown" else ""
    return f"{escape_control(change.reason)}{note}{f'  [{change.known}]' if change.known else ''}"


@dataclass(frozen=True)
class RunDifferences:
    """A comparison with its groups of changes."""

    comparison: RunComparison
    groups: tuple[ChangeGroup, ...] = ()

    @property
    def old(self) -> SuiteRun:
        """The earlier run."""
        return self.comparison.old

    @property
    def new(self) -> SuiteRun:
        """The later run."""
        return self.comparison.new


def collect_differences(comparison: RunComparison) -> RunDifferences:
    """Return a comparison with all that is derived from it."""
    return RunDifferences(comparison, tuple(group_changes(comparison)))


@dataclass(frozen=True)
class ComparisonSection:
    """A section of the summary. `worse`: it holds changes for the worse."""

    title: str
    lines: list[str]
    worse: bool = False


def format_comparison_headline(differences: RunDifferences) -> str:
    """Return the counts of a comparison as a sentence."""
    comparison = differences.comparison
    parts = [f"{comparison.counts[kind]} {KIND_TITLES[kind]}" for kind in CHANGE_KINDS if comparison.counts[kind]]
    changes = ", ".join(parts) or "nothing changed"
    old, new = comparison.apart
    apart = [f"{old} only in the older run"] * bool(old) + [f"{new} only in the newer"] * bool(new)
    unasked = f"; {' and '.join(apart)}, which the other run was not asked to judge" if apart else ""
    return f"{format_count(comparison.both, 'outcome')} in both: {changes}{unasked}"


def make_comparison_sections(differences: RunDifferences) -> Iterator[ComparisonSection]:
    """Yield the sections that are not empty."""
    comparison = differences.comparison
    for kind in CHANGE_KINDS:
        lines = [group.line for group in differences.groups if group.kind == kind]
        if lines and kind != "appeared":
            yield ComparisonSection(_title(comparison, kind), lines, worse=kind in WORSE_KINDS)
    if lines := list(_list_appeared_and_vanished(comparison)):
        yield ComparisonSection("only in one of the runs", lines)


def _title(comparison: RunComparison, kind: ChangeKind) -> str:
    count = comparison.counts[kind]
    excused = count - comparison.deciding[kind] if kind in ("new_failure", "unseen", "still_failing") else 0
    note = f", {excused} of them known or on trial" if excused else ""
    return f"{KIND_TITLES[kind]}: {format_count(count, 'outcome')}{note}"


def _list_appeared_and_vanished(comparison: RunComparison) -> Iterator[str]:
    for word, names in (("new check", comparison.appeared), ("check that is gone", comparison.vanished)):
        for name in names:
            yield f"{word}: {shorten_check(name)}"
    for word, nodes in (("newer", comparison.nodes_appeared), ("older", comparison.nodes_vanished)):
        if nodes:
            yield f"{format_count(len(nodes), 'node')} only in the {word} run: {format_list(fold_names(nodes), 6)}"
