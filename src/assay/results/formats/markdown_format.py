"""A run's results as Markdown, short enough for a comment on GitHub; what is cut is said."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from assay.results.comparison.comparison_summary import (
    RunDifferences,
    format_comparison_headline,
    make_comparison_sections,
)
from assay.results.outcome_lines import describe_run, format_problems
from assay.results.run_summary import VERDICT_PHRASES, RunSummary

MAX_COMMENT_CHARACTERS = 65_535
LINE_LIMITS = (200, 60, 20, 5, 1)
MAX_LINE_CHARACTERS = 1000
"""Characters of one line; a reason has at most 500."""
_SIGNS = {sign: f"\\{sign}" for sign in "|*`[_"} | {"&": "&amp;", "<": "&lt;", ">": "&gt;", "@": "@\u200b"}


def format_markdown(result: RunSummary) -> Iterator[str]:
    """Yield a run: the counts as a table, then what did not pass."""
    return _fit_comment(lambda most: _run(result, most))


def format_markdown_comparison(found: RunDifferences) -> Iterator[str]:
    """Yield a comparison, folded what is not worse than before."""
    return _fit_comment(lambda most: _compared(found, most))


def _run(result: RunSummary, most: int) -> Iterator[str]:
    count = sum(result.deciding.values())
    total = sum(result.counts.values())
    well = "well" if result.well else "not known"
    yield f"### assay: {f'{count} of {total} outcomes count against the fleet' if count else well}"
    yield ""
    yield _escape_markdown(
        f"{describe_run(result.run)}.{f' Not to be relied on: {result.remark}.' if result.remark else ''}"
    )
    yield ""
    shown = [verdict for verdict in VERDICT_PHRASES if result.counts[verdict]]
    yield f"| {' | '.join(['nodes', *(VERDICT_PHRASES[one] for one in shown)])} |"
    yield f"|{'---:|' * (len(shown) + 1)}"
    yield f"| {' | '.join([str(result.nodes), *(str(result.counts[one]) for one in shown)])} |"
    yield ""
    for line in format_problems(result, most):
        yield _item(line)


def _compared(found: RunDifferences, most: int) -> Iterator[str]:
    worse = found.comparison.worse
    yield f"### assay: {f'{worse} outcomes are worse' if worse else 'nothing is worse'}"
    yield ""
    yield f"{_escape_markdown(describe_run(found.new))}, against {_escape_markdown(describe_run(found.old).removeprefix('run '))}."
    yield ""
    yield f"{_escape_markdown(format_comparison_headline(found))}."
    for section in make_comparison_sections(found):
        yield from ("", f"<details{' open' * section.worse}><summary>{_escape_markdown(section.title)}</summary>", "")
        yield from map(_item, section.lines[:most])
        if len(section.lines) > most:
            yield f"- and {len(section.lines) - most} more"
        yield from ("", "</details>")


def _fit_comment(lines: Callable[[int], Iterator[str]]) -> Iterator[str]:
    """Yield as many of the lines as a comment may have."""
    for most in LINE_LIMITS:
        made = list(lines(most))
        if sum(len(line) + 1 for line in made) <= MAX_COMMENT_CHARACTERS:
            break
    return iter(made)


def _item(line: str) -> str:
    said = " ".join(line.split())
    return f"- {_escape_markdown(said if len(said) <= MAX_LINE_CHARACTERS else f'{said[:MAX_LINE_CHARACTERS]} …')}"


def _escape_markdown(text: str) -> str:
    """Return text that Markdown shows as it is, and that addresses nobody."""
    return "".join(_SIGNS.get(sign, sign) for sign in text)
