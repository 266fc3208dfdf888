"""Measures how nodes stood to customers: out, cordoned, or serving, with which open fault, and for how long.

The simulator tells every change as it happens. Each moment of each node is in exactly one condition.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal

from assay.model.faults.fault_record import FaultSeverity

ServiceStanding = Literal["serving", "cordoned_idle", "out", "not_yet"]
"""`cordoned_idle`: it would serve, but is closed to new jobs and has none. `not_yet`: it never served so far."""
JOB_SEVERITIES: tuple[FaultSeverity, ...] = ("catastrophic", "degraded")
"""The severities that are an exposure: what is only informational hurts no job."""


@dataclass(frozen=True, slots=True)
class NodeCondition:
    """How a node stands at a moment. `severity` is that of its worst open fault, "" for none.

    `is_used`: the history says that customers use it.
    """

    standing: ServiceStanding
    severity: FaultSeverity | Literal[""] = ""
    is_cordoned: bool = False
    is_used: bool = False

    @property
    def is_exposed(self) -> bool:
        """Whether jobs can meet a fault here."""
        return self.standing == "serving" and self.severity in JOB_SEVERITIES


@dataclass(frozen=True, slots=True)
class ExposedSpan:
    """A node that served from `begin` to `end` with an open fault; one moment long where it was answered at once.

    `open_until`: until then, jobs could start on it. `is_first`: just before, it had no such fault.
    """

    condition: NodeCondition
    begin: datetime
    end: datetime
    open_until: datetime
    is_first: bool


@dataclass(frozen=True)
class Exposure:
    """The time that nodes spent in each condition, summed, with the spans in which jobs could meet a fault.

    `ended`: how each node stood whose jobs automation ended, until then.
    """

    durations: Mapping[NodeCondition, timedelta]
    spans: tuple[ExposedSpan, ...]
    ended: tuple[NodeCondition, ...]

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
    """Where a node stands since when, and until when jobs could start on it; None where they still can."""

    condition: NodeCondition
    since: datetime
    open_until: datetime | None = None
    has_served: bool = False
    is_first: bool = True


@dataclass(slots=True)
class ExposureMeter:
    """Sums the conditions of nodes while a replay goes on."""

    _tracks: dict[str, _NodeTrack] = field(default_factory=dict)
    _durations: dict[NodeCondition, timedelta] = field(default_factory=lambda: defaultdict(timedelta))
    _spans: list[ExposedSpan] = field(default_factory=list)
    _ended: list[NodeCondition] = field(default_factory=list)

    def observe(self, node: str, condition: NodeCondition, now: datetime) -> bool:
        """Take in how a node stands from now on; return whether that changes."""
        track = self._tracks.get(node)
        if track is None:
            track = self._tracks[node] = _NodeTrack(condition, now)
        elif condition == track.condition:
            return False
        else:
            self._durations[_name_standing(track)] += now - track.since
            self._spans += _make_spans(track, now)
        _open_or_close(track, condition, now)
        track.is_first = not (track.condition.is_exposed and condition.is_exposed)
        track.condition, track.since = condition, now
        return True

    def end_jobs(self, node: str) -> None:
        """Note that automation ends the jobs of a node, which has not left service yet."""
        track = self._tracks[node]
        if track.condition.standing == "serving":
            self._ended.append(track.condition)

    def sum_up(self, until: datetime) -> Exposure:
        """Return everything up to a moment, at or after the last change."""
        durations, spans = dict(self._durations), list(self._spans)
        for track in self._tracks.values():
            condition = _name_standing(track)
            lasted = max(until - track.since, timedelta())
            durations[condition] = durations.get(condition, timedelta()) + lasted
            spans += _make_spans(track, max(until, track.since))
        return Exposure(durations, tuple(spans), tuple(self._ended))


def _open_or_close(track: _NodeTrack, condition: NodeCondition, now: datetime) -> None:
    """Note whether jobs may start on the node from now on. One that never closed has been open since it came."""
    is_open = condition.standing == "serving" and not condition.is_cordoned
    if not is_open and track.open_until is None:
        track.open_until = now
    elif is_open and track.open_until is not None:
        track.open_until = None
    track.has_served = track.has_served or condition.standing in ("serving", "cordoned_idle")


def _name_standing(track: _NodeTrack) -> NodeCondition:
    if track.condition.standing == "out" and not track.has_served:
        return NodeCondition("not_yet")
    return track.condition


def _make_spans(track: _NodeTrack, end: datetime) -> Iterator[ExposedSpan]:
    if track.condition.is_exposed:
        yield ExposedSpan(track.condition, track.since, end, track.open_until or end, track.is_first)


def find_worst_severity(severities: Collection[FaultSeverity]) -> FaultSeverity | Literal[""]:
    """Return the worst of these severities, "" for none."""
    for severity in ("catastrophic", "degraded", "informational"):
        if severity in severities:
            return severity
    return ""
