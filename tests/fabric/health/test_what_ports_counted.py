"""What a port counted between two scans: growth, counters that stopped, counters that were cleared."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.fabric.discovery import CLASSIC_COUNTER_MAX, PortFacts, find_saturated_counters
from assay.fabric.health.counters import (
    DOWNED,
    SYMBOL,
    CounterGrowth,
    count_unexplained_downs,
    find_bit_error_rate,
    find_judged_ratio,
    has_booted_between,
    measure_counter_growth,
    measure_port_growth,
)
from assay.model.specs.fabric.cable import PortId

PORT = PortId("0x000000000000a000", 1)
NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
WIDTHS = {"LocalLinkIntegrityErrors": 15, "LinkDownedCounter": 255, "SymbolErrorCounter": 65535}


def facts(rate: str = "4xNDR", **counters: int) -> PortFacts:
    return PortFacts(PORT, rate=rate, counters=counters, saturated=find_saturated_counters(counters))


@given(st.integers(0, 65534), st.integers(0, 65534))
def test_a_counter_grew_by_the_difference_or_was_cleared(before, after):
    seen = measure_counter_growth(before, after)
    assert seen == (
        CounterGrowth(after - before) if after >= before else CounterGrowth(after, at_least=True, reset=True)
    )


@pytest.mark.parametrize(("name", "end"), WIDTHS.items())
def test_a_counter_at_its_end_says_at_least(name, end):
    assert CLASSIC_COUNTER_MAX[name] == end
    seen = measure_port_growth(facts(**{name: 3}), facts(**{name: end}), 3600).find_growth(name)
    assert (str(seen), seen.stuck) == (f"at least {end - 3}", False)


@pytest.mark.parametrize(("name", "end"), WIDTHS.items())
def test_a_counter_that_stood_at_its_end_before_can_tell_nothing_more(name, end):
    assert measure_port_growth(facts(**{name: end}), facts(**{name: end}), 3600).find_growth(name).stuck


def test_a_counter_that_was_cleared_counts_since_then():
    seen = measure_port_growth(facts(SymbolErrorCounter=900), facts(SymbolErrorCounter=7), 3600).find_growth(SYMBOL)
    assert str(seen) == "at least 7 since it was cleared"


def test_a_counter_that_a_tool_leaves_out_is_zero_there():
    assert measure_port_growth(facts(), facts(SymbolErrorCounter=4), 3600).find_growth(SYMBOL) == CounterGrowth(4)
    assert measure_port_growth(facts(SymbolErrorCounter=4), facts(), 3600).find_growth(SYMBOL) == CounterGrowth(
        0, at_least=True, reset=True
    )
    assert measure_port_growth(None, facts(SymbolErrorCounter=4), 3600).find_growth(SYMBOL) == CounterGrowth(4)


@pytest.mark.parametrize(("seconds", "an_hour"), [(4 * 3600, 30.0), (3600, 120.0), (60, 120.0), (0, 120.0)])
def test_a_rate_is_never_more_than_what_was_counted(seconds, an_hour):
    assert measure_port_growth(facts(), facts(SymbolErrorCounter=120), seconds).per_hour(SYMBOL) == an_hour


@pytest.mark.parametrize(
    ("rate", "kind"),
    [
        ("4xEDR", "effective"),
        ("4xHDR", "symbol"),
        ("4xNDR", "symbol"),
        ("8xXDR", "symbol"),
        ("4xFDR", "effective"),
        ("", None),
    ],
)
def test_edr_is_judged_by_its_effective_errors_and_what_is_faster_by_symbol_errors(rate, kind):
    assert find_judged_ratio(rate) == kind
    read = find_bit_error_rate(PortFacts(PORT, rate=rate, ber={"symbol": 1e-16, "effective": 1e-13}))
    assert (read.kind if read else None) == kind


def test_a_ratio_that_nobody_read_is_none_and_never_zero():
    assert find_bit_error_rate(PortFacts(PORT, rate="4xNDR", ber={"effective": 1e-16})) is None
    assert find_bit_error_rate(PortFacts(PORT), "4xNDR") is None


@pytest.mark.parametrize(("count", "boots", "unexplained"), [(5, 0, 5), (5, 1, 3), (2, 1, 0), (1, 1, 0), (0, 1, 0)])
def test_a_reboot_explains_two_downs_and_never_more_than_there_were(count, boots, unexplained):
    growth = measure_port_growth(facts(), facts(**{DOWNED: count}), 3600)
    assert count_unexplained_downs(growth, boots) == unexplained


@pytest.mark.parametrize(("uptime_s", "booted"), [(60, True), (3 * 3600, True), (5 * 3600, False)])
def test_a_node_booted_between_two_scans_when_its_uptime_says_so(uptime_s, booted):
    start = NOON - timedelta(hours=4)
    assert has_booted_between(start, NOON, NOON, uptime_s) is booted
    assert not has_booted_between(start, NOON, NOON + timedelta(hours=1), 60), "it booted after the second scan"
