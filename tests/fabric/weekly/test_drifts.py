"""A drift is told where it is more than the scatter of its readings, however short the week."""

from __future__ import annotations

from random import Random

import pytest

from assay.fabric.weekly.aggregation import make_trend
from assay.fabric.weekly.compared_readings import READINGS, judge_drifts
from assay.fabric.weekly.findings import find_drifts
from assay.fabric.weekly.week import PortWeek, PortWeekSummary
from assay.model.specs.fabric.cable import CableEnd
from assay.model.specs.node.node_spec import MetricLimit

LIGHT, HEAT = (next(one for one in READINGS if one.key == key) for key in ("light", "temperature"))
LIMITS = {
    "rx_power_drift": MetricLimit(value=0.5, unit="dB", source="a test"),
    "module_temperature_drift": MetricLimit(value=5.0, unit="°C", source="a test"),
}
FAR = CableEnd("spine", "0x00000000000000ff", 1)
HOUR = 3600.0


def drifting(rows: list[dict[str, list[float]]], step_h: float) -> list[str]:
    """Return the texts of all drifts of ports with these readings, one scan each `step_h` hours."""
    scans = len(rows[0]["light"])
    times = [scan * step_h * HOUR for scan in range(scans)]
    ports = []
    for number, row in enumerate(rows):
        trends = {one.key: make_trend(times, row[one.key], one) for one in (LIGHT, HEAT)}
        summary = PortWeekSummary(trends={key: trend for key, trend in trends.items() if trend})
        ports.append(PortWeek(CableEnd("leaf", f"0x{number:016x}", 1), FAR, None, summary, 160.0))
    drifts = judge_drifts(ports, (scans - 1) * step_h)
    return [finding.says for finding in find_drifts(ports, drifts, LIMITS)]


def healthy(random: Random, scans: int) -> dict[str, list[float]]:
    return {
        "light": [round(random.gauss(0.8, 0.1), 1) for _ in range(scans)],
        "temperature": [float(round(random.gauss(47.3, 0.6))) for _ in range(scans)],
    }


@pytest.mark.parametrize(("scans", "step_h"), [(8, 7), (9, 6), (12, 6), (28, 6)])
def test_healthy_scatter_is_no_drift_however_short_the_week(scans, step_h):
    alarms = 0
    for seed in range(20):
        random = Random(seed)
        alarms += bool(drifting([healthy(random, scans) for _ in range(300)], step_h))
    assert alarms <= 2


@pytest.mark.parametrize("loss", [0.8, 1.2])
def test_light_that_creeps_through_a_whole_week_is_told(loss):
    random = Random(3)
    rows = [healthy(random, 28) for _ in range(300)]
    rows[7]["light"] = [round(light - loss * scan / 27, 1) for scan, light in enumerate(rows[7]["light"])]
    (text,) = drifting(rows, 6)
    assert text.startswith("received light from ")


def test_a_clear_drift_of_two_days_is_told():
    random = Random(4)
    rows = [healthy(random, 12) for _ in range(300)]
    rows[7]["light"] = [round(0.8 - 0.2 * scan, 1) for scan in range(12)]
    assert len(drifting(rows, 6)) == 1


def test_one_wrong_reading_hides_no_drift():
    random = Random(5)
    rows = [healthy(random, 28) for _ in range(300)]
    rows[7]["light"] = [round(light - 1.2 * scan / 27, 1) for scan, light in enumerate(rows[7]["light"])]
    rows[7]["light"][11] = -30.0
    assert len(drifting(rows, 6)) == 1


def test_a_change_within_one_step_of_the_reading_is_none():
    """46 to 47 °C within 15 h would be 5.6 °C a week."""
    rows = [{"light": [0.8] * 12, "temperature": [46.0] * 6 + [47.0] * 6} for _ in range(50)]
    assert drifting(rows, 2.5) == []
