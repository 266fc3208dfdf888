"""A run's results as GitHub's workflow commands: an annotation at the function of each check that did not pass.

GitHub shows ten errors and ten warnings of a step, so alike outcomes are one, and what is cut is said.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from assay.model.text_lists import format_count
from assay.results.comparison.comparison_summary import (
    KIND_TITLES,
    ChangeGroup,
    RunDifferences,
    format_comparison_headline,
)
from assay.results.comparison.run_comparison import WORSE_KINDS
from assay.results.formats.github_annotations import CheckFunctionLines, format_annotation
from assay.results.outcome_lines import escape_control, format_places, shorten_check
from assay.results.run_summary import RunSummary

MAX_ANNOTATIONS = 10
AnnotationRow = tuple[str, str, str, str]


def format_github(result: RunSummary) -> Iterator[str]:
    """Yield an error for what counts, a warning for what is known or on trial, and the counts as a last line."""
    told = []
    for group in result.groups():
        if group.verdict != "skip":
            check, subject, reason = group.example
            many = f"{group.outcomes} outcomes on {format_places(group.places)}, first {subject}"
            place = subject if group.outcomes == 1 else many
            said = f"{place}: {escape_control(reason)}{f' [{group.known}]' if group.known else ''}"
            title = (
                shorten_check(group.check)
                if group.check
                else f"{format_count(group.checks, 'check')} could not be judged"
            )
            told.append(("error" if group.decides else "warning", check, title, said))
    yield from _annotations(result.root, told)
    if result.remark:
        yield format_annotation("error", {"title": "not to be relied on"}, f"run {result.run.id}: {result.remark}")
    yield result.headline()


def format_github_comparison(found: RunDifferences) -> Iterator[str]:
    """Yield an error for what is worse, a warning for what fails still, and the counts as a last line."""
    together = [one for one in found.groups if one.decides]
    told = [_changed("error" if one.kind in WORSE_KINDS else "warning", one) for one in together]
    yield from _annotations(found.root, told)
    yield format_comparison_headline(found)


def _changed(level: str, one: ChangeGroup) -> AnnotationRow:
    return level, one.example.check, f"{shorten_check(one.example.check)} {KIND_TITLES[one.kind]}", one.description


def _annotations(root: Path, told: Iterable[AnnotationRow]) -> Iterator[str]:
    left, line_of = Counter({"error": MAX_ANNOTATIONS, "warning": MAX_ANNOTATIONS}), CheckFunctionLines(root)
    cut = Counter[str]()
    for level, check, title, said in told:
        if not left[level]:
            cut[level] += 1
            continue
        left[level] -= 1
        yield format_annotation(level, {"file": check.partition("::")[0], "line": line_of(check), "title": title}, said)
    for level, count in cut.items():
        yield f"and {format_count(count, level)} more, which GitHub would not show"
