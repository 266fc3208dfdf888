"""Which findings become warnings of the ledger: one for each part and rule, none while the last one is young. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from assay.decide.trends.change_warnings import ChangeWarning
from assay.decide.trends.payoff import find_chance
from assay.decide.trends.rule_record import RuleRecord
from assay.decide.trends.warning_history import TrendWarning, WarningHistory
from assay.model.entries.trend_entries import TrendDemotedEntry, TrendWarnedEntry
from assay.model.ledger_entry import derive_id
from assay.model.specs.trend_rules import TrendRules
from assay.model.timestamps import format_time

QUIET = timedelta(days=30)
"""So long after a warning, the same part and rule have no other one."""


@dataclass(frozen=True, slots=True)
class OpenedWarnings:
    """New warnings by node, and the rules that lost their stage because they warned of too many parts at once."""

    warnings: tuple[tuple[str, TrendWarnedEntry], ...]
    demotions: tuple[TrendDemotedEntry, ...]


def open_warnings(
    rules: TrendRules,
    records: Mapping[str, RuleRecord],
    history: WarningHistory,
    found: Sequence[ChangeWarning],
    nodes: int,
    now: datetime,
    since: datetime | None = None,
) -> OpenedWarnings:
    """Return the warnings that are new. A wave of a rule is no fault of any part.

    `nodes`: how many were compared. `since`: when the fleet was asked last; None where nobody knows.
    """
    known = {one.key: one for one in history.warnings}
    new: dict[tuple[str, str, str], tuple[str, TrendWarnedEntry]] = {}
    for one in found:
        name = rules.find_rule(one.score.name)
        if not name:
            continue
        entry = _make_entry(one, records[name], now)
        key = TrendWarning(one.score.node, now, entry).key
        if key not in new and not _is_young(known.get(key), now):
            new[key] = (one.score.node, entry)
    most = _find_most(rules, nodes, now - since if since else QUIET)
    waves = {name for name in records if _count_causes(new.values(), name) > most}
    demotions = [_demote(records[name], most, new.values()) for name in records if name in waves]
    entries = [
        (node, replace(entry, stage="observe") if entry.rule in waves else entry) for node, entry in new.values()
    ]
    return OpenedWarnings(tuple(entries), tuple(one for one in demotions if one))


def _is_young(known: TrendWarning | None, now: datetime) -> bool:
    return known is not None and (known.closed is None or now - known.at < QUIET)


def _make_entry(one: ChangeWarning, record: RuleRecord, now: datetime) -> TrendWarnedEntry:
    score, forecast = one.score, one.forecast
    return TrendWarnedEntry(
        warning=derive_id("trend", score.node, score.subject, score.serial, record.rule, format_time(now)),
        rule=record.rule,
        revision=record.revision,
        stage=record.stage,
        place=score.subject,
        serial=score.serial,
        name=score.name,
        unit=score.unit,
        before=score.own,
        now=score.recent,
        z=round(score.worse, 2),
        peers=score.peers - 1,
        limit=one.limit,
        rate_days=forecast.line if forecast else None,
        days=(forecast and forecast.days) or (),
        group=one.group,
        p=find_chance(record),
        reason=one.because,
    )


def _find_most(rules: TrendRules, nodes: int, span: timedelta) -> float:
    """Return how many causes a rule may name at once, after so long a time."""
    days = max(min(span, QUIET) / timedelta(days=1), 1.0)
    budget = rules.change.alarms_per_1000_node_days * nodes / 1000 * days
    return max(rules.earn.wave_at_least, rules.earn.wave_factor * budget)


def _count_causes(new: Iterable[tuple[str, TrendWarnedEntry]], rule: str) -> int:
    """Return how many causes a rule names: a group that explains several parts is one."""
    own = [entry for _, entry in new if entry.rule == rule]
    return len({entry.group for entry in own if entry.group}) + sum(not entry.group for entry in own)


def _demote(record: RuleRecord, most: float, new: Iterable[tuple[str, TrendWarnedEntry]]) -> TrendDemotedEntry | None:
    if record.stage != "record":
        return None
    causes = _count_causes(new, record.rule)
    reason = f"it named {causes} causes at once, and {most:.0f} is the most: a wave has one cause"
    return TrendDemotedEntry(record.rule, record.revision, reason)
