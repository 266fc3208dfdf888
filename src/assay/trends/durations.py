"""How long actions and stays in states took, from the ledger."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import timedelta
from statistics import median

from assay.model.backtest import MedianDuration
from assay.model.entries.effect_entries import EffectIntentEntry, EffectVerifiedEntry
from assay.model.entries.node_entries import NodeEnrolledEntry, TransitionEntry
from assay.model.ledger_entry import LedgerEntry
from assay.model.timestamps import parse_time

ONE_HOUR = timedelta(hours=1)


def median_action_durations(entries: Iterable[LedgerEntry]) -> dict[str, MedianDuration]:
    """Return the median hours from intent to verification of an effect, by action. Failed effects do not count."""
    started: dict[str, tuple[str, str]] = {}
    hours: dict[str, list[float]] = defaultdict(list)
    for entry in entries:
        if entry.kind == EffectIntentEntry.kind:
            intent = EffectIntentEntry.read(entry)
            started.setdefault(intent.effect, (intent.action, entry.at))
        elif entry.kind == EffectVerifiedEntry.kind:
            action, at = started.pop(EffectVerifiedEntry.read(entry).effect, ("", ""))
            if action:
                hours[action].append(_count_hours(at, entry.at))
    return _find_medians(hours)


def median_state_durations(entries: Iterable[LedgerEntry]) -> dict[str, MedianDuration]:
    """Return the median hours of the stays in each state that have ended."""
    stays: dict[str, tuple[str, str]] = {}
    hours: dict[str, list[float]] = defaultdict(list)
    for entry in entries:
        if entry.kind == NodeEnrolledEntry.kind:
            stays.pop(entry.node, None)  # where the node was before, and since when, is not known
        elif entry.kind == TransitionEntry.kind:
            move = TransitionEntry.read(entry)
            state, since = stays.get(entry.node, ("", ""))
            if state == move.from_state:
                hours[state].append(_count_hours(since, entry.at))
            stays[entry.node] = (move.to_state, entry.at)
    return _find_medians(hours)


def _count_hours(start: str, end: str) -> float:
    return (parse_time(end) - parse_time(start)) / ONE_HOUR


def _find_medians(hours: Mapping[str, list[float]]) -> dict[str, MedianDuration]:
    return {name: MedianDuration(median(found), len(found)) for name, found in sorted(hours.items())}
