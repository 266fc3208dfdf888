"""Link rates as tools write them: `4xNDR` is four lanes at NDR speed."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from assay.model.speed import LANE_GBPS

SPEEDS = tuple(LANE_GBPS)
"""Lane speeds, slowest first (InfiniBand Architecture Specification, link speeds)."""


class Rate(NamedTuple):
    """Lanes and the rank of their speed in `SPEEDS`."""

    width: int
    speed: int


@lru_cache(64)
def rate_of(text: str) -> Rate | None:
    """Return the rate that `4xNDR` writes, None for a text that is no rate."""
    found = re.fullmatch(r"(1|2|4|8|12)x([A-Z0-9]+)", text)
    return Rate(int(found[1]), SPEEDS.index(found[2])) if found and found[2] in SPEEDS else None


def slower(seen: str, designed: str) -> bool:
    """Say whether a link runs with fewer lanes or slower lanes than designed. Other texts are not judged."""
    one, other = rate_of(seen), rate_of(designed)
    return bool(one and other and (one.width < other.width or one.speed < other.speed))


def slowest(one: str, other: str) -> str:
    """Return the fewer lanes and the slower speed of two rates, "" where one of them is no rate."""
    a, b = rate_of(one), rate_of(other)
    return f"{min(a.width, b.width)}x{SPEEDS[min(a.speed, b.speed)]}" if a and b else ""
