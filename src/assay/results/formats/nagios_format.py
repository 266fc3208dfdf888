"""A run's results as a plug-in of Nagios, Icinga and their like says them: one line with performance data.

Its exit codes are the plug-ins' own (Monitoring Plugins Development Guidelines), not assay's.
"""

from __future__ import annotations

from collections.abc import Iterator

from assay.results.comparison.comparison_summary import RunDifferences, format_comparison_headline
from assay.results.comparison.run_comparison import ChangeKind
from assay.results.outcome_lines import format_places
from assay.results.run_summary import RunSummary
from assay.results.store.schema import VERDICTS

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


def format_nagios(result: RunSummary) -> Iterator[str]:
    """Yield the line of a run."""
    total = sum(result.counts.values())
    there = f"; wrong on {format_places(result.nodes_failing)}" if result.nodes_failing else ""
    remark = f"not to be relied on, {result.remark}: " if result.remark else ""
    values = " ".join(f"{PERFORMANCE_LABELS[verdict]}={result.counts[verdict]};;;0;{total}" for verdict in VERDICTS)
    yield format_nagios_line(find_run_state(result), f"{remark}{result.headline()}{there}, run {result.run.id}", values)


def format_nagios_comparison(found: RunDifferences) -> Iterator[str]:
    """Yield the line of a comparison."""
    counts = found.comparison.counts
    values = " ".join(f"{kind}={counts[kind]};;;0" for kind in PERFORMANCE_KINDS)
    yield format_nagios_line(
        find_comparison_state(found),
        f"{format_comparison_headline(found)}, run {found.new.id} against {found.old.id}",
        values,
    )


def find_run_state(result: RunSummary) -> int:
    """Return the plug-in's exit code.

    Critical: something failed; unknown: something could not be judged, or the run judged nothing or is not to be relied
    on; warning: what failed is a known issue, or a check on trial.
    """
    if result.deciding["fail"]:
        return NAGIOS_CRITICAL
    if result.deciding["error"] or result.remark or not result.counts.total():
        return NAGIOS_UNKNOWN
    return NAGIOS_WARNING if result.counts["fail"] or result.counts["error"] else NAGIOS_OK


def find_comparison_state(found: RunDifferences) -> int:
    """Return the exit code of a comparison: critical where something fails anew, unknown where it cannot be told."""
    deciding = found.comparison.deciding
    if deciding["new_failure"] or deciding["unseen"] or deciding["unexcused"]:
        return NAGIOS_CRITICAL
    if found.comparison.worse or not found.comparison.both:
        return NAGIOS_UNKNOWN
    return NAGIOS_WARNING if deciding["still_failing"] or deciding["still_unknown"] else NAGIOS_OK


def format_nagios_line(code: int, said: str, values: str = "") -> str:
    """Return the one line; a bar would begin the performance data."""
    plain = " ".join(said.replace("|", "/").split())
    return f"ASSAY {NAGIOS_STATES[code]} - {plain}{f' | {values}' if values else ''}"
