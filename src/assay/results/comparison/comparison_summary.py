"""Changes between two runs, those that are alike together: of one kind, for one reason.

All that is told of two runs: how outcomes changed, which checks flap, which measurements moved.

What is told of a comparison, in sections: what is worse first, what changed alike together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from assay.model.outcome import SuiteRun
from assay.model.text_lists import fold_names, format_count, format_list
from assay.results.comparison.flaky_and_shifted import (
    MAX_FLAKY_CANDIDATES,
    FlakyOutcome,
    MeasurementShift,
    find_flaky_outcomes,
    find_shifts,
    is_every_candidate_read,
)
from assay.results.comparison.run_comparison import CHANGE_KINDS, WORSE_KINDS, ChangeKind, OutcomeChange, RunComparison
from assay.results.outcome_lines import SUBJECT_WIDTH, escape_control, format_places, shorten_check, verdict_word
from assay.results.run_summary import normalise_reason

KIND_TITLES: dict[ChangeKind, str] = {
    "new_failure": "newly failing",
    "newly_unknown": "not known any more",
    "unexcused": "not excused any more",
    "unseen": "wrong where the older run did not look",
    "still_failing": "still failing",
    "still_unknown": "still not known",
    "vanished": "not judged any more",
    "fixed": "fixed",
    "judged_again": "passing, and not known before",
    "appeared": "judged for the first time",
}
UNKNOWN_VERDICTS = ("error", "skip")
"""Of these, one cause is often many checks'."""
EARLIER_VERDICT_PHRASES = {"pass": "passed", "fail": "failed", "error": "could not be judged", "skip": "was skipped"}


@dataclass
class ChangeGroup:
    """Changes of one kind for one reason; `example` is the first of them."""

    example: OutcomeChange
    outcomes: int
    places: dict[str, None]
    checks: set[str]

    @property
    def kind(self) -> ChangeKind:
        """What became of them."""
        return self.example.kind

    @property
    def decides(self) -> bool:
        """Whether they count."""
        return self.example.decides

    @property
    def description(self) -> str:
        """Where and why, in words."""
        one = self.example
        if self.outcomes == 1:
            return f"{one.subject}: {_describe_reason(one)}"
        return f"{self.outcomes} outcomes on {format_places(list(self.places))}, first {one.subject}: {_describe_reason(one)}"

    @property
    def line(self) -> str:
        """One line for people."""
        one = self.example
        word = verdict_word(one.now or "gone", one.known, observed=one.observed)
        what = shorten_check(one.check) if len(self.checks) == 1 else format_count(len(self.checks), "check")
        if self.outcomes == 1:
            return f"{word:<5} {one.subject:<{SUBJECT_WIDTH}} {what}  {_describe_reason(one)}"
        first = f" ({one.subject})" if len(self.places) > 1 else ""
        many = f"{what}, {self.outcomes} outcomes" if self.outcomes > len(self.places) else what
        return f"{word:<5} {format_places(list(self.places)):<{SUBJECT_WIDTH}} {many}  {_describe_reason(one)}{first}"


def group_changes(comparison: RunComparison) -> list[ChangeGroup]:
    """Return what changed, alike changes together; what is widest spread first within each kind."""
    together = []
    for kind in CHANGE_KINDS:
        of_kind = _group_kind(comparison, kind)
        together += sorted(of_kind, key=lambda one: (not one.decides, -len(one.places), -one.outcomes))
    return together


def _group_kind(comparison: RunComparison, kind: ChangeKind) -> list[ChangeGroup]:
    together: dict[tuple[object, ...], ChangeGroup] = {}
    for one in comparison.changes(kind):
        check = "" if one.now in UNKNOWN_VERDICTS or (one.now == "pass" and one.was in UNKNOWN_VERDICTS) else one.check
        key = (
            check,
            one.now,
            normalise_reason(one.reason or one.was_reason, one.node),
            one.known,
            one.observed,
            one.decides,
        )
        known = together.get(key)
        if known is None:
            known = together[key] = ChangeGroup(one, 0, {}, set())
        known.outcomes += 1
        known.places[one.node or one.subject] = None
        known.checks.add(one.check)
    return list(together.values())


