"""A history of measurements like that of a large fleet, as the Parquet files that assay itself writes, and its ledger.

A node has 8 GPUs, 8 network ports, 4 drives and itself, with 300 measurements in all. Of these, 60 % never change: link
widths, counts, sizes. The others have a level of their own and noise, in the digits that devices give.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb

from assay.decide.state.asset_history import (
    AssetReading,
    InstalledPart,
    NodeAssets,
    NodeSetup,
    make_asset_entries,
    make_setup_entry,
)
from assay.ledger.history.parquet_files import DAY_PREFIX, MEASUREMENTS_TABLE, ROW_GROUP_ROWS
from assay.ledger.store import Ledger
from assay.model.ledger_entry import LedgerEntry

FIRST_AT = datetime(2026, 1, 1, 2, tzinfo=UTC)
PLACES = (("gpu", 8, 24), ("hca", 8, 8), ("nvme", 4, 6), ("", 1, 20))
"""Kind of part, how many a node has, and measurements of each: 300 a node."""
CONSTANT_SHARE = 0.6
NODES_AT_ONCE = 500
_SERIES = """
CREATE OR REPLACE TABLE kinds AS
SELECT row_number() OVER () AS kind, place,
  'suites/production/test_' || split_part(name, '_', 1) || '.py::test_' || name AS check_,
  name, unit, lower, upper, digits, middle, spread, noise, steady
FROM (
  SELECT place, coalesce(nullif(part, ''), 'node') || '_reading_' || measure AS name,
    ['C', 'W', 'MHz', 'GB/s', 'count'][1 + measure % 5] AS unit,
    CASE WHEN measure % 3 = 0 THEN 40::DOUBLE END AS lower,
    CASE WHEN measure % 3 <> 0 THEN 400::DOUBLE END AS upper,
    (measure % 3)::INT AS digits, 60.0 + 3 * measure AS middle,
    4.0 AS spread, 0.8 AS noise, measure < $steady * measures AS steady
  FROM (
    SELECT part, part || CASE WHEN part = '' THEN '' ELSE number::VARCHAR END AS place, measures,
      unnest(range(measures)) AS measure
    FROM (SELECT part, measures, unnest(range(count)) AS number FROM places)
  )
) ORDER BY place, name
"""
_DAY = """
SELECT $run AS run, $at AS run_at, node, 'h100-a/' || node || CASE WHEN place = '' THEN '' ELSE '/' || place END
    AS subject, check_, 0::INTEGER AS n, name,
  CASE WHEN steady THEN middle ELSE round(
    middle + spread * ((hash(number, kind, 1) % 2000) / 1000.0 - 1)
      + noise * ((hash(number, kind, $day) % 2000 + hash(number, kind, $day, 2) % 2000) / 1000.0 - 2), digits) END
    AS value,
  unit, lower AS at_least, upper AS at_most, 'specs/nodes/hgx-h100.yaml' AS source,
  evidence
FROM (SELECT *, md5(node || $run) AS evidence, unnest(range(1, 1 + $kinds)) AS kind FROM nodes) JOIN kinds USING (kind)
"""


def write_history(home: Path, nodes: int, days: int) -> None:
    """Write the history of a fleet into a folder: a run each day of each node's 300 measurements."""
    with duckdb.connect(config={"threads": 1}) as database:
        database.execute("SET enable_progress_bar = false")
        database.execute("CREATE TABLE places (part VARCHAR, count INT, measures INT)")
        database.executemany("INSERT INTO places VALUES (?, ?, ?)", PLACES)
        database.execute(_SERIES, {"steady": CONSTANT_SHARE})
        database.execute(
            "CREATE TABLE nodes AS SELECT number, printf('n%05d', number) AS node FROM range($nodes) r(number)",
            {"nodes": nodes},
        )
        kinds = database.table("kinds").count("*").fetchall()[0][0]
        for day in range(days):
            at = FIRST_AT + timedelta(days=day)
            folder = home / MEASUREMENTS_TABLE / f"{DAY_PREFIX}{at.date()}"
            folder.mkdir(parents=True)
            run = f"{at:%Y%m%dT%H%M%SZ}-trends"
            rows = database.sql(_DAY, params={"run": run, "at": at.isoformat(), "day": day, "kinds": kinds})
            rows.write_parquet(str(folder / f"{run}.parquet"), compression="zstd", row_group_size=ROW_GROUP_ROWS)


def write_ledger(home: Path, nodes: int) -> None:
    """Write a ledger that knows rack, delivery, parts and versions of each node; half of them have a newer driver."""
    (home / ".assay").mkdir(parents=True)
    ledger = Ledger.open(home / ".assay" / "ledger.sqlite")
    numbers = range(nodes)
    for start in range(0, nodes, NODES_AT_ONCE):
        ledger.append(*(entry for number in numbers[start : start + NODES_AT_ONCE] for entry in _note_node(number)))
    ledger.close()


def _note_node(number: int) -> Iterator[LedgerEntry]:
    node, at = f"n{number:05}", FIRST_AT - timedelta(days=10)
    parts = {f"{kind}{place}": InstalledPart(kind, f"{kind}-{number}-{place}") for kind, count, _ in PLACES if kind
             for place in range(count)}  # fmt: skip
    yield from make_asset_entries(NodeAssets(), AssetReading(node, {}, parts), at)
    first = NodeSetup(f"hall/r{number // 18}", number % 18 * 2, "h100", "d1", {"driver": "570.1"})
    yield _note_setup(NodeSetup(), replace(first, models={place: part.kind for place, part in parts.items()}), node, at)
    if number % 2:
        newer = replace(first, versions={"driver": "580.2"})
        yield _note_setup(first, newer, node, FIRST_AT + timedelta(days=70))


def _note_setup(known: NodeSetup, seen: NodeSetup, node: str, at: datetime) -> LedgerEntry:
    entry = make_setup_entry(known, seen, node, at)
    assert entry is not None, "the setup is new"
    return entry
