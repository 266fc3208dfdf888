"""What came of a warning: right, wrong, overtaken, or nobody can tell. Pure.

Right: a fault of hardware that its rule names, on the same part, after the day of the warning and within the horizon.
Overtaken: the part was exchanged, moved, repaired or got new firmware first, or its node left service for another
reason. Wrong: none of it, and the part was measured on most days of the horizon.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple

from assay.decide.state.part_holders import PartHolder
from assay.decide.trends.fleet_tables import PartFailure
from assay.decide.trends.warning_history import TrendWarning
from assay.model.entries.trend_entries import TrendClosedEntry, WarningOutcome
from assay.model.specs.trend_rules import TrendRule
from assay.model.timestamps import parse_time

FIRST_DAY = timedelta(days=1)
"""A failure on the day of the warning was not foreseen."""
MEASURED_SHARE = 0.8
"""The share of the horizon's days with values that a part needs before a warning of it counts as wrong."""
LONG_ABSENCE = timedelta(days=1)


class ServiceAbsenceSpan(NamedTuple):
    """A time in which a node was out of service. `ended` is None while it lasts."""

    began: datetime
    ended: datetime | None


@dataclass(frozen=True, slots=True)
class PartFates:
    """What became of parts: failures of hardware, holders and absences by node, and measured days by warning."""

    failures: Sequence[PartFailure] = ()
    holders: Mapping[str, Sequence[PartHolder]] = field(default_factory=dict)
    absences: Mapping[str, Sequence[ServiceAbsenceSpan]] = field(default_factory=dict)
    measured_days: Mapping[str, int] = field(default_factory=dict)

    def find_serial(self, node: str, place: str, at: datetime) -> str:
        """Return the serial number of the part at a place at that time, "" if nobody knows."""
        held = (one for one in self.holders.get(node, ()) if one.place == place)
        return next((one.serial for one in held if _holds(one, at)), "")


class _Event(NamedTuple):
    at: datetime
    outcome: WarningOutcome
    reason: str
    fault: str = ""


def close_warning(
    warning: TrendWarning, rule: TrendRule | None, fates: PartFates, now: datetime
) -> TrendClosedEntry | None:
    """Return what came of an open warning; None while nobody knows. `rule` is None if the fleet has it no more."""
    if rule is None:
        return _close(warning, _Event(now, "cannot tell", "its rule is no longer in specs/trends/"))
    end = warning.at + timedelta(days=rule.horizon_days)
    events = [
        *(one for one in _list_failures(warning, rule, fates) if one.at <= min(now, end)),
        *(one for one in _list_interventions(warning, fates, now) if one.at <= min(now, end)),
    ]
    if events:
        return _close(warning, min(events))
    if now < end:
        return None
    measured = fates.measured_days.get(warning.content.warning, 0)
    if measured < MEASURED_SHARE * rule.horizon_days:
        reason = f"measured on {measured} of {rule.horizon_days} days only"
        return _close(warning, _Event(end, "cannot tell", reason))
    return _close(warning, _Event(end, "wrong", f"nothing failed in {rule.horizon_days} days"))


def _list_failures(warning: TrendWarning, rule: TrendRule, fates: PartFates) -> list[_Event]:
    one, events = warning.content, []
    for failure in fates.failures:
        if failure.at < warning.at or not _is_of_part(warning, failure, fates):
            continue
        if not rule.is_proved_by(failure.fault):
            continue
        name = f"{failure.fault} on {failure.node}{f'/{failure.place}' if failure.place else ''}"
        if failure.at < warning.at + FIRST_DAY:
            reason = f"{name}, on the day of the warning: too late to act"
            events.append(_Event(failure.at, "cannot tell", reason, failure.ident))
        else:
            events.append(_Event(failure.at, "right", f"{name}: {one.name} had got worse", failure.ident))
    return events


def _is_of_part(warning: TrendWarning, failure: PartFailure, fates: PartFates) -> bool:
    """Whether a failure is of the warned part, by its serial number where that is known. A node has all its parts."""
    one = warning.content
    if failure.node == warning.node and not one.place:
        return True
    serial = fates.find_serial(failure.node, failure.place, failure.at)
    if one.serial and serial:
        return serial == one.serial
    return (failure.node, failure.place) == (warning.node, one.place)


def _list_interventions(warning: TrendWarning, fates: PartFates, now: datetime) -> list[_Event]:
    """Return when somebody worked on the part or its node."""
    one = warning.content
    held = (part for part in fates.holders.get(warning.node, ()) if part.place == one.place)
    ends = [parse_time(part.until) for part in held if part.until and _holds(part, warning.at)]
    events = [_Event(at, "overtaken", "the part was exchanged, moved, repaired or got new firmware") for at in ends]
    for absence in fates.absences.get(warning.node, ()):
        if absence.began > warning.at and (absence.ended or now) - absence.began > LONG_ABSENCE:
            events.append(_Event(absence.began, "overtaken", "its node left service for another reason"))
    return events


def _holds(one: PartHolder, at: datetime) -> bool:
    return parse_time(one.since) <= at and (not one.until or at < parse_time(one.until))


def _close(warning: TrendWarning, event: _Event) -> TrendClosedEntry:
    lead = (event.at - warning.at) / timedelta(days=1) if event.outcome == "right" else None
    content = warning.content
    return TrendClosedEntry(content.warning, content.rule, event.outcome, event.reason, event.fault, lead)
