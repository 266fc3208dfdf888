"""How long a search takes. Rounds are what costs time, not pairs: all pairs of a round run at once."""

from __future__ import annotations

import math
from dataclasses import dataclass

from assay.validate.collectives.confirmation import CONFIRMATION_ROUNDS

LAUNCH_S = 30.0
"""To start the first processes on the nodes. Our own assumption: containers from a cache start in seconds."""
PAIR_S = 20.0
"""One pair: 5 s to set up the communicator, 15 s of all-reduces. Our own assumption."""


@dataclass(frozen=True, slots=True)
class TimeEstimate:
    """Minutes if nothing is wrong, and at most: with all confirmation rounds, and a hang in each round."""

    healthy_minutes: float
    longest_minutes: float


def estimate_time(rounds: int, runs_a_round: int, at_once: int, deadline_s: float) -> TimeEstimate:
    """Return the estimate for a number of screening rounds."""
    batches = math.ceil(runs_a_round / max(at_once, 1))
    healthy = LAUNCH_S + rounds * batches * min(PAIR_S, deadline_s)
    longest = (rounds * batches + len(CONFIRMATION_ROUNDS)) * deadline_s
    return TimeEstimate(healthy / 60 if rounds else 0.0, longest / 60 if rounds else 0.0)
