"""Formats the ledger entries about trends for people: warnings, what came of them, and rules that lost their stage."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from assay.model.entries.entry_content import EntryContent
from assay.model.entries.trend_entries import TrendClosedEntry, TrendDemotedEntry, TrendWarnedEntry


def describe_limit(warning: TrendWarnedEntry) -> str:
    """Return when the limit is reached, in words; "" where no limit is near."""
    if warning.limit is None or warning.rate_days is None:
        return ""
    limit = f"{warning.limit:.4g}"
    if not warning.days:
        return f"at this rate it reaches {limit} in {warning.rate_days:.0f} d"
    low, middle, high = warning.days
    return f"it reaches {limit} in {low:.0f} to {high:.0f} d ({middle:.0f})"


def _format_warning(entry: TrendWarnedEntry, _: str) -> str:
    part = f"{entry.place} " if entry.place else ""
    why = [entry.reason, entry.group]
    return f"{part}gets worse ({entry.rule}): {'; '.join(filter(None, why))}"


def _format_closed(entry: TrendClosedEntry, _: str) -> str:
    lead = f", {entry.lead_days:.0f} d before" if entry.lead_days is not None else ""
    return f"a warning of {entry.rule} was {entry.outcome}{lead}: {entry.reason}"


def _format_demoted(entry: TrendDemotedEntry, _: str) -> str:
    return f"the trend rule {entry.rule} only observes from now on: {entry.reason}"


TREND_FORMATTERS: Mapping[type[EntryContent], Callable[[Any, str], str]] = {
    TrendWarnedEntry: _format_warning,
    TrendClosedEntry: _format_closed,
    TrendDemotedEntry: _format_demoted,
}
