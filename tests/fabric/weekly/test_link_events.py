"""What a fabric manager saw of links going down, counted once and without reboots."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from assay.fabric.discovery import FabricEvent
from assay.fabric.weekly.aggregation import find_link_downs
from assay.model.specs.fabric.cable import PortId

HERE, THERE = PortId("0x0000000000005000", 3), PortId("0x000000000000a000", 1)
NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


def down(at: datetime, *ports: PortId, code: int = 329) -> FabricEvent:
    return FabricEvent(
        f"{at:%Y-%m-%d %H:%M:%S.%f}", code, "WARNING", "Topology", "Link went down", ports or (HERE, THERE)
    )


def test_both_ends_are_told_and_what_two_scans_read_counts_once():
    event = down(NOON)
    assert find_link_downs([event, event]) == {HERE: [NOON], THERE: [NOON]}


def test_a_link_that_came_up_is_no_down_and_a_time_that_is_none_is_left_out():
    assert find_link_downs([down(NOON, code=328), FabricEvent("at noon", 329, "", "", "", (HERE,))]) == {}


def test_a_reboot_of_a_switch_is_set_aside_and_the_flaps_around_it_stay():
    reboot = [down(NOON + timedelta(milliseconds=port), PortId(HERE.guid, port)) for port in range(1, 65)]
    flaps = [down(NOON + timedelta(minutes=minute), HERE) for minute in (5, 9)]
    assert find_link_downs([*reboot, *flaps]) == {HERE: [NOON + timedelta(minutes=5), NOON + timedelta(minutes=9)]}
