"""Formats results as GitHub's workflow commands: an annotation at the function of each check that did not pass.

GitHub shows ten errors and ten warnings of a step. So similar outcomes share an annotation, and the rest is counted.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from assay.model.text.lists import format_count
from assay.validate.results.comparison_summary import (
    KIND_TITLES,
    RunDifferences,
    format_comparison_headline,
)
from assay.validate.results.outcome_lines import escape_control, format_places, shorten_check
from assay.validate.results.run_comparison import WORSE_KINDS
from assay.validate.results.run_summary import RunSummary

MAX_ANNOTATIONS = 10


class CheckFunctionLines:
    """Lines of check functions in the suites of the repository `root`; a module is read with its first check."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._modules: dict[str, dict[str, int]] = {}

    def __call__(self, check: str) -> int:
        """Return the line of a check's function, 0 where it is not found."""
        module, _, function = check.partition("::")
        if module not in self._modules:
            self._modules[module] = _read_function_lines(self._root / module)
        return self._modules[module].get(function, 0)


def _read_function_lines(module: Path) -> dict[str, int]:
    try:
        tree = ast.parse(module.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return {}
    return {node.name: node.lineno for node in tree.body if isinstance(node, ast.FunctionDef)}


def format_annotation(level: str, properties: Mapping[str, object], message: str) -> str:
    """Return the command of an annotation. `level` is error, warning or notice; empty properties are left out."""
    fields = ",".join(f"{name}={escape_annotation(str(value), ':,')}" for name, value in properties.items() if value)
    return f"::{level} {fields}::{escape_annotation(message)}"


def escape_annotation(text: str, more: str = "") -> str:
    """Return text with `%`, line ends and the characters of `more` as percent codes."""
    return "".join(f"%{ord(character):02X}" if character in "%\r\n" + more else character for character in text)


AnnotationRow = tuple[str, str, str, str]
"""Level, check, title and message."""


def format_github(summary: RunSummary) -> Iterator[str]:
    """Yield an error for what counts, a warning for what is known or on trial, and the counts as the last line."""
    rows = []
    for group in summary.groups():
        if group.verdict != "skip":
            check, subject, reason = group.example
            several = f"{group.outcomes} outcomes on {format_places(group.places)}, first {subject}"
            place = subject if group.outcomes == 1 else several
            message = f"{place}: {escape_control(reason)}{f' [{group.known}]' if group.known else ''}"
            several_checks = f"{format_count(group.checks, 'check')} could not be judged"
            title = shorten_check(group.check) if group.check else several_checks
            rows.append(("error" if group.decides else "warning", check, title, message))
    yield from _annotations(summary.root, rows)
    if summary.remark:
        yield format_annotation("error", {"title": "unreliable run"}, f"run {summary.run.id}: {summary.remark}")
    yield summary.headline()


def format_github_comparison(differences: RunDifferences) -> Iterator[str]:
    """Yield an error for what is worse, a warning for what still fails, and the counts as the last line."""
    groups = [group for group in differences.groups if group.decides]
    rows: list[AnnotationRow] = []
    for group in groups:
        level, check = "error" if group.kind in WORSE_KINDS else "warning", group.example.check
        rows.append((level, check, f"{shorten_check(check)} {KIND_TITLES[group.kind]}", group.description))
    yield from _annotations(differences.root, rows)
    yield format_comparison_headline(differences)


def _annotations(root: Path, rows: Iterable[AnnotationRow]) -> Iterator[str]:
    left, line_of = Counter({"error": MAX_ANNOTATIONS, "warning": MAX_ANNOTATIONS}), CheckFunctionLines(root)
    left_out = Counter[str]()
    for level, check, title, message in rows:
        if not left[level]:
            left_out[level] += 1
            continue
        left[level] -= 1
        place = {"file": check.partition("::")[0], "line": line_of(check), "title": title}
        yield format_annotation(level, place, message)
    for level, count in left_out.items():
        yield f"and {format_count(count, level)} more, which GitHub would not show"
