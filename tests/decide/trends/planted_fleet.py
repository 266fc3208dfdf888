"""A fleet of planted series, written as the three Parquet files of `assay trends`."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
from typer.testing import CliRunner

from assay.cli.app import load_verb

trends_app = load_verb("trends")


START = datetime(2026, 1, 1, 6, tzinfo=UTC)
DAYS, NODES = 120, 40
Course = Callable[[int], float]
"""What is added to a series on each day."""


def node_name(number: int) -> str:
    return f"n{number:04}"


@dataclass
class PlantedFleet:
    """Nodes with one GPU each, whose temperature wanders around its own level. Change what a test is about."""

    folder: Path
    nodes: int = NODES
    days: int = DAYS
    subject: str = "gpu0"
    name: str = "gpu_temperature"
    limits: tuple[float | None, float | None] = (None, 85.0)
    courses: dict[int, Course] = field(default_factory=dict)
    rows: list[tuple[Any, ...]] = field(default_factory=list)
    holders: list[dict[str, Any]] = field(default_factory=list)
    failures: list[tuple[Any, ...]] = field(default_factory=list)

    def grow(self) -> None:
        """Make the measurements of every node and day."""
        chance = random.Random(7)
        for number in range(self.nodes):
            level = chance.gauss(60, 4)
            course = self.courses.get(number, lambda _: 0.0)
            for day in range(self.days):
                value = level + chance.gauss(0, 0.8) + course(day)
                self.say(number, day, value)

    def say(self, number: int, day: float, value: float, *, name: str = "", unit: str = "C") -> None:
        at = START + timedelta(days=day)
        self.rows.append((at, node_name(number), self.subject, name or self.name, value, unit, *self.limits))

    def hold(self, number: int, since: int = -100, until: int | None = None, **other: str) -> None:
        """Say who the GPU of a node is, since and until which day."""
        usual = {"serial": f"S{number}", "sku": "h100", "firmware": "1.0", "rack": f"r{number // 10}", "position": "u1"}
        times = {"since": START + timedelta(days=since), "until": START + timedelta(days=until) if until else None}
        self.holders.append({"node": node_name(number), "subject": self.subject, **usual, **other, **times})

    def hold_all(self, but: Iterable[int] = ()) -> None:
        for number in set(range(self.nodes)) - set(but):
            self.hold(number)

    def ask(self, day: float | None = None) -> dict[str, Any]:
        """Return the answer as of the end of a day, by the command's own JSON."""
        return ask_files(self.write(), self.days - 1 if day is None else day)

    def write(self, day: float | None = None) -> list[str]:
        """Write the files, and return the options that name them and the end of a day."""
        database = duckdb.connect()
        measurements = "time TIMESTAMP, node VARCHAR, subject VARCHAR, name VARCHAR, value DOUBLE, unit VARCHAR"
        limits = "at_least DOUBLE, at_most DOUBLE"
        words = ["--as-of", end_of(self.days - 1 if day is None else day)]
        words += self._write(database, "measurements", f"{measurements}, {limits}", self.rows)
        if self.holders:
            kinds = {"since": "TIMESTAMP", "until": "TIMESTAMP"}
            columns = ", ".join(f"{name} {kinds.get(name, 'VARCHAR')}" for name in self.holders[0])
            rows = [tuple(holder.values()) for holder in self.holders]
            words += self._write(database, "holders", columns, rows)
        return words

    def _write(self, database: Any, name: str, columns: str, rows: Iterable[tuple[Any, ...]]) -> list[str]:
        path = self.folder / f"{name}.parquet"
        database.execute(f"CREATE OR REPLACE TABLE t ({columns})")
        plain = [tuple(one.replace(tzinfo=None) if isinstance(one, datetime) else one for one in row) for row in rows]
        appender = database.appender("t")
        appender.append_rows(plain)
        appender.flush()
        database.execute(f"COPY t TO '{path}'")
        return [f"--{name}", str(path)]


def end_of(day: float) -> str:
    return (START + timedelta(days=day, hours=12)).isoformat()


def ask_files(files: Sequence[str], day: float) -> dict[str, Any]:
    """Return what the command says of these files as of the end of a day, as JSON."""
    answer = CliRunner().invoke(trends_app, ["--format", "json", *files, "--as-of", end_of(day)])
    assert answer.exit_code in (0, 1), answer.output
    found: dict[str, Any] = json.loads(answer.stdout)
    assert answer.exit_code == (1 if found["warnings"] else 0)
    return found


def name_nodes(answer: Mapping[str, Any]) -> list[str]:
    return [warning["node"] for warning in answer["warnings"]]
