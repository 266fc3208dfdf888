"""Measures how nodes stood to customers: out, cordoned, or serving, with which open fault, and for how long.

The simulator tells every change as it happens. Each moment of each node is in exactly one condition.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal

from assay.model.facts import frozen
from assay.model.faults.fault_record import FaultSeverity

ServiceStanding = Literal["serving", "cordoned_idle", "out", "not_yet"]
"""`cordoned_idle`: it would serve, but is closed to new jobs and has none. `not_yet`: it never served so far."""


@frozen
class NodeCondition:
    """How a node stands at a moment. `severity` is that of its worst open fault, "" for none."""

    standing: ServiceStanding
    severity: FaultSeverity | Literal[""] = ""
    is_cordoned: bool = False


@dataclass(frozen=True)
class Exposure:
    """The time that nodes spent in each condition, summed."""

    durations: Mapping[NodeCondition, timedelta]

    def sum_hours(
        self, *standings: ServiceStanding, severity: str | None = None, cordoned: bool | None = None
    ) -> float:
        """Return the node-hours in these standings (none named: in any), of one severity, cordoned or not."""
        chosen = (
            lasted
            for condition, lasted in self.durations.items()
            if (not standings or condition.standing in standings)
            and severity in (None, condition.severity)
            and cordoned in (None, condition.is_cordoned)
        )
        return sum(chosen, timedelta()) / timedelta(hours=1)


@dataclass(slots=True)
class _NodeTrack:
    """How a node stands since when, and whether it has served by now."""

    condition: NodeCondition
    since: datetime
    has_served: bool = False


@dataclass(slots=True)
class ExposureMeter:
    """Sums the conditions of nodes while a replay goes on."""

    _tracks: dict[str, _NodeTrack] = field(default_factory=dict)
    _durations: dict[NodeCondition, timedelta] = field(default_factory=lambda: defaultdict(timedelta))

    def observe(self, node: str, condition: NodeCondition, now: datetime) -> bool:
        """Take in how a node stands from now on; return whether that changes."""
        track = self._tracks.get(node)
        if track is None:
            track = self._tracks[node] = _NodeTrack(condition, now)
        elif condition == track.condition:
            return False
        else:
            self._durations[_name_standing(track)] += now - track.since
        track.has_served = track.has_served or condition.standing in ("serving", "cordoned_idle")
        track.condition, track.since = condition, now
        return True

    def sum_up(self, until: datetime) -> Exposure:
        """Return everything up to a moment, at or after the last change."""
        durations = dict(self._durations)
        for track in self._tracks.values():
            condition = _name_standing(track)
            lasted = max(until - track.since, timedelta())
            durations[condition] = durations.get(condition, timedelta()) + lasted
        return Exposure(durations)


def _name_standing(track: _NodeTrack) -> NodeCondition:
    if track.condition.standing == "out" and not track.has_served:
        return NodeCondition("not_yet")
    return track.condition


def find_worst_severity(severities: Collection[FaultSeverity]) -> FaultSeverity | Literal[""]:
    """Return the worst of these severities, "" for none."""
    for severity in ("catastrophic", "degraded", "informational"):
        if severity in severities:
            return severity
    return ""
