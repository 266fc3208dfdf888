"""Where a burn-in is at a time: its phase, and whether the load runs, rests or swings. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

TINY_S = 1e-6


@dataclass(frozen=True)
class PhaseTime:
    """A time in a phase: `done_s` of it are over, `left_s` are left. `number` is its place in the plan."""

    phase: Mapping[str, Any]
    number: int
    done_s: float
    left_s: float

    @property
    def name(self) -> str:
        """The name of the phase."""
        return str(self.phase["name"])


def find_phase(plan: Mapping[str, Any], t: float) -> PhaseTime | None:
    """Return the phase at `t` seconds of burn-in, None after the last."""
    start = 0.0
    for number, phase in enumerate(plan["phases"]):
        end = start + phase["seconds"]
        if t < end - TINY_S:
            return PhaseTime(phase, number, t - start, end - t)
        start = end
    return None


def time_with_load(now: PhaseTime, shift: float) -> float:
    """Return for how many seconds the load may run from now on; 0 in the rest of a cycle."""
    cycles: Sequence[float] = now.phase.get("cycles") or ()
    if not cycles:
        return now.left_s
    on_s, off_s = cycles
    position = (now.done_s + shift * (on_s + off_s)) % (on_s + off_s)
    return min(now.left_s, max(0.0, on_s - position))


def is_swung_low(seconds: float, hertz: float, duty: float, shift: float) -> bool:
    """Whether a swing is in its part without load, `seconds` after it began."""
    return hertz > 0 and (seconds * hertz + shift) % 1.0 >= duty


def time_to_edge(seconds: float, hertz: float, duty: float, shift: float) -> float:
    """Return the seconds until a swing changes next."""
    position = (seconds * hertz + shift) % 1.0
    return ((duty if position < duty else 1.0) - position) / hertz
