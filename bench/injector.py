"""Makes histories of faults, weighted by the counts in Table 5 of the Llama 3 paper (`llama3.yaml`)."""

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
"""Seconds after which the job on a node has ended or moved; our own assumption."""
FLAPS = 3
"""How often a flapping link goes down within minutes; fewer times are no fault."""


@dataclass(frozen=True)
class Row:
    """One row of the table."""

    component: str
    count: int
    shows: Sequence[str]
    over_hours: float


@dataclass(frozen=True)
class Table:
    """The whole table: the period in days, the number of nodes, and the rows."""

    days: float
    nodes: int
    rows: Sequence[Row]

    @property
    def rate(self) -> float:
        """Interruptions per node and day."""
        return sum(row.count for row in self.rows) / (self.days * self.nodes)


def load_table() -> Table:
    """Return the table from its file."""
    plain = yaml.safe_load((Path(__file__).parent / "llama3.yaml").read_text())
    return Table(plain["days"], plain["nodes"], [Row(**row) for row in plain["rows"]])


def make_original_history(table: Table, seed: int = 1) -> list[dict[str, Any]]:
    """Return a history in which each row occurs as often as in the table."""
    chance = random.Random(seed)  # noqa: S311 — a history, not a secret
    interruptions = [row for row in table.rows for _ in range(row.count)]
    return list(_make_events(chance, interruptions, table.days, table.nodes))


def make_scaled_history(table: Table, nodes: int, days: float, times: float = 1, seed: int = 1) -> list[dict[str, Any]]:
    """Return a history of another fleet, at `times` the table's rate, with rows drawn by their counts."""
    chance = random.Random(seed)  # noqa: S311
    count = round(table.rate * nodes * days * times)
    interruptions = chance.choices(table.rows, [row.count for row in table.rows], k=count)
    return list(_make_events(chance, interruptions, days, nodes))


def _make_events(
    chance: random.Random, interruptions: Iterable[Row], days: float, nodes: int
) -> Iterator[dict[str, Any]]:
    for number, row in enumerate(interruptions):
        index, at = chance.randrange(nodes), chance.uniform(0, days * DAY)
        if row.shows:
            fault = chance.choice(row.shows)
            yield from _make_fault_events(row, fault, f"t{index:04}", f"r{index // RACK:03}", at, number)


def _make_fault_events(row: Row, fault: str, node: str, rack: str, at: float, number: int) -> Iterator[dict[str, Any]]:
    """Yield the events of one interruption; `detail` identifies it."""
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
