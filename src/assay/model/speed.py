"""How fast a link of some width and speed is: `4xNDR` is 400 Gb/s."""

from __future__ import annotations

LANE_GBPS = {
    "SDR": 2.5, "DDR": 5, "QDR": 10, "FDR10": 10, "FDR": 14, "EDR": 25, "HDR": 50, "NDR": 100, "XDR": 200,
}  # fmt: skip
"""Gb/s of one lane by its speed, slowest first, as the kernel's `rate` of a port counts them (rate_show in sysfs.c)."""
WIDTHS = (1, 2, 4, 8, 12)
RATE = rf"^({'|'.join(map(str, WIDTHS))})x({'|'.join(LANE_GBPS)})$"


def gbps(rate: str) -> float:
    """Return the Gb/s of a rate."""
    width, _, speed = rate.partition("x")
    return int(width) * LANE_GBPS[speed]


def next_slower(rate: str) -> float:
    """Return the Gb/s of the best link that lacks lanes or speed against a rate; 0 where there is none."""
    width, full = int(rate.partition("x")[0]), gbps(rate)
    every = (lanes * lane for lanes in WIDTHS if lanes <= width for lane in LANE_GBPS.values())
    return max((one for one in every if one < full), default=0)
