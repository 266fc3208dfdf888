"""What is left alone for a while after it failed, twice as long each time. Kept in a file that may be lost."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

FIRST_WAIT = timedelta(minutes=1)
LONGEST_WAIT = timedelta(hours=1)


class DeliveryBackoff:
    """Names, when each may be tried again, and why it waits."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._failures = _read(path)
        self._before = json.dumps(self._failures)

    def find_retry_time(self, name: str, now: datetime) -> str:
        """Return until when (ISO 8601) `name` is left alone, "" where it may be tried."""
        held = self._failures.get(name)
        return held["until"] if held and datetime.fromisoformat(held["until"]) > now else ""

    def get_reason(self, name: str) -> str:
        """Return why it is left alone."""
        return str(self._failures[name]["why"])

    def list_failures(self) -> list[tuple[str, str]]:
        """Return every name that failed last time, and why."""
        return [(name, str(one["why"])) for name, one in self._failures.items()]

    def postpone(self, name: str, why: str, now: datetime, at_least: timedelta) -> str:
        """Leave `name` alone, for `at_least` so long; return until when."""
        times = self._failures[name]["times"] + 1 if name in self._failures else 1
        wait = max(at_least, min(FIRST_WAIT * 2 ** min(times - 1, 10), LONGEST_WAIT))
        self._failures[name] = {"until": (now + wait).isoformat(), "times": times, "why": why}
        return str(self._failures[name]["until"])

    def clear(self, name: str) -> None:
        """Forget about a failure."""
        self._failures.pop(name, None)

    def save(self) -> None:
        """Write it down, where anything changed."""
        text = json.dumps(self._failures)
        if text != self._before:
            scratch = self._path.with_suffix(".new")
            scratch.write_text(text, encoding="utf-8")
            scratch.replace(self._path)


def _read(path: Path) -> dict[str, Any]:
    try:
        held = json.loads(path.read_text(encoding="utf-8"))
        for one in held.values():
            if datetime.fromisoformat(one["until"]).tzinfo is None:
                return {}
            _ = (int(one["times"]), one["why"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}
    return dict(held)
