"""Holders of parts and failures that a test plants, as the Parquet files of `assay trends`."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
from click.testing import Result
from typer.testing import CliRunner

from assay.cli.verbs.evidence.trends import trends_app

START = datetime(2026, 1, 1, tzinfo=UTC)
HOLDERS = "node VARCHAR, subject VARCHAR, serial VARCHAR, sku VARCHAR, firmware VARCHAR, rack VARCHAR, position VARCHAR"


@dataclass
class PlantedParts:
    """Who held which place from which day to which, and what failed when."""

    folder: Path
    holders: list[tuple[Any, ...]] = field(default_factory=list)
    failures: list[tuple[Any, ...]] = field(default_factory=list)

    def hold(self, node: str, subject: str, since: float, until: float | None = None, **other: str) -> None:
        usual = {"serial": f"S-{node}-{subject}", "sku": "h100", "firmware": "1", "rack": "r1", "position": subject}
        said = usual | {"batch": "d1"} | other
        end = None if until is None else moment(until)
        traits = [said[name] for name in ("serial", "sku", "firmware", "rack", "position")]
        self.holders.append((node, subject, *traits, moment(since), end, said["batch"]))

    def fail(self, node: str, subject: str, at: float, fault: str = "gpu.xid.79") -> None:
        self.failures.append((moment(at), node, subject, fault))

    def write(self) -> list[str]:
        """Write the files, and return the options that name them."""
        database = duckdb.connect()
        tables = {
            "holders": (f"{HOLDERS}, since TIMESTAMP, until TIMESTAMP, batch VARCHAR", self.holders),
            "failures": ("time TIMESTAMP, node VARCHAR, subject VARCHAR, fault VARCHAR", self.failures),
        }
        for name, (columns, rows) in tables.items():
            database.execute(f"CREATE TABLE {name} ({columns})")
            appender = database.appender(name)
            appender.append_rows(rows)
            appender.flush()
            database.execute(f"COPY {name} TO '{self.folder / name}.parquet'")
        return [f"--{name}={self.folder / name}.parquet" for name in tables]

    def ask(self, verb: str, as_of: float, *words: str) -> dict[str, Any]:
        """Return the JSON answer of a verb as of a day."""
        found: dict[str, Any] = json.loads(self.run(verb, as_of, "--format", "json", *words).stdout)
        return found

    def run(self, verb: str, as_of: float, *words: str) -> Result:
        """Call a verb; "" is `assay trends` itself, with a file of measurements that is empty."""
        files = self.write()
        if not verb:
            database = duckdb.connect()
            columns = "time TIMESTAMP, node VARCHAR, subject VARCHAR, name VARCHAR, value DOUBLE, unit VARCHAR"
            database.execute(f"CREATE TABLE m ({columns}, at_least DOUBLE, at_most DOUBLE)")
            database.execute(f"COPY m TO '{self.folder}/measurements.parquet'")
            files.append(f"--measurements={self.folder}/measurements.parquet")
        answer = CliRunner().invoke(
            trends_app, [*([verb] if verb else []), *files, "--as-of", moment(as_of).isoformat(), *words]
        )
        assert answer.exception is None or isinstance(answer.exception, SystemExit), answer.exception
        return answer


def moment(day: float) -> datetime:
    return START + timedelta(days=day)
