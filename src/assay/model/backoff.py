"""How long to wait after a failure, before the next attempt: the one rule for all that is tried again.

Runs on nodes too, so it needs Python 3.10 and the standard library only.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

MAX_DOUBLINGS = 64


@dataclass(frozen=True)
class Backoff:
    """Waits in seconds: first those of `waits_s` in turn, then each `factor` times the one before, up to `longest_s`.

    `jitter` is the share of a wait that is left to chance, so that many clients do not all come back at once.
    """

    waits_s: tuple[float, ...]
    factor: float = 2.0
    longest_s: float = math.inf
    jitter: float = 0.0

    def wait_s(self, failures: int) -> float:
        """Return the seconds to wait after so many failures in a row, at least one."""
        listed = min(failures, len(self.waits_s))
        wait = self.waits_s[listed - 1] * self.factor ** min(failures - listed, MAX_DOUBLINGS)
        wait = min(wait, self.longest_s)
        if not self.jitter:
            return wait
        import random  # only clients need it: most of assay starts without

        return random.uniform(wait * (1 - self.jitter), wait)  # noqa: S311 — no secret
