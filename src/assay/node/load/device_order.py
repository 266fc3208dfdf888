"""The order of a run's devices: as they are, as the command says, or another one each time."""

from __future__ import annotations

import random
from collections.abc import Sequence

SHUFFLED = (-1,)
"""Another order in each run: then a wrong result follows its GPU, and not its place in the run."""


def parse_order(text: str) -> Sequence[int]:
    """Return the order that `3,1,0,2` or `shuffled` says; empty for "". Raises ValueError for anything else."""
    if text == "shuffled":
        return SHUFFLED
    try:
        return [int(place) for place in text.split(",")] if text else []
    except ValueError:
        raise ValueError(f"--order {text}: write places, such as 3,1,0,2, or shuffled") from None


def settle_order(order: Sequence[int], count: int) -> list[int]:
    """Return the places of all devices in the order of the run. Raises ValueError if the order is none of them."""
    if tuple(order) == SHUFFLED:
        return random.SystemRandom().sample(range(count), count)
    if order and sorted(order) != list(range(count)):
        raise ValueError(f"--order {','.join(map(str, order))}: name each of the devices 0 to {count - 1} once")
    return list(order) or list(range(count))
