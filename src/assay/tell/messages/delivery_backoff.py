"""Deliveries that failed and wait: after each failure twice as long. Stored in a file that may be deleted."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from assay.model.backoff import Backoff

SINK_BACKOFF = Backoff((60.0,), longest_s=3600.0)


class PostponedDeliveries:
    """The failed deliveries by name (`ROUTE`, or `ROUTE/TICKET` for one ticket): why, how often, and until when.

    A file that is missing or damaged counts as empty.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._failures = _read_failures(path)
        self._saved_text = json.dumps(self._failures)

    def find_retry_time(self, name: str, now: datetime) -> str:
        """Return when `name` may be tried again (ISO 8601), "" if it may be tried now."""
        failure = self._failures.get(name)
        return failure["until"] if failure and datetime.fromisoformat(failure["until"]) > now else ""

    def get_reason(self, name: str) -> str:
        """Return why `name` waits."""
        return str(self._failures[name]["why"])

    def list_failures(self) -> list[tuple[str, str]]:
        """Return every name whose last delivery failed, and why."""
        return [(name, str(failure["why"])) for name, failure in self._failures.items()]

    def postpone(self, name: str, why: str, now: datetime, at_least: timedelta) -> str:
        """Note a failure. Return until when `name` waits (ISO 8601): not less than `at_least` from `now`."""
        times = self._failures[name]["times"] + 1 if name in self._failures else 1
        wait = max(at_least, timedelta(seconds=SINK_BACKOFF.wait_s(times)))
        self._failures[name] = {"until": (now + wait).isoformat(), "times": times, "why": why}
        return str(self._failures[name]["until"])

    def clear(self, name: str) -> None:
        """Forget the failures of `name`."""
        self._failures.pop(name, None)

    def save(self) -> None:
        """Write the file, if anything changed."""
        text = json.dumps(self._failures)
        if text != self._saved_text:
            scratch = self._path.with_suffix(".new")
            scratch.write_text(text, encoding="utf-8")
            scratch.replace(self._path)


def _read_failures(path: Path) -> dict[str, Any]:
    try:
        failures = json.loads(path.read_text(encoding="utf-8"))
        for failure in failures.values():
            if datetime.fromisoformat(failure["until"]).tzinfo is None:
                return {}
            _ = (int(failure["times"]), failure["why"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}
    return dict(failures)
