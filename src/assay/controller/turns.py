"""What is done now and then."""

from __future__ import annotations

import time


class Turns:
    """When each thing was done last."""

    def __init__(self) -> None:
        self._last: dict[str, float] = {}

    def is_time(self, what: str, every_s: float, now: float | None = None) -> bool:
        """Whether it is time again, by `now` or else in real seconds; then its next time is counted from now."""
        now = time.monotonic() if now is None else now
        if 0 <= now - self._last.get(what, float("-inf")) < every_s:
            return False
        self._last[what] = now
        return True

    def forget(self) -> None:
        """Let it be time for everything."""
        self._last.clear()

    def now(self, what: str) -> None:
        """Let it be time at once."""
        self._last.pop(what, None)
