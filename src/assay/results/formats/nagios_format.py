"""Formats results as a plug-in of Nagios, Icinga or the like prints them: one line with performance data.

The exit codes are those of the Monitoring Plugins Development Guidelines, not assay's.
"""

from __future__ import annotations

from collections.abc import Iterator

from assay.model.outcome import VERDICTS
from assay.results.comparison.comparison_summary import RunDifferences, format_comparison_headline
from assay.results.comparison.run_comparison import ChangeKind
from assay.results.outcome_lines import format_places
from assay.results.run_summary import RunSummary

NAGIOS_OK, NAGIOS_WARNING, NAGIOS_CRITICAL, NAGIOS_UNKNOWN = range(4)
NAGIOS_STATES = ("OK", "WARNING", "CRITICAL", "UNKNOWN")
PERFORMANCE_KINDS: tuple[ChangeKind, ...] = (
    "new_failure",
    "newly_unknown",
    "unseen",
    "vanished",
    "still_failing",
    "fixed",
)
PERFORMANCE_LABELS = {"pass": "passed", "fail": "failed", "error": "errors", "skip": "skipped"}


def format_nagios(summary: RunSummary) -> Iterator[str]:
    """Yield the line of a run."""
    total = summary.counts.total()
    failing = f"; wrong on {format_places(summary.nodes_failing)}" if summary.nodes_failing else ""
    remark = f"unreliable, {summary.remark}: " if summary.remark else ""
    values = " ".join(f"{PERFORMANCE_LABELS[verdict]}={summary.counts[verdict]};;;0;{total}" for verdict in VERDICTS)
    yield format_nagios_line(
        find_run_state(summary), f"{remark}{summary.headline()}{failing}, run {summary.run.id}", values
    )


def format_nagios_comparison(differences: RunDifferences) -> Iterator[str]:
    """Yield the line of a comparison."""
    counts = differences.comparison.counts
    values = " ".join(f"{kind}={counts[kind]};;;0" for kind in PERFORMANCE_KINDS)
    yield format_nagios_line(
        find_comparison_state(differences),
        f"{format_comparison_headline(differences)}, run {differences.new.id} against {differences.old.id}",
        values,
    )


def find_run_state(summary: RunSummary) -> int:
    """Return the exit code of a run.

    - Critical: a failure counts.
    - Unknown: an error counts, or the run is empty or cannot be relied on.
    - Warning: all failures and errors are known or on trial.
    """
    if summary.deciding["fail"]:
        return NAGIOS_CRITICAL
    if summary.deciding["error"] or summary.remark or not summary.counts.total():
        return NAGIOS_UNKNOWN
    return NAGIOS_WARNING if summary.counts["fail"] or summary.counts["error"] else NAGIOS_OK


def find_comparison_state(differences: RunDifferences) -> int:
    """Return the exit code of a comparison: critical for a new failure, unknown where outcomes became unknown."""
    deciding = differences.comparison.deciding
    if deciding["new_failure"] or deciding["unseen"] or deciding["unexcused"]:
        return NAGIOS_CRITICAL
    if differences.comparison.worse or not differences.comparison.both:
        return NAGIOS_UNKNOWN
    return NAGIOS_WARNING if deciding["still_failing"] or deciding["still_unknown"] else NAGIOS_OK


def format_nagios_line(code: int, text: str, values: str = "") -> str:
    """Return the line. Bars in the text are replaced, since a bar starts the performance data."""
    plain = " ".join(text.replace("|", "/").split())
    return f"ASSAY {NAGIOS_STATES[code]} - {plain}{f' | {values}' if values else ''}"
