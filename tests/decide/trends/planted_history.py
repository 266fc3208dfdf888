"""Histories and ledgers that a test plants: outcomes and measurements by day, absences with their faults."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb

from assay.model.ledger_entry import LedgerEntry
from assay.model.timestamps import format_time

OUTCOMES = """
CREATE TABLE outcomes (run VARCHAR, run_at VARCHAR, pool VARCHAR, node VARCHAR, subject VARCHAR, check_ VARCHAR,
  verdict VARCHAR, reason VARCHAR, fault VARCHAR, phases VARCHAR, active BOOLEAN, evidence VARCHAR,
  evidence_at VARCHAR, micros BIGINT, known VARCHAR, observed BOOLEAN)
"""
MEASUREMENTS = """
CREATE TABLE measurements (run VARCHAR, run_at VARCHAR, node VARCHAR, subject VARCHAR, check_ VARCHAR, n INTEGER,
  name VARCHAR, value DOUBLE, unit VARCHAR, at_least DOUBLE, at_most DOUBLE, source VARCHAR, evidence VARCHAR)
"""


@dataclass(frozen=True)
class PlantedReading:
    """One check on one part at one time, with the one number that it measured, if any. It fails beyond its limit."""

    at: datetime
    node: str
    place: str = "gpu0"
    check: str = "suites/test_gpu.py::test_heat"
    fault: str = "gpu.thermal"
    name: str = ""
    value: float = 0.0
    unit: str = "°C"
    at_least: float | None = None
    at_most: float | None = None
    source: str = ""
    fails: bool = False
    observed: bool = False
    pool: str = "h100-a"

    @property
    def verdict(self) -> str:
        beyond = bool(self.name) and (
            (self.at_most is not None and self.value > self.at_most)
            or (self.at_least is not None and self.value < self.at_least)
        )
        return "fail" if self.fails or beyond else "pass"

    def rows(self) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        subject = "/".join(filter(None, (self.pool, self.node, self.place)))
        run, at = f"r{self.at:%Y%m%dT%H%M}", format_time(self.at)
        outcome = (run, at, self.pool, self.node, subject, self.check, self.verdict, "", self.fault, "[]", False,
                   "e", at, 5, "", self.observed)  # fmt: skip
        number = (run, at, self.node, subject, self.check, 0, self.name, self.value, self.unit, self.at_least,
                  self.at_most, self.source, "e")  # fmt: skip
        return outcome, number


def keep_planted(home: Path, readings: Iterable[PlantedReading]) -> None:
    """Write a history of these readings: a file a day."""
    kept = sorted(readings, key=lambda one: (one.at.date(), one.node))
    database = duckdb.connect()
    for table, made, rows in (
        ("outcomes", OUTCOMES, [one.rows()[0] for one in kept]),
        ("measurements", MEASUREMENTS, [one.rows()[1] for one in kept if one.name]),
    ):
        database.execute(made)
        appender = database.appender(table)
        appender.append_rows(rows)
        appender.flush()
        (home / table).mkdir(parents=True)
        by_day = f"SELECT *, left(run_at, 10) AS day FROM {table} ORDER BY run_at, node"
        database.execute(f"COPY ({by_day}) TO '{home / table}' (FORMAT parquet, PARTITION_BY day, OVERWRITE_OR_IGNORE)")


def damage_file(day: Path, is_cut: bool) -> Path:
    """Cut the file of a day in two, or spoil values in the middle of it; return the file."""
    (file,) = day.glob("*.parquet")
    content = bytearray(file.read_bytes())
    half = len(content) // 2
    file.write_bytes(content[:half] if is_cut else content[:4] + bytes(half) + content[4 + half :])
    return file


@dataclass
class PlantedLedger:
    """Entries of nodes that served since `start`."""

    start: datetime
    entries: list[LedgerEntry] = field(default_factory=list)

    def enrol(self, *nodes: str) -> None:
        for node in nodes:
            self._add(self.start, "node.enrolled", node, {"pool": "h100-a", "state": "production"})

    def see(self, node: str, place: str, fault: str, at: datetime, **changes: str) -> str:
        """A fault is seen; return its id."""
        subject = "/".join(filter(None, ("h100-a", node, place)))
        body = {
            "fault": f"f{len(self.entries)}", "class": fault, "subject": subject,
            "severity": "degraded", "blame": "hardware", "remedy": "ticket", "count": 1,
            "first_seen": format_time(at), "last_seen": format_time(at), **changes,
        }  # fmt: skip
        self._add(at, "fault", node, body)
        return str(body["fault"])

    def fail(self, node: str, place: str, fault: str, at: datetime, hours: float, **changes: str) -> None:
        """A fault at `at` takes the node out of service an hour later, for so many hours."""
        ident = self.see(node, place, fault, at, **changes)
        self.leave(node, at + timedelta(hours=1), hours, [{"kind": "fault", "id": ident, "text": fault}])

    def leave(
        self, node: str, at: datetime, hours: float, because: list[dict[str, str]], rule: str = "x.yaml:1 r"
    ) -> None:
        """A decision takes the node out of service, and it comes back."""
        decision = f"d{len(self.entries)}"
        decided = {"decision": decision, "from": "production", "to": "triage", "timing": "immediate", "rule": rule}
        self._add(at, "decision", node, {**decided, "because": because})
        self._add(at, "transition", node, {"from": "production", "to": "triage", "decision": decision})
        self._add(
            at + timedelta(hours=hours), "transition", node, {"from": "triage", "to": "production", "decision": ""}
        )

    def warn(self, node: str, place: str, rule: str, at: datetime) -> None:
        """A rule of trends warned of a part."""
        values = {"revision": "r", "stage": "observe", "serial": "", "name": "gpu_temperature", "unit": "°C"}
        numbers = {"before": 60, "now": 70, "z": 9, "peers": 30, "because": "it gets worse"}
        body = {"warning": f"w{len(self.entries)}", "rule": rule, "place": place, **values, **numbers}
        self._add(at, "trend.warned", node, body)

    def _add(self, at: datetime, kind: str, node: str, body: dict[str, Any]) -> None:
        self.entries.append(LedgerEntry(f"{kind} {len(self.entries)}", format_time(at), kind, node, body))

    def in_order(self) -> list[LedgerEntry]:
        return sorted(self.entries, key=lambda entry: entry.at)
