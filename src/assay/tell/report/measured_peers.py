"""What the report takes from the history: distributions of measurements, parts unlike their peers, rates of pools."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from assay.ledger.history.parquet_files import history_folder
from assay.ledger.history.queries import OutcomeHistory, PoolDayRate, query_pool_rates
from assay.model.errors import AssayError
from assay.model.fleet import Fleet
from assay.validate.results.distribution import (
    PeerDistribution,
    PeerOutlier,
    count_values,
    list_node_kinds,
    query_distributions,
)

DISTRIBUTION_DAYS, TREND_DAYS = (30, 7, 2), 30
MAX_VALUES = 4_000_000
"""Of the days, the most are read that have no more values: so many take five CPU seconds and half a gigabyte."""


class CheckOutlier(NamedTuple):
    """A part that is unlike its peers in a measurement of a check."""

    check: str
    kind: str
    outlier: PeerOutlier


class PastOfFleet(NamedTuple):
    """What the history says: the distributions of all measurements, and how the pools fared on each day."""

    distributions: Sequence[PeerDistribution] = ()
    rates: Sequence[PoolDayRate] = ()


def read_past(fleet: Fleet, reports: Path, now: float, unread: list[str]) -> PastOfFleet:
    """Return what the history says at the time `now` (Unix seconds).

    What cannot be read is appended to `unread`: the report is useful without.
    """
    moment = datetime.fromtimestamp(now, UTC)
    try:
        with OutcomeHistory(history_folder(reports), moment, lambda error: unread.append(str(error))) as history:
            rates = query_pool_rates(history, days=TREND_DAYS)
            days = next((days for days in DISTRIBUTION_DAYS if count_values(history, days=days) <= MAX_VALUES), 0)
            if days:
                return PastOfFleet(query_distributions(history, list_node_kinds(fleet), days=days), rates)
            unread.append("distributions: too many values for one page: see `assay results --distribution NAME`")
            return PastOfFleet(rates=rates)
    except AssayError as error:
        unread.append(f"history: {error}")
    return PastOfFleet()


def list_outliers(distributions: Iterable[PeerDistribution]) -> list[CheckOutlier]:
    """Return the parts that are unlike their peers, the farthest first."""
    outliers = []
    for each in distributions:
        outliers += [CheckOutlier(each.check, str(each.kind), outlier) for outlier in each.outliers]
    return sorted(outliers, key=lambda of_check: (-abs(of_check.outlier.score), of_check.outlier.part.subject))
