"""A run's results as a plug-in of Nagios, Icinga and their like says them: one line with performance data.

Its exit codes are the plug-ins' own (Monitoring Plugins Development Guidelines), not assay's.
"""

from __future__ import annotations

from collections.abc import Iterator

from assay.harness.results.compare import Kind
from assay.harness.results.differences import Differences
from assay.harness.results.lines import where
from assay.harness.results.result import Result
from assay.harness.results.sections import headline
from assay.harness.store.tables import VERDICTS

OK, WARNING, CRITICAL, UNKNOWN = range(4)
STATES = ("OK", "WARNING", "CRITICAL", "UNKNOWN")
TOLD: tuple[Kind, ...] = ("new_failure", "newly_unknown", "unseen", "vanished", "still_failing", "fixed")
LABELS = {"pass": "passed", "fail": "failed", "error": "errors", "skip": "skipped"}


def nagios(result: Result) -> Iterator[str]:
    """Yield the line of a run."""
    total = sum(result.counts.values())
    there = f"; wrong on {where(result.nodes_failing)}" if result.nodes_failing else ""
    remark = f"not to be relied on, {result.remark}: " if result.remark else ""
    values = " ".join(f"{LABELS[verdict]}={result.counts[verdict]};;;0;{total}" for verdict in VERDICTS)
    yield line(state(result), f"{remark}{result.headline()}{there}, run {result.run.id}", values)


def differences(found: Differences) -> Iterator[str]:
    """Yield the line of a comparison."""
    counts = found.comparison.counts
    values = " ".join(f"{kind}={counts[kind]};;;0" for kind in TOLD)
    yield line(state_of(found), f"{headline(found)}, run {found.new.id} against {found.old.id}", values)


def state(result: Result) -> int:
    """Return the plug-in's exit code.

    Critical: something failed; unknown: something could not be judged, or the run judged nothing or is not to be relied
    on; warning: what failed is a known issue, or a check on trial.
    """
    if result.deciding["fail"]:
        return CRITICAL
    if result.deciding["error"] or result.remark or not result.counts.total():
        return UNKNOWN
    return WARNING if result.counts["fail"] or result.counts["error"] else OK


def state_of(found: Differences) -> int:
    """Return the exit code of a comparison: critical where something fails anew, unknown where it cannot be told."""
    deciding = found.comparison.deciding
    if deciding["new_failure"] or deciding["unseen"] or deciding["unexcused"]:
        return CRITICAL
    if found.comparison.worse or not found.comparison.both:
        return UNKNOWN
    return WARNING if deciding["still_failing"] or deciding["still_unknown"] else OK


def line(code: int, said: str, values: str = "") -> str:
    """Return the one line; a bar would begin the performance data."""
    plain = " ".join(said.replace("|", "/").split())
    return f"ASSAY {STATES[code]} - {plain}{f' | {values}' if values else ''}"
