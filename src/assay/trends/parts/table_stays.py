"""Reads stays, failures and returns from the tables `holders` and `failures`, see `measurement_tables`."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING

from assay.trends.parts.part_stays import FailedPart, PartStay, guess_kind
from assay.trends.parts.service_returns import ServiceReturn

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

ROWS_AT_ONCE = 10_000
_STAYS = """
SELECT node, subject, {kind} AS kind, serial, sku, {batch} AS batch, rack, position, since_s / 86400,
  coalesce(until_s / 86400, 'infinity'::DOUBLE)
FROM holders
"""
_SPANS = """
SELECT node, min(since_s) / 86400, least(max(coalesce(until_s / 86400, 'infinity'::DOUBLE)), $today)
FROM holders GROUP BY node
"""
_RETURNS = """
WITH ordered AS (
  SELECT *, lag(serial) OVER w AS serial_before, lag(rack) OVER w AS rack_before,
    lag(position) OVER w AS position_before, lag(sku) OVER w AS sku_before, lag(firmware) OVER w AS firmware_before
  FROM (SELECT DISTINCT node, subject, serial, rack, position, sku, firmware, since_s FROM holders)
  WINDOW w AS (PARTITION BY node, subject ORDER BY since_s)
)
SELECT DISTINCT node, since_s / 86400, subject FROM ordered
WHERE serial_before IS NOT NULL AND (serial <> serial_before OR (rack = rack_before AND position = position_before
  AND sku = sku_before AND firmware = firmware_before))
ORDER BY ALL
"""
"""Another part at the place, or the same again with a new `since`. New firmware and a move are no repair."""


def read_table_stays(database: DuckDBPyConnection) -> Iterator[PartStay]:
    """Yield the stays of the table `holders`. Where it says no `kind`, that is guessed by the subject."""
    columns = set(database.table("holders").columns)
    extra = {name: name if name in columns else "''" for name in ("kind", "batch")}
    rows = database.execute(_STAYS.format(**extra))
    while some := rows.fetchmany(ROWS_AT_ONCE):
        for node, subject, kind, *others in some:
            yield PartStay(node, subject, kind or guess_kind(subject), *others)


def read_table_failures(database: DuckDBPyConnection) -> list[FailedPart]:
    """Return the rows of the table `failures`."""
    rows = database.execute("SELECT DISTINCT time_s / 86400, node, subject, fault FROM failures ORDER BY ALL")
    return [FailedPart(*row) for row in rows.fetchall()]


def read_table_returns(database: DuckDBPyConnection, failures: Iterable[FailedPart]) -> list[ServiceReturn]:
    """Return when nodes came back, by the table `holders`: once for all parts that came back at one moment."""
    rows = database.execute(_RETURNS).fetchall()
    by_node: dict[str, list[FailedPart]] = defaultdict(list)
    for one in sorted(failures):
        by_node[one.node].append(one)
    found, last = [], dict[str, float]()
    for (node, at), group in groupby(rows, key=itemgetter(0, 1)):
        subjects = {subject for _, _, subject in group}
        subject = subjects.pop() if len(subjects) == 1 else ""
        repair = _find_fault(by_node[node], last.get(node, -math.inf), at, subject)
        found.append(ServiceReturn(at, node, subject, repair))
        last[node] = at
    return sorted(found)


def _find_fault(failures: Sequence[FailedPart], after: float, until: float, subject: str) -> str:
    """Return the last fault of a node before its return; of the part that came back, if it has one."""
    times = [one.at for one in failures]
    between = failures[bisect_right(times, after) : bisect_right(times, until)]
    own = [one for one in between if one.subject == subject]
    return (own or between)[-1].fault if between else ""


def read_node_spans(database: DuckDBPyConnection, today: float) -> dict[str, tuple[float, float]]:
    """Return from when to when each node has had parts, at most until today."""
    rows = database.execute(_SPANS, {"today": today}).fetchall()
    return {node: (since, until) for node, since, until in rows}
