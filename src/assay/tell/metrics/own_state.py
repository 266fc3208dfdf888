"""assay itself: its version, its fleet, its ledger, its passes, and the queues of DBOS."""

from __future__ import annotations

import time
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from assay.act.effects.workflow_counts import count_unfinished_workflows
from assay.act.effects.workflow_queues import format_queue_name
from assay.act.loop.pass_log import read_passes
from assay.ledger.store import Ledger
from assay.model.timestamps import parse_epoch_seconds
from assay.tell.metrics import families
from assay.tell.metrics.family import Distribution, Series
from assay.tell.metrics.metric_source import MetricSource
from assay.tell.metrics.tally import oldest_series

LOG_SUFFIXES = ("", "-wal")
"""An SQLite ledger is a file and its log."""


def list_build_series() -> Iterator[Series]:
    """Yield what is true without a ledger."""
    yield Series(families.BUILD_INFO, (read_version(),), 1)


def list_ledger_series(source: MetricSource) -> Iterator[Series]:
    """Yield the series of the fleet's commit and of the ledger."""
    fleet, ledger = source.context.fleet, source.context.ledger
    yield Series(families.FLEET_INFO, (f"{fleet.commit[:12]}{'-dirty' if fleet.dirty else ''}",), 1)
    head = ledger.head()
    yield Series(families.LEDGER_ENTRIES, (), head)
    yield Series(families.LEDGER_READ, (), source.counts.seq)
    for entry in ledger.entries(after=head - 1)[:1]:
        yield Series(families.LEDGER_AGE, (), max(0.0, source.now_s - parse_epoch_seconds(entry.at)))
    if ledger.file:
        yield Series(families.LEDGER_BYTES, (), sum(_measure(ledger, suffix) for suffix in LOG_SUFFIXES))


def list_pass_series(source: MetricSource) -> Iterator[Series]:
    """Yield the series of the controller's passes, from its file."""
    for stage, totals in sorted(read_passes(source.context.home).items()):
        yield Series(families.PASS_DURATION, (stage,), Distribution(totals.buckets, totals.seconds))
        yield Series(families.PASS_CPU, (stage,), totals.cpu_seconds)
        yield Series(families.PASS_FAILURES, (stage,), totals.failures)
        yield Series(families.PASS_AGE, (stage,), max(0.0, time.time() - totals.ended_s))


def list_workflow_series(source: MetricSource) -> Iterator[Series]:
    """Yield the series of the queues of DBOS: each pool has one, and it may be empty."""
    found = count_unfinished_workflows(source.context)
    counts = {(one.queue, one.status): one.count for one in found}
    waiting = {(format_queue_name(pool), "ENQUEUED"): 0 for pool in source.pools}
    yield from (Series(families.WORKFLOWS, labels, count) for labels, count in sorted((waiting | counts).items()))
    yield from oldest_series(families.WORKFLOW_OLDEST, (((one.queue,), one.oldest_s) for one in found), time.time())


def _measure(ledger: Ledger, suffix: str) -> int:
    """Return the bytes of a file of an SQLite ledger, 0 if it has none of that name."""
    try:
        return Path(f"{ledger.file}{suffix}").stat().st_size
    except FileNotFoundError:
        return 0


def read_version() -> str:
    """Return the version of the installed package, "unknown" if it is not installed."""
    try:
        return version("assay-fleet")
    except PackageNotFoundError:
        return "unknown"
