"""Judges how much readings drift: a drift counts if it is more than the scatter of the readings and than their step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from assay.fabric.weekly.compared_readings import READINGS, ComparedReading
from assay.fabric.weekly.false_alarms import DRIFT_BUDGET, find_student_bound
from assay.fabric.weekly.week import DAYS, PortWeek, ReadingTrend
from assay.model.fabric.ports_and_cables import PortId

HOURS_A_WEEK = DAYS * 24
Drifts = Mapping[tuple[PortId, str], float]
"""How far each port's reading drifts in a week, by port and key of the reading; positive where it gets worse."""


def judge_drifts(ports: Sequence[PortWeek], hours: float) -> Drifts:
    """Return the drift of each reading over a week of `hours`, 0 where it is no more than noise."""
    trends = [
        (port.end.port_id, reading, trend)
        for port in ports
        for reading in READINGS
        if (trend := port.summary.trends.get(reading.key)) and trend.per_week is not None
    ]
    chance = DRIFT_BUDGET / len(trends) if trends else 1.0
    return {
        (port, reading.key): worse if worse <= 0 or _is_sure(reading, trend, worse, chance, hours) else 0.0
        for port, reading, trend in trends
        for worse in [(trend.per_week or 0.0) * reading.worse]
    }


def _is_sure(reading: ComparedReading, trend: ReadingTrend, worse: float, chance: float, hours: float) -> bool:
    """Return whether a drift is more than scatter, and what was seen of it more than one step of the reading."""
    if worse * min(hours / HOURS_A_WEEK, 1.0) <= reading.resolution:
        return False
    return worse > trend.noise * find_student_bound(max(trend.scans - 3, 1), chance)
