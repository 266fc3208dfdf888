"""Formats results as Markdown, short enough for a comment on GitHub; it states how much is left out."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from assay.validate.results.comparison_summary import (
    RunDifferences,
    format_comparison_headline,
    make_comparison_sections,
)
from assay.validate.results.outcome_lines import describe_run, format_problems
from assay.validate.results.run_summary import VERDICT_PHRASES, RunSummary

MAX_COMMENT_CHARACTERS = 65_535
LINE_LIMITS = (200, 60, 20, 5, 1)
MAX_LINE_CHARACTERS = 1000
"""Characters of one line; a reason has at most 500."""
_ESCAPES = {character: f"\\{character}" for character in "|*`[_"} | {
    "&": "&amp;",
    "<": "&lt;",
    ">": "&gt;",
    "@": "@\u200b",
}


def format_markdown(summary: RunSummary) -> Iterator[str]:
    """Yield a run: the counts as a table, then what did not pass."""
    return _fit_comment(lambda max_lines: _format_run(summary, max_lines))


def format_markdown_comparison(differences: RunDifferences) -> Iterator[str]:
    """Yield a comparison; sections that are not worse are folded."""
    return _fit_comment(lambda max_lines: _format_comparison(differences, max_lines))


def _format_run(summary: RunSummary, max_lines: int) -> Iterator[str]:
    count, total = summary.deciding.total(), summary.counts.total()
    state = "passed" if summary.passed else "unknown"
    yield f"### assay: {f'{count} of {total} outcomes count against the fleet' if count else state}"
    yield ""
    remark = f" Unreliable: {summary.remark}." if summary.remark else ""
    yield _escape_markdown(f"{describe_run(summary.run)}.{remark}")
    yield ""
    shown = [verdict for verdict in VERDICT_PHRASES if summary.counts[verdict]]
    yield f"| {' | '.join(['nodes', *(VERDICT_PHRASES[verdict] for verdict in shown)])} |"
    yield f"|{'---:|' * (len(shown) + 1)}"
    yield f"| {' | '.join([str(summary.nodes), *(str(summary.counts[verdict]) for verdict in shown)])} |"
    yield ""
    for line in format_problems(summary, max_lines):
        yield _item(line)


def _format_comparison(differences: RunDifferences, max_lines: int) -> Iterator[str]:
    worse = differences.comparison.worse
    yield f"### assay: {f'{worse} outcomes are worse' if worse else 'nothing is worse'}"
    yield ""
    old = describe_run(differences.old).removeprefix("run ")
    yield f"{_escape_markdown(describe_run(differences.new))}, against {_escape_markdown(old)}."
    yield ""
    yield f"{_escape_markdown(format_comparison_headline(differences))}."
    for section in make_comparison_sections(differences):
        yield from ("", f"<details{' open' * section.worse}><summary>{_escape_markdown(section.title)}</summary>", "")
        yield from map(_item, section.lines[:max_lines])
        if len(section.lines) > max_lines:
            yield f"- and {len(section.lines) - max_lines} more"
        yield from ("", "</details>")


def _fit_comment(lines: Callable[[int], Iterator[str]]) -> Iterator[str]:
    """Yield the longest version of the text that fits into a comment."""
    for max_lines in LINE_LIMITS:
        text = list(lines(max_lines))
        if sum(len(line) + 1 for line in text) <= MAX_COMMENT_CHARACTERS:
            break
    return iter(text)


def _item(line: str) -> str:
    text = " ".join(line.split())
    return f"- {_escape_markdown(text if len(text) <= MAX_LINE_CHARACTERS else f'{text[:MAX_LINE_CHARACTERS]} …')}"


def _escape_markdown(text: str) -> str:
    """Return text that Markdown shows unchanged, and that mentions nobody."""
    return "".join(_ESCAPES.get(character, character) for character in text)
