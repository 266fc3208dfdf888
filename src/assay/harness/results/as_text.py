"""A run's results for people at a terminal: which run, how many, then what did not pass, a line each."""

from __future__ import annotations

from collections.abc import Iterator

from assay.harness.results.differences import Differences
from assay.harness.results.lines import named, wrong
from assay.harness.results.result import Result
from assay.harness.results.sections import headline, sections

MOST = 60


def text(result: Result) -> Iterator[str]:
    """Yield the lines of a run."""
    yield named(result.run)
    if result.remark:
        yield f"not to be relied on: {result.remark}"
    yield result.headline()
    lines = list(wrong(result, MOST))
    yield from ("", *lines) if lines else ()


def differences(found: Differences) -> Iterator[str]:
    """Yield the lines of a comparison, what is worse first."""
    yield named(found.new)
    yield f"against {named(found.old).removeprefix('run ')}"
    yield headline(found)
    for section in sections(found):
        yield from ("", section.title)
        yield from (f"  {line}" for line in section.lines[:MOST])
        if len(section.lines) > MOST:
            yield f"  … and {len(section.lines) - MOST} lines more"
