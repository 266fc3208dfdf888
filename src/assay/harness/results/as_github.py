"""A run's results as GitHub's workflow commands: an annotation at the function of each check that did not pass.

GitHub shows ten errors and ten warnings of a step, so alike outcomes are one, and what is cut is said.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from assay.harness.results.compare import WORSE
from assay.harness.results.differences import Differences
from assay.harness.results.functions import Functions
from assay.harness.results.gathered import TITLES, Gathered
from assay.harness.results.lines import short, visible, where
from assay.harness.results.result import Result
from assay.harness.results.sections import headline
from assay.harness.results.workflow import annotation
from assay.model.spans import counted

MOST = 10
Annotation = tuple[str, str, str, str]


def github(result: Result) -> Iterator[str]:
    """Yield an error for what counts, a warning for what is known or on trial, and the counts as a last line."""
    told = []
    for group in result.groups():
        if group.verdict != "skip":
            check, subject, reason = group.example
            many = f"{group.outcomes} outcomes on {where(group.places)}, first {subject}"
            place = subject if group.outcomes == 1 else many
            said = f"{place}: {visible(reason)}{f' [{group.known}]' if group.known else ''}"
            title = short(group.check) if group.check else f"{counted(group.checks, 'check')} could not be judged"
            told.append(("error" if group.decides else "warning", check, title, said))
    yield from _annotations(result.root, told)
    if result.remark:
        yield annotation("error", {"title": "not to be relied on"}, f"run {result.run.id}: {result.remark}")
    yield result.headline()


def differences(found: Differences) -> Iterator[str]:
    """Yield an error for what is worse, a warning for what fails still, and the counts as a last line."""
    together = [one for one in found.gathered if one.decides]
    told = [_changed("error" if one.kind in WORSE else "warning", one) for one in together]
    yield from _annotations(found.root, told)
    yield headline(found)


def _changed(level: str, one: Gathered) -> Annotation:
    return level, one.example.check, f"{short(one.example.check)} {TITLES[one.kind]}", one.said


def _annotations(root: Path, told: Iterable[Annotation]) -> Iterator[str]:
    left, line_of = Counter({"error": MOST, "warning": MOST}), Functions(root)
    cut = Counter[str]()
    for level, check, title, said in told:
        if not left[level]:
            cut[level] += 1
            continue
        left[level] -= 1
        yield annotation(level, {"file": check.partition("::")[0], "line": line_of(check), "title": title}, said)
    for level, count in cut.items():
        yield f"and {counted(count, level)} more, which GitHub would not show"
