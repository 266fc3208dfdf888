"""Healthy weeks rarely name a port, however many ports and groups there are; what is unlike its peers is."""

from __future__ import annotations

from random import Random

import pytest

from assay.fabric.weekly.compared_readings import METRICS, OUTLIER_BUDGET
from assay.fabric.weekly.evaluation import find_repeated_events
from assay.fabric.weekly.findings import find_outliers
from assay.fabric.weekly.peers import compare_with_peers
from assay.fabric.weekly.week import PortWeek, PortWeekSummary, ReadingTrend
from assay.model.peer_statistics import find_group_bound, find_student_bound
from assay.model.specs.fabric.cable import CableEnd
from assay.model.specs.node.node_spec import MetricLimit

LIGHT = next(metric for metric in METRICS if metric.key == "light")
LIMITS = {
    "peer_score": MetricLimit(value=3.5, unit="deviations", source="a test"),
    "chance": MetricLimit(value=0.1, unit="%", source="a test"),
    "rx_power_apart": MetricLimit(value=1.0, unit="dB", source="a test"),
}
SWITCH_PORTS = 48
PARTS = ("SR8", "DR8", "FR8")


def healthy_ports(seed: int, switches: int = 16) -> list[PortWeek]:
    """Light as tools print it: in steps of 0.1 dB, with a deviation of 0.3."""
    random = Random(seed)
    far = CableEnd("spine", "0x00000000000000ff", 1)
    return [
        PortWeek(CableEnd(f"leaf-{n // SWITCH_PORTS}", f"0x{n // SWITCH_PORTS:016x}", n % SWITCH_PORTS + 1), far,
                 n // SWITCH_PORTS % 8, with_light(round(random.gauss(0.8, 0.3), 1), random.choice(PARTS)), 160.0)
        for n in range(switches * SWITCH_PORTS)
    ]  # fmt: skip


def with_light(dbm: float, part: str = "SR8") -> PortWeekSummary:
    return PortWeekSummary(vendor="V", part=part, trends={"light": ReadingTrend(dbm, dbm, dbm)})


def name_outliers(ports: list[PortWeek]) -> list[PortWeek]:
    return [finding.port for finding in find_outliers(compare_with_peers(ports, LIGHT, LIMITS), ports, LIMITS)]


def test_one_of_twenty_healthy_weeks_at_most_names_a_port():
    assert sum(bool(name_outliers(healthy_ports(seed))) for seed in range(60)) <= 3


def test_many_small_groups_name_no_more():
    """Eight ports know their own spread badly: what is far in one of them is usual in the whole fabric."""
    alarms = 0
    for seed in range(60):
        ports = [
            PortWeek(CableEnd(f"leaf-{n // 8}", f"0x{n // 8:016x}", n % 8 + 1), port.far, None, port.summary, 160.0)
            for n, port in enumerate(healthy_ports(seed, switches=4))
        ]
        alarms += bool(name_outliers(ports))
    assert alarms <= 3


@pytest.mark.parametrize("seed", range(8))
def test_what_is_far_below_all_others_is_named_and_nothing_beside_it(seed):
    ports = healthy_ports(100 + seed)
    ports[seed * 90] = PortWeek(ports[seed * 90].end, ports[seed * 90].far, 0, with_light(-1.4), 160.0)
    assert ports[seed * 90] in name_outliers(ports)


def test_a_stricter_score_of_the_design_names_less():
    ports = healthy_ports(7)
    ports[0] = PortWeek(ports[0].end, ports[0].far, 0, with_light(-1.6), 160.0)
    deviations = compare_with_peers(ports, LIGHT, LIMITS)
    strict = {**LIMITS, "peer_score": MetricLimit(value=8.0, unit="deviations", source="a test")}
    assert [finding.port for finding in find_outliers(deviations, ports, LIMITS)] == [ports[0]]
    assert list(find_outliers(deviations, ports, strict)) == []


def test_bounds_grow_with_comparisons_and_shrink_with_members():
    assert find_group_bound(50, 1000, OUTLIER_BUDGET) < find_group_bound(50, 100_000, OUTLIER_BUDGET)
    assert find_group_bound(500, 1000, OUTLIER_BUDGET) < find_group_bound(20, 1000, OUTLIER_BUDGET)


@pytest.mark.parametrize(
    ("freedom", "chance", "known"), [(10, 0.005, 3.169), (10, 0.0005, 4.587), (30, 0.0005, 3.646), (120, 0.005, 2.617)]
)
def test_the_bound_is_that_of_students_tables(freedom, chance, known):
    assert find_student_bound(freedom, chance) == pytest.approx(known, rel=0.02)


def downs(counts: list[int]) -> list[PortWeek]:
    far = CableEnd("spine", "0x00000000000000ff", 1)
    return [PortWeek(CableEnd("leaf", f"0x{n:016x}", 1), far, None, PortWeekSummary(down_scans=count), 160.0)
            for n, count in enumerate(counts)]  # fmt: skip


def test_two_downs_are_chance_where_others_go_down_once():
    assert list(find_repeated_events(downs([0] * 505 + [1] * 5 + [2]), 27, LIMITS)) == []


def test_what_the_peers_do_is_told_with_their_average_and_the_chance_for_the_whole_fabric():
    (one,) = find_repeated_events(downs([0] * 505 + [1] * 5 + [9]), 27, LIMITS)
    assert "9 of 27 scans, where 510 ports between switches have 0.0098 on average (a chance of " in one.says
    assert "any port of a healthy fabric" in one.says
