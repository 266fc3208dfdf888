"""How long actions and stays in states took, as the ledger tells it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import timedelta
from statistics import median

from assay.model.backtest import MedianDuration
from assay.model.ledger_entry import LedgerEntry
from assay.model.timestamps import parse_time

ONE_HOUR = timedelta(hours=1)


def median_action_durations(entries: Iterable[LedgerEntry]) -> dict[str, MedianDuration]:
    """Return the median from an effect's intent to its proof, by action. What failed took no time that counts."""
    begun: dict[str, LedgerEntry] = {}
    took: dict[str, list[float]] = defaultdict(list)
    for entry in entries:
        if entry.kind == "effect.intent":
            begun.setdefault(entry.body["effect"], entry)
        elif entry.kind == "effect.verified" and (intent := begun.pop(entry.body["effect"], None)):
            took[intent.body["action"]].append(_hours(intent.at, entry.at))
    return _medians(took)


def median_state_durations(entries: Iterable[LedgerEntry]) -> dict[str, MedianDuration]:
    """Return the median of the stays in each state that have ended."""
    since: dict[str, tuple[str, str]] = {}
    took: dict[str, list[float]] = defaultdict(list)
    for entry in entries:
        if entry.kind == "node.enrolled":
            since.pop(entry.node, None)  # where it was before is not known, nor since when
        elif entry.kind == "transition":
            state, at = since.get(entry.node, ("", ""))
            if state == entry.body["from"]:
                took[state].append(_hours(at, entry.at))
            since[entry.node] = (entry.body["to"], entry.at)
    return _medians(took)


def _hours(start: str, end: str) -> float:
    return (parse_time(end) - parse_time(start)) / ONE_HOUR


def _medians(took: Mapping[str, list[float]]) -> dict[str, MedianDuration]:
    return {name: MedianDuration(median(hours), len(hours)) for name, hours in sorted(took.items())}
