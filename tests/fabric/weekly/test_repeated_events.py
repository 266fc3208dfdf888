"""A link that goes down once before every scan is told; what all links do now and then is not."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest

from assay.fabric.weekly.evaluation import find_repeated_events
from assay.fabric.weekly.week import PortWeek, PortWeekSummary
from assay.model.peer_statistics import compute_tail, estimate_beta
from assay.model.specs.fabric.cable import CableEnd
from assay.model.specs.node.node_spec import MetricLimit

SCANS = 27
LIMITS = {"chance": MetricLimit(value=0.1, unit="%", source="a test")}


def week(counts, key="down_scans"):
    ends = [CableEnd(f"leaf-{n // 32}", f"0x{n // 32:016x}", n % 32 + 1) for n in range(len(counts))]
    far = CableEnd("spine", "0x00000000000000ff", 1)
    return [PortWeek(end, far, None, PortWeekSummary(**{key: count}), 160.0)
            for end, count in zip(ends, counts, strict=True)]  # fmt: skip


@pytest.mark.parametrize("key", ["down_scans", "error_scans"])
def test_one_that_goes_down_before_each_scan_is_told_where_2311_never_do(key):
    (one,) = find_repeated_events(week([0] * 1000 + [SCANS] + [0] * 1311, key), SCANS, LIMITS)
    assert (one.port.end.device, one.what, one.value) == ("leaf-31", key, SCANS)
    assert "before 27 of 27 scans, where 2311 ports between switches have 0" in one.says


def test_several_odd_ones_do_not_hide_each_other():
    assert len(list(find_repeated_events(week([0] * 500 + [20] * 8), SCANS, LIMITS))) == 8


def test_what_all_links_do_is_not_told():
    assert list(find_repeated_events(week([SCANS] * 40), SCANS, LIMITS)) == []
    assert list(find_repeated_events(week([3] * 20 + [4] * 20), SCANS, LIMITS)) == []


def test_one_event_among_thousands_of_quiet_ports_is_no_pattern():
    assert list(find_repeated_events(week([0] * 2000 + [1]), SCANS, LIMITS)) == []


@pytest.mark.parametrize("rate", [0.0005, 0.01, 0.2])
def test_quiet_weeks_keep_the_budget_of_false_alarms(rate):
    random = Random(7)
    alarms = 0
    for _ in range(60):
        own = [random.betavariate(4, 4 / rate) if rate > 0.001 else rate for _ in range(600)]
        counts = [sum(random.random() < p for _ in range(SCANS)) for p in own]
        alarms += bool(list(find_repeated_events(week(counts), SCANS, LIMITS)))
    assert alarms <= 2


def test_too_few_peers_or_no_limit_judge_nothing():
    assert list(find_repeated_events(week([SCANS, 0, 0]), SCANS, LIMITS)) == []
    assert list(find_repeated_events(week([0] * 99 + [SCANS]), SCANS, {})) == []


def test_the_tail_is_a_probability_that_falls():
    alpha, beta = estimate_beta([0, 1, 0, 2, 0, 0, 1, 0], SCANS)
    tails = [compute_tail(count, SCANS, alpha, beta) for count in range(SCANS + 1)]
    assert tails[0] == pytest.approx(1.0)
    assert all(a > b > 0 for a, b in pairwise(tails))
