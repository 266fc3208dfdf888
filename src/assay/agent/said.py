"""What the agent tells people: one line on standard error, and the same thing once only."""

from __future__ import annotations

import sys


class Said:
    """Remembers the last line about each matter."""

    def __init__(self) -> None:
        self._last: dict[str, str] = {}

    def once(self, matter: str, text: str) -> None:
        """Say it, unless it was the last thing said about this matter."""
        if self._last.get(matter) != text:
            self._last[matter] = text
            print(f"assay agent: {text}", file=sys.stderr, flush=True)  # noqa: T201 — this is what it is for
