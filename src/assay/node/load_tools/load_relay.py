"""Passes on what a load has found so far, line by line, so that what ran before a kill counts.

The first line is `{"load": {"before": …}}`. Each part gives a line `{"load": {"begins": PART, "at": …}}`, then, if it
is read in units, the lines of its tool as they come, then `{"load": {"ends": PART, "branch": …}}`. The probe's document
follows on a line of its own.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import Any

RELAY_POLL_S = 0.1
MAX_PIECE_BYTES = 1 << 20


@dataclass(slots=True)
class LoadRelay:
    """A descriptor to which lines go. A reader that has gone away ends nothing."""

    descriptor: int

    def tell(self, **what: Any) -> None:
        """Write one line of our own."""
        self.write(json.dumps({"load": what}).encode() + b"\n")

    def write(self, text: bytes) -> None:
        """Write whole lines."""
        left = memoryview(text)
        while left:
            try:
                left = left[os.write(self.descriptor, left) :]
            except OSError:
                return


@dataclass(slots=True)
class FileFollower:
    """Passes on the whole lines that a tool adds to its output file."""

    relay: LoadRelay
    file: int
    _told: int = 0

    def pass_on(self) -> None:
        """Pass on what has been added since the last call."""
        while piece := os.pread(self.file, MAX_PIECE_BYTES, self._told):
            whole = piece[: piece.rfind(b"\n") + 1]
            if not whole:
                return
            self.relay.write(whole)
            self._told += len(whole)
