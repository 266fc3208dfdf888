"""The audit of refusals: who was refused, from which address, why, and how often. Bounded, and without any token."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

MAX_FILE_BYTES = 1024 * 1024
MAX_TEXT = 100
MAX_KINDS = 200
"""Different refusals that are written one by one in one minute. More are counted in one line."""
PERIOD_S = 60.0


class RefusalKind(NamedTuple):
    """Refusals that are alike: the address, the node or Monitoring that it claimed to be, and the reason."""

    address: str
    claims: str
    reason: str


OTHERS = RefusalKind("", "", "further refusals in this minute")


@dataclass
class RefusalLog:
    """One JSON object a line: `at`, `address`, `claims`, `reason`, `count`. The file before it ends with `.1`.

    The first refusal of a kind is written at once, and the number of its repetitions each minute. `path` takes at most
    MAX_FILE_BYTES. `report` gets an error, once, if it cannot be written.
    """

    path: Path
    report: Callable[[str], None] = lambda _: None

    def __post_init__(self) -> None:
        self._counts: dict[RefusalKind, int] = {}
        self._since = time.monotonic()
        self._has_failed = False

    def record(self, address: str, reason: str, claims: str = "") -> None:
        """Record a refusal."""
        self.flush()
        kind = RefusalKind(address, claims[:MAX_TEXT], reason[:MAX_TEXT])
        if kind not in self._counts and len(self._counts) >= MAX_KINDS:
            kind = OTHERS
        if kind in self._counts or kind is OTHERS:
            self._counts[kind] = self._counts.get(kind, 0) + 1
        else:
            self._counts[kind] = 0
            self._write([(kind, 1)])

    def flush(self, *, now: bool = False) -> None:
        """Write the numbers of repetitions if the minute is over, or `now`."""
        if now or time.monotonic() - self._since >= PERIOD_S:
            repeated = [(kind, count) for kind, count in self._counts.items() if count]
            self._counts, self._since = {}, time.monotonic()
            if repeated:
                self._write(repeated)

    def _write(self, refusals: list[tuple[RefusalKind, int]]) -> None:
        at = datetime.now(UTC).isoformat(timespec="seconds")
        lines = [json.dumps({"at": at, **kind._asdict(), "count": count}) + "\n" for kind, count in refusals]
        try:
            if self.path.exists() and self.path.stat().st_size > MAX_FILE_BYTES:
                self.path.replace(self.path.with_name(f"{self.path.name}.1"))
            descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            with os.fdopen(descriptor, "a", encoding="ascii") as file:
                file.write("".join(lines))
        except OSError as error:
            if not self._has_failed:
                self._has_failed = True
                self.report(f"{self.path}: refusals cannot be recorded: {error.strerror}")
