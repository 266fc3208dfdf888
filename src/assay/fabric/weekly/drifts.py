"""Judges how much readings drift: a drift counts if it is more than the scatter of the readings and than their step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from assay.fabric.weekly.compared_readings import READINGS, ComparedReading
from assay.fabric.weekly.false_alarms import DRIFT_BUDGET, find_student_bound
from assay.fabric.weekly.week import DAYS, PortWeek, ReadingTrend
from assay.model.specs.fabric.ports_and_cables import PortId

HOURS_A_WEEK = DAYS * 24
READING_OF_KEY = {reading.key: reading for reading in READINGS}
Drifts = Mapping[tuple[PortId, str], float]
"""How much each reading gets worse in a week, by port and key of the reading; those that do not are left out."""


def judge_drifts(ports: Sequence[PortWeek], hours: float) -> Drifts:
    """Return each reading that gets worse by more than noise, over a week of `hours`."""
    trends, rising = 0, []
    for port in ports:
        for key, trend in port.summary.trends.items():
            if trend.per_week is not None:
                trends += 1
                if (worse := trend.per_week * READING_OF_KEY[key].worse) > 0:
                    rising.append((port.end.port_id, key, trend, worse))
    chance = DRIFT_BUDGET / max(trends, 1)
    return {
        (port, key): worse
        for port, key, trend, worse in rising
        if _is_sure(READING_OF_KEY[key], trend, worse, chance, hours)
    }


def _is_sure(reading: ComparedReading, trend: ReadingTrend, worse: float, chance: float, hours: float) -> bool:
    """Return whether a drift is more than scatter, and what was seen of it more than one step of the reading."""
    if worse * min(hours / HOURS_A_WEEK, 1.0) <= reading.resolution:
        return False
    return worse > trend.noise * find_student_bound(max(trend.scans - 3, 1), chance)
