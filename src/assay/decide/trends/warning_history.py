"""The warnings that the ledger keeps, each with what came of it. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from assay.decide.trends.warning_record import ClosedWarning, Outcome
from assay.model.entries.trend_entries import TrendClosedEntry, TrendDemotedEntry, TrendWarnedEntry, WarningOutcome
from assay.model.ledger_entry import LedgerEntry
from assay.model.timestamps import parse_time

TREND_ENTRY_KINDS = (TrendWarnedEntry.kind, TrendClosedEntry.kind, TrendDemotedEntry.kind)
_OUTCOMES: dict[WarningOutcome, Outcome] = {
    "right": "right", "wrong": "wrong", "overtaken": "cannot_tell", "cannot tell": "cannot_tell",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class TrendWarning:
    """A warning of a node, when it came, and how it ended; `closed` is None while it is open."""

    node: str
    at: datetime
    content: TrendWarnedEntry
    closed: TrendClosedEntry | None = None
    closed_at: datetime | None = None

    @property
    def key(self) -> tuple[str, str, str]:
        """What has one open warning at most: a part (by serial number, else by place), and a rule."""
        one = self.content
        return ("" if one.serial else f"{self.node}/{one.place}", one.serial, one.rule)


@dataclass(frozen=True, slots=True)
class WarningHistory:
    """All warnings, oldest first, and by rule and revision why a rule lost its stage."""

    warnings: tuple[TrendWarning, ...]
    demotions: dict[tuple[str, str], str]

    @property
    def open(self) -> list[TrendWarning]:
        """Return the warnings of which nobody knows yet what comes of them."""
        return [one for one in self.warnings if one.closed is None]

    @property
    def ended(self) -> list[ClosedWarning]:
        """Return the forecasts of the warnings that have ended, and what came of them."""
        return [
            ClosedWarning(one.content.rule, one.content.rate_days, one.closed.lead_days, _OUTCOMES[one.closed.outcome])
            for one in self.warnings
            if one.closed
        ]


def read_warning_history(entries: Iterable[LedgerEntry]) -> WarningHistory:
    """Return the warnings of the ledger's entries of `TREND_ENTRY_KINDS`; others say nothing."""
    warnings: dict[str, TrendWarning] = {}
    demotions: dict[tuple[str, str], str] = {}
    for entry in entries:
        match entry.kind:
            case TrendWarnedEntry.kind:
                warned = TrendWarnedEntry.read(entry)
                warnings.setdefault(warned.warning, TrendWarning(entry.node, parse_time(entry.at), warned))
            case TrendClosedEntry.kind:
                closed = TrendClosedEntry.read(entry)
                if (known := warnings.get(closed.warning)) and known.closed is None:
                    warnings[closed.warning] = replace(known, closed=closed, closed_at=parse_time(entry.at))
            case TrendDemotedEntry.kind:
                demoted = TrendDemotedEntry.read(entry)
                demotions[demoted.rule, demoted.revision] = demoted.reason
    return WarningHistory(tuple(warnings.values()), demotions)