def _describe_reason(one: OutcomeChange) -> str:
    if one.kind in ("fixed", "judged_again", "vanished"):
        return (
            f"{EARLIER_VERDICT_PHRASES[one.was]} before{f': {escape_control(one.was_reason)}' if one.was_reason else ''}"
            if one.was
            else ""
        )
    before = f" ({EARLIER_VERDICT_PHRASES[one.was]} before)" if one.was and one.kind == "newly_unknown" else ""
    return f"{escape_control(one.reason)}{before}{f'  [{one.known}]' if one.known else ''}"


@dataclass(frozen=True)
class RunDifferences:
    """A comparison, its changes gathered, and what only more runs than two can tell; `root` is the repository."""

    comparison: RunComparison
    groups: tuple[ChangeGroup, ...] = ()
    flaky: tuple[FlakyOutcome, ...] = ()
    shifted: tuple[MeasurementShift, ...] = ()
    root: Path = Path()

    @property
    def old(self) -> SuiteRun:
        """The earlier run."""
        return self.comparison.old

    @property
    def new(self) -> SuiteRun:
        """The later run."""
        return self.comparison.new


def collect_differences(comparison: RunComparison, earlier: Sequence[Path], root: Path = Path()) -> RunDifferences:
    """Return what there is to tell of a comparison; `earlier` are the files of the runs before the new one."""
    flaps, movements = find_flaky_outcomes(comparison, earlier), find_shifts(comparison, earlier)
    return RunDifferences(comparison, tuple(group_changes(comparison)), tuple(flaps), tuple(movements), root)


@dataclass(frozen=True)
class ComparisonSection:
    """A part of what is told; `worse`: nobody had to know of it before."""

    title: str
    lines: list[str]
    worse: bool = False


def format_comparison_headline(found: RunDifferences) -> str:
    """Return how much changed, as a sentence."""
    comparison = found.comparison
    parts = [f"{comparison.counts[kind]} {KIND_TITLES[kind]}" for kind in CHANGE_KINDS if comparison.counts[kind]]
    said = ", ".join(parts) or "nothing changed"
    return f"{format_count(comparison.both, 'outcome')} in both: {said}{_format_unasked(comparison)}"


def make_comparison_sections(found: RunDifferences) -> Iterator[ComparisonSection]:
    """Yield the sections that have something to say."""
    for kind in CHANGE_KINDS:
        lines = [one.line for one in found.groups if one.kind == kind]
        if lines and kind != "appeared":
            yield ComparisonSection(_title(found.comparison, kind), lines, worse=kind in WORSE_KINDS)
    if found.flaky:
        part = (
            ""
            if is_every_candidate_read(found.comparison)
            else f", among the first {MAX_FLAKY_CANDIDATES} that changed"
        )
        yield ComparisonSection(f"flapping{part}", [one.line for one in found.flaky])
    if found.shifted:
        yield ComparisonSection("measurements that moved more than their noise", [one.line for one in found.shifted])
    if lines := list(_list_appeared_and_vanished(found.comparison)):
        yield ComparisonSection("only in one of the runs", lines)


def _title(comparison: RunComparison, kind: ChangeKind) -> str:
    count = comparison.counts[kind]
    excused = count - comparison.deciding[kind] if kind in ("new_failure", "unseen", "still_failing") else 0
    known = f", {excused} of them known or on trial" if excused else ""
    return f"{KIND_TITLES[kind]}: {format_count(count, 'outcome')}{known}"


def _format_unasked(comparison: RunComparison) -> str:
    old, new = comparison.apart
    parts = [f"{old} only in the older run"] * bool(old) + [f"{new} only in the newer"] * bool(new)
    return f"; {' and '.join(parts)}, as the other was not asked for them" if parts else ""


def _list_appeared_and_vanished(comparison: RunComparison) -> Iterator[str]:
    for word, names in (("new check", comparison.appeared), ("check that is gone", comparison.vanished)):
        for name in names:
            yield f"{word}: {shorten_check(name)}"
    for word, nodes in (("newer", comparison.nodes_appeared), ("older", comparison.nodes_vanished)):
        if nodes:
            yield f"{format_count(len(nodes), 'node')} only in the {word} run: {format_list(fold_names(nodes), 6)}"
