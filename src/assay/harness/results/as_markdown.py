"""A run's results as Markdown, short enough for a comment on GitHub; what is cut is said."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from assay.harness.results.differences import Differences
from assay.harness.results.lines import named, wrong
from assay.harness.results.result import WORDS, Result
from assay.harness.results.sections import headline, sections

MOST_CHARACTERS = 65_535
CUTS = (200, 60, 20, 5, 1)
LONGEST = 1000
"""Characters of one line; a reason has at most 500."""
_SIGNS = {sign: f"\\{sign}" for sign in "|*`[_"} | {"&": "&amp;", "<": "&lt;", ">": "&gt;", "@": "@\u200b"}


def markdown(result: Result) -> Iterator[str]:
    """Yield a run: the counts as a table, then what did not pass."""
    return _fitted(lambda most: _run(result, most))


def differences(found: Differences) -> Iterator[str]:
    """Yield a comparison, folded what is not worse than before."""
    return _fitted(lambda most: _compared(found, most))


def _run(result: Result, most: int) -> Iterator[str]:
    count = sum(result.deciding.values())
    total = sum(result.counts.values())
    well = "well" if result.well else "not known"
    yield f"### assay: {f'{count} of {total} outcomes count against the fleet' if count else well}"
    yield ""
    yield _plain(f"{named(result.run)}.{f' Not to be relied on: {result.remark}.' if result.remark else ''}")
    yield ""
    shown = [verdict for verdict in WORDS if result.counts[verdict]]
    yield f"| {' | '.join(['nodes', *(WORDS[one] for one in shown)])} |"
    yield f"|{'---:|' * (len(shown) + 1)}"
    yield f"| {' | '.join([str(result.nodes), *(str(result.counts[one]) for one in shown)])} |"
    yield ""
    for line in wrong(result, most):
        yield _item(line)


def _compared(found: Differences, most: int) -> Iterator[str]:
    worse = found.comparison.worse
    yield f"### assay: {f'{worse} outcomes are worse' if worse else 'nothing is worse'}"
    yield ""
    yield f"{_plain(named(found.new))}, against {_plain(named(found.old).removeprefix('run '))}."
    yield ""
    yield f"{_plain(headline(found))}."
    for section in sections(found):
        yield from ("", f"<details{' open' * section.worse}><summary>{_plain(section.title)}</summary>", "")
        yield from map(_item, section.lines[:most])
        if len(section.lines) > most:
            yield f"- and {len(section.lines) - most} more"
        yield from ("", "</details>")


def _fitted(lines: Callable[[int], Iterator[str]]) -> Iterator[str]:
    """Yield as many of the lines as a comment may have."""
    for most in CUTS:
        made = list(lines(most))
        if sum(len(line) + 1 for line in made) <= MOST_CHARACTERS:
            break
    return iter(made)


def _item(line: str) -> str:
    said = " ".join(line.split())
    return f"- {_plain(said if len(said) <= LONGEST else f'{said[:LONGEST]} …')}"


def _plain(text: str) -> str:
    """Return text that Markdown shows as it is, and that addresses nobody."""
    return "".join(_SIGNS.get(sign, sign) for sign in text)
