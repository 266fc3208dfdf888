"""Reads the values of measurements from history: the newest of each part, by node kind, and the medians of each run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Any

from assay.ledger.history.outcome_and_pool_queries import HistoryRow, OutcomeHistory
from assay.ledger.history.parquet_files import MEASUREMENTS_TABLE, RUNS_TABLE
from assay.validate.results.node_kinds import NodeKind
from assay.validate.results.peer_distribution import PartValue, PeerDistribution, RunMedian, ValueLimit, describe_values

COURSE_RUNS = 30
_RUNS = "SELECT run, spec_commit, dirty FROM read_parquet($files, hive_partitioning = true) ORDER BY run"
_VALUES = """
WITH kinds AS (SELECT unnest($kind_nodes) AS node, unnest($kind_numbers) AS kind),
epochs AS (SELECT unnest($epoch_runs) AS run, unnest($epoch_numbers) AS epoch),
measured AS (
  SELECT m.*, k.kind, coalesce(e.epoch, 0) AS epoch
  FROM among($files, $nodes, $subjects, $checks, $pattern) m JOIN kinds k USING (node) LEFT JOIN epochs e USING (run)
  WHERE isfinite(value) AND ($what = '' OR name GLOB $what OR check_ GLOB $what OR check_ GLOB 'suites/' || $what
    OR split_part(check_, '::', 2) GLOB $what OR split_part(check_, '::', 2) GLOB 'test_' || $what)
)
"""
_NEWEST = (
    _VALUES
    + """
SELECT check_, name, kind, subject, epoch, any_value(unit), any_value(node), max(run_at), arg_max(value, run_at),
  avg(value), arg_max(struct_pack(low := at_least, high := at_most, source := source), run_at)
FROM measured WHERE epoch >= $epoch_first
GROUP BY check_, name, kind, subject, epoch ORDER BY check_, name, kind, subject, epoch
"""
)
_COURSE = (
    _VALUES
    + """
SELECT check_, name, kind, run, max(run_at), median(value) FROM measured GROUP BY check_, name, kind, run ORDER BY run
"""
)
_COUNT = "SELECT count(*) FROM read_parquet($files)"
"""Parquet has the number of its rows in its footer."""

MeasuredKind = tuple[str, str, int]
"""Check, measurement, and the number of the node kind."""


def count_values(history: OutcomeHistory, *, days: int) -> int:
    """Return how many values of measurements were recorded."""
    counted = history.fetch(_COUNT, days=days, table=MEASUREMENTS_TABLE)
    return int(counted[0][0]) if counted else 0


def query_distributions(
    history: OutcomeHistory, kinds: Mapping[str, NodeKind], what: str = "", *, days: int
) -> list[PeerDistribution]:
    """Return the distributions of measurements by check, name and kind. `kinds` has the kind of each node.

    `what` is a glob of a measurement, of a check's id or of its function's name; "" is all. An epoch is a time in
    which runs used the same specs; the last two epochs of a measurement are before and after the change.
    """
    every = sorted(set(kinds.values()))
    numbers = {kind: number for number, kind in enumerate(every)}
    runs, specs = _read_epochs(history, days)
    values: dict[str, Any] = {
        "what": what,
        "kind_nodes": [*kinds],
        "kind_numbers": [numbers[kind] for kind in kinds.values()],
        "epoch_runs": [*runs],
        "epoch_numbers": [*runs.values()],
    }
    courses: dict[MeasuredKind, list[RunMedian]] = defaultdict(list)
    for check, name, kind, *rest in history.fetch(_COURSE, days=days, table=MEASUREMENTS_TABLE, **values):
        courses[check, name, kind].append(RunMedian(*rest))
    rows = history.fetch(
        _NEWEST, epoch_first=_find_first_epoch(courses, runs), days=days, table=MEASUREMENTS_TABLE, **values
    )
    found = []
    for key, of_kind in groupby(rows, lambda row: row[:3]):
        check, name, kind = key
        listed = list(of_kind)
        epochs = sorted({row[4] for row in listed})[-2:]
        pair = (specs[epochs[0]], specs[epochs[1]]) if len(epochs) == 2 else None
        parts = list(_read_parts(listed, epochs))
        course = courses[check, name, kind][-COURSE_RUNS:]
        found.append(describe_values(check, name, listed[-1][5], every[kind], parts, course, pair))
    return found


def _find_first_epoch(courses: Mapping[MeasuredKind, list[RunMedian]], runs: Mapping[str, int]) -> int:
    """Return the oldest epoch that is one of the last two of some measurement: older values are not compared."""
    epochs = (sorted({runs.get(point.run, 0) for point in course}) for course in courses.values())
    return min((of_one[-2:][0] for of_one in epochs), default=0)


def _read_epochs(history: OutcomeHistory, days: int) -> tuple[dict[str, int], list[str]]:
    """Return the epoch of each run, and the specs of each epoch."""
    runs, specs = dict[str, int](), [""]
    for run, commit, dirty in history.fetch(_RUNS, days=days, table=RUNS_TABLE):
        spec = f"{commit[:12] or 'no commit'}{'+changes' if dirty else ''}"
        if spec != specs[-1]:
            specs.append(spec)
        runs[run] = len(specs) - 1
    return runs, specs


def _read_parts(rows: list[HistoryRow], epochs: list[int]) -> Iterator[PartValue]:
    """Yield the parts of one kind; rows are by subject and epoch."""
    for subject, of_part in groupby(rows, lambda row: row[3]):
        by_epoch = {row[4]: row for row in of_part}
        *_, node, at, value, _, limit = by_epoch[max(by_epoch)]
        before, after = (by_epoch[epoch][9] if epoch in by_epoch else None for epoch in (epochs[0], epochs[-1]))
        if len(epochs) < 2:
            before = None
        yield PartValue(subject, node, at, value, ValueLimit(*limit.values()), before, after)
