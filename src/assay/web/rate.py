"""How often somebody may ask: so many times at once, then so many a second."""

from __future__ import annotations

import time
from collections import OrderedDict
from typing import NamedTuple


class Bucket(NamedTuple):
    """What was left at a time."""

    left: float
    at: float


class Rate:
    """Counts by name; the names asked least lately are forgotten beyond `most`."""

    def __init__(self, at_once: int, per_second: float, most: int = 20_000) -> None:
        self._at_once, self._per_second, self._most = at_once, per_second, most
        self._buckets: OrderedDict[str, Bucket] = OrderedDict()

    def wait_s(self, name: str) -> float:
        """Take one, and return 0; or return the seconds until there is one, and take none."""
        now = time.monotonic()
        bucket = self._buckets.pop(name, Bucket(self._at_once, now))
        left = min(self._at_once, bucket.left + (now - bucket.at) * self._per_second)
        enough = left >= 1.0
        self._buckets[name] = Bucket(left - 1.0 if enough else left, now)
        if len(self._buckets) > self._most:
            self._buckets.popitem(last=False)
        return 0.0 if enough else (1.0 - left) / self._per_second
