"""Formats results as text for a terminal: the run with its counts, then a line for each problem."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from assay.ledger.runs.reader import StoredRun
from assay.model.errors import AssayError
from assay.model.facts import fact, to_json
from assay.model.outcome import CheckVerdict, SuiteRun
from assay.model.text.lists import format_count
from assay.model.timestamps import format_minute
from assay.validate.results.comparison_summary import (
    RunDifferences,
    format_comparison_headline,
    make_comparison_sections,
)
from assay.validate.results.outcome_lines import describe_influences, describe_run, format_problems
from assay.validate.results.run_summary import VERDICT_PHRASES, RunSummary

MAX_TEXT_LINES = 60
SkippedRun = Callable[[AssayError], None]


def format_text(summary: RunSummary) -> Iterator[str]:
    """Yield the lines of a run."""
    yield describe_run(summary.run)
    if summary.remark:
        yield f"unreliable: {summary.remark}"
    yield summary.headline()
    if influences := describe_influences(summary.stored):
        yield f"judged with {influences}"
    lines = list(format_problems(summary, MAX_TEXT_LINES))
    yield from ("", *lines) if lines else ()


def format_text_comparison(differences: RunDifferences) -> Iterator[str]:
    """Yield the lines of a comparison, the worse sections first."""
    yield describe_run(differences.new)
    yield f"against {describe_run(differences.old).removeprefix('run ')}"
    yield format_comparison_headline(differences)
    for section in make_comparison_sections(differences):
        yield from ("", section.title)
        yield from (f"  {line}" for line in section.lines[:MAX_TEXT_LINES])
        if len(section.lines) > MAX_TEXT_LINES:
            yield f"  … and {len(section.lines) - MAX_TEXT_LINES} more lines"


@fact
class RunListing:
    """A run in the list."""

    run: SuiteRun
    """The run."""
    ended: bool
    """Whether it has ended; if not, it still runs or was killed."""
    counts: dict[CheckVerdict, int]
    """How many outcomes there are of each verdict."""
    deciding: int
    """How many failures and errors nothing excuses."""


@fact
class RunListAnswer:
    """The runs, newest first."""

    runs: list[RunListing]
    """The runs that are listed."""
    of: int
    """How many runs there are, damaged ones too."""


def format_run_list_text(runs: Sequence[Path], limit: int, skipped: SkippedRun) -> Iterator[str]:
    """Yield the first `limit` runs, a line each, and how many more there are. `skipped` receives damaged ones."""
    for listing in _read_listings(runs[:limit], skipped):
        run = listing.run
        counts = [f"{count} {VERDICT_PHRASES[verdict]}" for verdict, count in listing.counts.items() if count]
        commit = (run.spec_commit[:12] or "no commit") + ("+changes" if run.dirty else "")
        yield (
            f"{run.id}  {format_minute(run.at)}  {run.who:<10} {commit}  {format_count(len(run.nodes), 'node')}, "
            f"{','.join(run.phases) or 'every phase'}: {', '.join(counts) or 'nothing judged'}"
            f"{'' if listing.ended else ', has not ended'}"
        )
    if len(runs) > limit:
        yield f"… and {len(runs) - limit} older; `--most {len(runs)}` lists them all"


def format_run_list_json(runs: Sequence[Path], limit: int, skipped: SkippedRun) -> Iterator[str]:
    """Yield the first `limit` runs as one JSON document."""
    answer = RunListAnswer(list(_read_listings(runs[:limit], skipped)), len(runs))
    yield json.dumps(to_json(answer), ensure_ascii=False)


def _read_listings(runs: Iterable[Path], skipped: SkippedRun) -> Iterator[RunListing]:
    for path in runs:
        try:
            with StoredRun.open_whole(path) as stored:
                summary = RunSummary(stored)
                counts = {verdict: summary.counts[verdict] for verdict in VERDICT_PHRASES}
                listing = RunListing(stored.run, summary.ended, counts, summary.deciding.total())
        except AssayError as error:
            skipped(error)
        else:
            yield listing
