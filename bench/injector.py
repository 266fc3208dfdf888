"""Makes histories of faults, weighted by the counts of Llama 3's Table 5 (`llama3.yaml`)."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

DAY = 86400.0
RACK = 4
JOB_ENDS = 3600.0
"""After so many seconds the job that ran on a node has ended or gone elsewhere; our own choice."""
FLAPS = 3
"""A link that flaps goes down so often within minutes, else it is no fault."""


@dataclass(frozen=True)
class Row:
    """One row of the table."""

    component: str
    count: int
    shows: Sequence[str]
    over_hours: float


@dataclass(frozen=True)
class Table:
    """The whole table: over so many days, on so many nodes."""

    days: float
    nodes: int
    rows: Sequence[Row]

    @property
    def rate(self) -> float:
        """Interruptions a node and day."""
        return sum(row.count for row in self.rows) / (self.days * self.nodes)


def table() -> Table:
    """Return the table as it stands in its file."""
    plain = yaml.safe_load((Path(__file__).parent / "llama3.yaml").read_text())
    return Table(plain["days"], plain["nodes"], [Row(**row) for row in plain["rows"]])


def as_it_was(told: Table, seed: int = 1) -> list[dict[str, Any]]:
    """Return a history in which every row happens as often as it did."""
    chance = random.Random(seed)  # noqa: S311 — a history, not a secret
    happened = [row for row in told.rows for _ in range(row.count)]
    return list(_history(chance, happened, told.days, told.nodes))


def at_that_rate(told: Table, nodes: int, days: float, times: float = 1, seed: int = 1) -> list[dict[str, Any]]:
    """Return a history of another fleet, at `times` the rate, with rows drawn by their counts."""
    chance = random.Random(seed)  # noqa: S311
    count = round(told.rate * nodes * days * times)
    happened = chance.choices(told.rows, [row.count for row in told.rows], k=count)
    return list(_history(chance, happened, days, nodes))


def _history(chance: random.Random, happened: Iterable[Row], days: float, nodes: int) -> Iterator[dict[str, Any]]:
    for number, row in enumerate(happened):
        index, at = chance.randrange(nodes), chance.uniform(0, days * DAY)
        if row.shows:
            yield from _shown(row, chance.choice(row.shows), f"t{index:04}", f"r{index // RACK:03}", at, number)


def _shown(row: Row, fault: str, node: str, rack: str, at: float, number: int) -> Iterator[dict[str, Any]]:
    """Yield the events of one interruption; their detail tells which it is."""
    where = {"node": node, "pool": "training", "rack": rack}
    for flap in range(FLAPS if fault.endswith(".flap") else 1):
        yield {
            **where,
            "time": at + 60 * flap,
            "event": "fault",
            "fault": fault,
            "in_use": True,
            "detail": f"{row.component} #{number}.",
        }
    yield {**where, "time": at + JOB_ENDS, "event": "use", "in_use": False}
    yield {**where, "time": at + 3600 * row.over_hours, "event": "clear", "fault": fault}
