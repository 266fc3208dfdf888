"""The runs that there are, a line each, newest first.

A run's results for people at a terminal: which run, how many, then what did not pass, a line each.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from assay.model.outcome import SuiteRun
from assay.model.text_lists import format_count
from assay.model.timestamps import format_minute
from assay.results.comparison.comparison_summary import (
    RunDifferences,
    format_comparison_headline,
    make_comparison_sections,
)
from assay.results.outcome_lines import describe_run, format_problems
from assay.results.run_summary import VERDICT_PHRASES, RunSummary
from assay.results.store.reader import StoredRun

MAX_TEXT_LINES = 60


def format_text(result: RunSummary) -> Iterator[str]:
    """Yield the lines of a run."""
    yield describe_run(result.run)
    if result.remark:
        yield f"not to be relied on: {result.remark}"
    yield result.headline()
    lines = list(format_problems(result, MAX_TEXT_LINES))
    yield from ("", *lines) if lines else ()


def format_text_comparison(found: RunDifferences) -> Iterator[str]:
    """Yield the lines of a comparison, what is worse first."""
    yield describe_run(found.new)
    yield f"against {describe_run(found.old).removeprefix('run ')}"
    yield format_comparison_headline(found)
    for section in make_comparison_sections(found):
        yield from ("", section.title)
        yield from (f"  {line}" for line in section.lines[:MAX_TEXT_LINES])
        if len(section.lines) > MAX_TEXT_LINES:
            yield f"  … and {len(section.lines) - MAX_TEXT_LINES} lines more"


@dataclass(frozen=True)
class RunListing:
    """A run in the list, with how many outcomes of each verdict it has, and how many of them count."""

    run: SuiteRun
    ended: bool
    counts: dict[str, int]
    deciding: int


def format_run_list_text(runs: Sequence[Path], most: int) -> Iterator[str]:
    """Yield the first `most` of the runs as lines, and how many more there are."""
    for path in runs[:most]:
        one = _read_listing(path)
        said = [f"{count} {VERDICT_PHRASES[verdict]}" for verdict, count in one.counts.items() if count]
        ended = "" if one.ended else ", has not ended"
        changes = "+changes" if one.run.dirty else ""
        phases = ",".join(one.run.phases) or "every phase"
        yield (
            f"{one.run.id}  {format_minute(one.run.at)}  {one.run.who:<10} {(one.run.spec_commit[:12] or 'no commit') + changes}"
            f"  {format_count(len(one.run.nodes), 'node')}, {phases}: {', '.join(said) or 'nothing judged'}{ended}"
        )
    if len(runs) > most:
        yield f"… and {len(runs) - most} older; `--most {len(runs)}` lists them all"


def format_run_list_json(runs: Sequence[Path], most: int) -> Iterator[str]:
    """Yield them as one JSON document."""
    yield json.dumps(
        {"runs": [asdict(_read_listing(path)) for path in runs[:most]], "of": len(runs)}, ensure_ascii=False
    )


def _read_listing(path: Path) -> RunListing:
    with StoredRun.open(path) as stored:
        result = RunSummary(stored)
        counts = {verdict: result.counts[verdict] for verdict in VERDICT_PHRASES}
        return RunListing(stored.run, result.ended, counts, result.deciding.total())
