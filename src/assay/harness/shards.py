"""Shards of a run, whole nodes each, and what judges them: processes of this machine, or jobs of a cluster."""

from __future__ import annotations

import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

NO_TESTS = 5  # pytest's exit code when a selection, or an earlier session, leaves it nothing to run
THROUGH = (0, 1, NO_TESTS)
NOT_JUDGED = ("lost: ", "deadline: ")
"""How the reasons of what a shard did not come to begin. It is judged when its run is gone on with."""


@dataclass(frozen=True)
class Shard:
    """One pytest: `command`, run in `folder` with `environment` on top of what is set, says all there is to do.

    It adds outcomes to the file `store`, which is there already, and judges nothing again that is in it. What it
    prints belongs into `log`.
    """

    number: int
    command: tuple[str, ...]
    folder: Path
    environment: Mapping[str, str]
    store: Path
    log: Path


@dataclass(frozen=True)
class Ended:
    """A shard that is over. `how` is "" where all was judged, else `lost: …` or `deadline: …`, for people."""

    shard: Shard
    how: str = ""


class Shards(Protocol):
    """Runs shards somewhere. Whoever implements it need not know what they judge."""

    def start(self, shards: Sequence[Shard], deadline_s: float) -> None:
        """Begin with all of them, as many at once as there is room for, each with so many seconds once it runs.

        What an earlier run that was killed has left running for the same shards is ended first.
        """

    def look(self) -> Sequence[Ended]:
        """Return those that ended since the last look; their stores can be read here, and nobody writes to them."""

    def running(self) -> Sequence[Shard]:
        """Return those that have begun; how far they are may be read from their stores."""

    def stop(self) -> None:
        """End what runs or waits, and return when nothing of it writes any more."""


def lost(code: int, log: Path) -> str:
    """Return how a pytest ended that was not killed for its deadline: "" where it is through with its shard."""
    if code in THROUGH:
        return ""
    if code < 0:
        return f"lost: pytest was killed by {_signal(-code)}"
    lines = [line.strip() for line in _text(log).splitlines() if line.strip()]
    said = next((line for line in lines if line.startswith("ERROR")), lines[-1] if lines else "it said nothing")
    return f"lost: pytest ended with {code}: {said}"


def overdue(deadline_s: float) -> str:
    """Return what is said of a shard that took too long."""
    return f"deadline: its shard was not through after {deadline_s:g} s"


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _text(log: Path) -> str:
    return log.read_text(errors="replace") if log.exists() else ""
