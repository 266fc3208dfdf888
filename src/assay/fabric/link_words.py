"""Link rates and port states: reads the words and bit fields that fabric tools print.

A rate is written `4xNDR`: four lanes at NDR speed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from assay.model.specs.fabric.cable import ETHERNET_GBPS, LANE_GBPS

SPEEDS = tuple(LANE_GBPS)
"""Lane speeds, slowest first (InfiniBand Architecture Specification, link speeds)."""
SPEED_BY_LANE_GBPS: Mapping[str, str] = {
    "2.5": "SDR",
    "5": "DDR",
    "10": "QDR",
    "14": "FDR",
    "14.0625": "FDR",
    "25": "EDR",
    "25.78125": "EDR",
    "50": "HDR",
    "53.125": "HDR",
    "100": "NDR",
    "106.25": "NDR",
    "200": "XDR",
    "212.5": "XDR",
    "FDR10": "FDR10",
}
"""The speed by Gbit/s of one lane as tools print it, with and without line coding."""
SPEED_BITS: Mapping[int, str] = {
    1: "SDR",
    2: "DDR",
    4: "QDR",
    0x100: "FDR",
    0x200: "EDR",
    0x400: "HDR",
    0x800: "NDR",
    0x1000: "XDR",
    0x10000: "FDR10",
}
"""ibdiagnet's bit field: LinkSpeedActive in the low byte, LinkSpeedExtActive in the next. The fastest bit counts."""
WIDTH_BITS: Mapping[int, int] = {1: 1, 2: 4, 4: 8, 8: 12, 16: 2}
"""PortInfo's LinkWidthActive (InfiniBand Architecture Specification)."""
STATES: Mapping[str, str] = {
    "active": "active",
    "act": "active",
    "initialize": "init",
    "initializing": "init",
    "init": "init",
    "ini": "init",
    "armed": "armed",
    "arm": "armed",
    "down": "down",
    "dow": "down",
    "disable": "disabled",
    "disabled": "disabled",
    "polling": "down",
}
STATE_NUMBERS = {1: "down", 2: "init", 3: "armed", 4: "active"}
PHYSICAL_NUMBERS = {
    1: "sleep",
    2: "polling",
    3: "disabled",
    4: "training",
    5: "linkup",
    6: "recovery",
    7: "phytest",
}
"""PortInfo's PortState and PortPhysicalState."""


class LaneRate(NamedTuple):
    """The number of lanes, and the rank of their speed in `SPEEDS`; for Ethernet, Gb/s and `ETHERNET`."""

    width: int
    speed: int


ETHERNET = -1


@lru_cache(64)
def parse_rate(text: str) -> LaneRate | None:
    """Return the rate in a text such as `4xNDR` or `400G`, None for a text that is no rate."""
    if text.endswith("G"):
        return LaneRate(int(text[:-1]), ETHERNET) if text[:-1] in map(str, ETHERNET_GBPS) else None
    match = re.fullmatch(r"(1|2|4|8|12)x([A-Z0-9]+)", text)
    return LaneRate(int(match[1]), SPEEDS.index(match[2])) if match and match[2] in SPEEDS else None


def is_slower(seen: str, designed: str) -> bool:
    """Return whether a link has fewer or slower lanes than designed. False where either text is no rate."""
    link, design = parse_rate(seen), parse_rate(designed)
    return bool(link and design and (link.width < design.width or link.speed < design.speed))


def find_slowest_rate(first: str, second: str) -> str:
    """Return the smaller number of lanes at the slower speed of two rates, "" where one of them is no rate."""
    a, b = parse_rate(first), parse_rate(second)
    if a and b and ETHERNET in (a.speed, b.speed):
        return f"{min(a.width, b.width)}G" if a.speed == b.speed else ""
    return f"{min(a.width, b.width)}x{SPEEDS[min(a.speed, b.speed)]}" if a and b else ""


def rate_from_lanes(width: str, lane: str) -> str:
    """Return `4xHDR` for `4X` and `53.125` Gbit/s, empty where the two are no rate."""
    digits = re.sub(r"(?<=\.\d)0+$|\.0$", "", lane.strip())
    rate = f"{width.strip().lower()}{SPEED_BY_LANE_GBPS.get(digits, '')}"
    return rate if parse_rate(rate) else ""


def rate_from_bits(width: int, speed: int) -> str:
    """Return the rate in two PortInfo bit fields, empty where they hold none."""
    names = [name for bit, name in SPEED_BITS.items() if speed & bit]
    if not names or width not in WIDTH_BITS:
        return ""
    rate = f"{WIDTH_BITS[width]}x{max(names, key=SPEEDS.index)}"
    return rate if parse_rate(rate) else ""


def parse_port_state(logical: str, physical: str) -> tuple[str, str]:
    """Return (state, physical) as PortFacts holds them. Only the physical state shows that a port is disabled."""
    physical = re.sub(r"[\s_]+", "", physical.lower())
    state = STATES.get(logical.strip().lower(), "")
    return ("disabled" if physical.startswith("disable") else state), physical
