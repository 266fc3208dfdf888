"""The clock of a lab: it runs faster than real time, and people let it jump ahead by hours."""

from __future__ import annotations

import json
import time
from datetime import datetime
from typing import Any

from assay.node.burnin.supervisor import MAX_GAP_S


class RehearsedClock:
    """Follows the clock in a lab's file. A jump is handed out in steps, so that load can run in each of them."""

    def __init__(self, file: str) -> None:
        self.file, self.rate = file, 1.0
        self._at = self._read()

    @property
    def behind_s(self) -> float:
        """How many seconds of a jump, or of a time in which this process could not run, are left."""
        behind = self._read() - self._at
        return behind if behind > MAX_GAP_S * self.rate else 0.0

    def now(self) -> float:
        """Return the lab's time in seconds. It stands still while there is a rest of a jump."""
        if not self.behind_s:
            self._at = max(self._at, self._read())
        return self._at

    def go_on(self, most_s: float) -> None:
        """Let as many seconds of a jump pass, at most."""
        self._at += min(self.behind_s, most_s)

    def _read(self) -> float:
        with open(self.file, encoding="utf-8") as file:  # noqa: PTH123  # pathlib costs 10 ms to import
            known: dict[str, Any] = json.load(file)
        self.rate = float(known["rate"])
        return datetime.fromisoformat(known["origin"]).timestamp() + (time.time() - float(known["anchor"])) * self.rate
