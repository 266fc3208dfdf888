"""Planted fleets whose drifts are known, as the three Parquet files of `assay trends`.

`plain`: noise around levels. `wandering`: half of the series wander, and load comes in spells. `oddballs`: also, 2 %
of the healthy series are always far from the others. All have seasons, three waves of firmware with steps, repairs
with new levels, wild values, gaps, nodes that are away, a rack that warms, and failures without any sign.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
START = datetime(2025, 1, 1, 6, tzinfo=UTC)
KINDS = ("plain", "wandering", "oddballs")
SHAPES = ("linear", "accelerating", "slow", "noisy")
NAMES = ("gpu_temperature", "gpu_power", "fan_duty", "bias_current", "rx_power", "copy_bandwidth")
IS_UPPER = np.array([True, True, True, True, False, False])
"""Whether a measurement has an upper limit; the others have a lower one."""
UNITS = ("C", "W", "percent", "mA", "dBm", "GB/s")
SCALE = np.array([1.2, 8.0, 1.5, 0.4, 0.15, 2.0])
"""The noise of a day, in the unit."""
MIDDLE = np.array([60.0, 500.0, 55.0, 7.0, -1.0, 420.0])
LIMIT = 15.0
"""From the middle to the limit, in noises."""
RACK_NODES, HEAT = 20, 0
DRIFTS_PER_1000, REPAIRS_PER_1000, ABRUPT_PER_1000 = 60, 40, 40
FIRST_ONSET = 85
WARM_FROM, WARM_PER_DAY, WARM_MOST = 110, 0.3, 8.0
HOLDERS = (
    "node VARCHAR, subject VARCHAR, serial VARCHAR, sku VARCHAR, firmware VARCHAR, rack VARCHAR, position VARCHAR, "
    "since TIMESTAMP, until TIMESTAMP"
)
FAILURES = "time TIMESTAMP, node VARCHAR, subject VARCHAR, fault VARCHAR"


@dataclass(frozen=True)
class Drift:
    """A series that gets worse from `onset` on, and fails on `fails` (days); None: not before the world's end."""

    node: int
    measurement: int
    shape: str
    onset: int
    fails: int | None


@dataclass
class World:
    """A planted fleet. `values`: node × measurement × day, in noises from the middle. Worse is positive.

    Of other `names`, they are values as they are; those of `counters` are counts.
    """

    kind: str
    seed: int
    values: Floats
    drifts: list[Drift] = field(default_factory=list)
    repairs: list[tuple[int, int]] = field(default_factory=list)
    abrupt: list[tuple[int, int]] = field(default_factory=list)
    updated: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    warm_rack: int = -1
    names: tuple[str, ...] = NAMES
    counters: tuple[int, ...] = ()

    @property
    def nodes(self) -> int:
        """How many nodes there are."""
        return int(self.values.shape[0])

    @property
    def days(self) -> int:
        """How many days there are."""
        return int(self.values.shape[2])

    def find_warmed(self) -> set[tuple[int, int]]:
        """Return the series (node, measurement) of the rack that warms."""
        if self.warm_rack < 0:
            return set()
        first = self.warm_rack * RACK_NODES
        return {(node, HEAT) for node in range(first, min(first + RACK_NODES, self.nodes))}


def make_world(
    kind: str, seed: int, nodes: int = 400, days: int = 180, drifts_per_1000: int = DRIFTS_PER_1000
) -> World:
    """Return a world; the same kind and seed give the same one."""
    chance = np.random.default_rng([KINDS.index(kind), seed])
    shape = (nodes, len(NAMES), days)
    values = chance.normal(0, 1, shape) + chance.normal(0, 1.5, shape[:2])[:, :, None]
    day = np.arange(days)
    season = 1.0 * np.sin(2 * np.pi * day / 7) + 3.0 * np.sin(2 * np.pi * day / 365)
    values += season[None, None, :] * chance.uniform(0.5, 1.0, len(NAMES))[None, :, None]
    if kind != "plain":
        _wander(values, chance)
    world = World(kind, seed, values, warm_rack=int(chance.integers(nodes // RACK_NODES)))
    if kind == "oddballs":
        odd = chance.random(shape[:2]) < 0.02
        values += np.where(odd, chance.uniform(4.5, 7.5, shape[:2]), 0.0)[:, :, None]
    world.updated = _update_firmware(values, chance)
    for node in chance.choice(nodes, nodes * REPAIRS_PER_1000 // 1000, replace=False):
        on = int(chance.integers(60, days - 5))
        values[node, :, on:] += chance.normal(0, 2.5, len(NAMES))[:, None]
        world.repairs.append((int(node), on))
    first = world.warm_rack * RACK_NODES
    values[first : first + RACK_NODES, HEAT] += np.clip((day - WARM_FROM) * WARM_PER_DAY, 0, WARM_MOST)
    _plant_drifts(world, chance, drifts_per_1000)
    world.abrupt = [
        (int(node), int(chance.integers(60, days)))
        for node in chance.choice(nodes, nodes * ABRUPT_PER_1000 // 1000, replace=False)
    ]
    _spoil(values, chance)
    return world


def _wander(values: Floats, chance: np.random.Generator) -> None:
    """Let half of the series wander (AR(1), 0.95), and give nodes spells of load of 5 to 25 days."""
    nodes, names, days = values.shape
    steps = chance.normal(0, 1.2 * np.sqrt(1 - 0.95**2), values.shape)
    steps[:, :, 0] /= np.sqrt(1 - 0.95**2)
    for day in range(1, days):
        steps[:, :, day] += 0.95 * steps[:, :, day - 1]
    values += steps * (chance.random((nodes, names)) < 0.5)[:, :, None]
    for node in range(nodes):
        day = int(chance.integers(0, 60))
        while day < days:
            length = int(chance.integers(5, 26))
            values[node, :2, day : day + length] += chance.uniform(0.5, 2.0)
            day += length + int(chance.integers(20, 80))


def _update_firmware(values: Floats, chance: np.random.Generator) -> NDArray[np.int64]:
    """Give every node new firmware on one of three days, with steps; return the days."""
    nodes, names, days = values.shape
    waves = np.sort(chance.integers(50, days - 30, 3))
    updated: NDArray[np.int64] = waves[chance.choice(3, nodes, p=(0.15, 0.35, 0.5))]
    steps = chance.uniform(3, 5, names) * chance.choice((-1, 0, 1), names)
    after = np.arange(days)[None, :] >= updated[:, None]
    values += steps[None, :, None] * after[:, None, :]
    return updated


def _plant_drifts(world: World, chance: np.random.Generator, per_1000: int) -> None:
    taken = {node for node, _ in world.repairs} | {node for node, _ in world.find_warmed()}
    free = np.array([node for node in range(world.nodes) if node not in taken])
    for number, node in enumerate(chance.choice(free, world.nodes * per_1000 // 1000, replace=False)):
        shape = SHAPES[number % len(SHAPES)]
        onset = int(chance.integers(FIRST_ONSET, world.days - 10))
        measurement = int(chance.integers(len(NAMES)))
        series = world.values[node, measurement]
        series[onset:] += _drift(shape, world.days - onset, chance)
        beyond = series > LIMIT
        fails = next((day for day in range(onset + 5, world.days) if beyond[day - 4 : day + 1].sum() >= 3), None)
        world.drifts.append(Drift(int(node), measurement, shape, onset, fails))
        if fails is not None and fails + 1 < world.days:
            length = world.days - fails - 1
            series[fails + 1 :] = chance.normal(chance.normal(0, 2.5), 1, length)
            world.repairs.append((int(node), fails + 1))


def _drift(shape: str, days: int, chance: np.random.Generator) -> Floats:
    """Return what is added from the onset on."""
    day = np.arange(days, dtype=float)
    if shape == "linear":
        return day * chance.uniform(0.3, 0.6)
    if shape == "accelerating":
        return LIMIT * (day / chance.uniform(30, 60)) ** 2
    if shape == "slow":
        return day * chance.uniform(0.15, 0.3)
    return day * chance.uniform(0.3, 0.5) + chance.normal(0, 1, days) * day * 0.05


def _spoil(values: Floats, chance: np.random.Generator) -> None:
    """Plant wild values and gaps: 1 % wild, 8 % missing, nodes that are away for 20 days, two days that are lost."""
    nodes, _, days = values.shape
    wild = np.where(chance.random(values.shape) < 0.01, chance.choice((-30.0, 30.0), values.shape), 0.0)
    values += wild
    values[chance.random(values.shape) < 0.08] = np.nan
    for node in chance.choice(nodes, nodes // 40, replace=False):
        since = int(chance.integers(20, days - 25))
        values[node, :, since : since + 20] = np.nan
    values[:, :, chance.choice(days, 2, replace=False)] = np.nan


def write_world(world: World, folder: Path) -> tuple[Path, Path, Path]:
    """Write the measurements, the holders and the failures as Parquet; return the paths."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = folder / "measurements.parquet", folder / "holders.parquet", folder / "failures.parquet"
    with duckdb.connect() as database:
        _write_measurements(database, world, paths[0])
        _write_rows(database, paths[1], HOLDERS, list_holders(world))
        failed: list[tuple[object, ...]] = [
            (world_time(one.fails), f"n{one.node:05}", "gpu0", "limit") for one in world.drifts if one.fails
        ]
        failed += [(world_time(day), f"n{node:05}", "gpu0", "xid79") for node, day in world.abrupt]
        _write_rows(database, paths[2], FAILURES, failed)
    return paths


def world_time(day: float) -> datetime:
    """Return the time of a day's measurement, in UTC, without a zone as Parquet has it."""
    return (START + timedelta(days=day)).replace(tzinfo=None)


def list_holders(world: World) -> list[tuple[object, ...]]:
    """Return who held the place of each node: a new row for new firmware, and after a repair."""
    rows: list[tuple[object, ...]] = []
    for node in range(world.nodes):
        changes = {int(world.updated[node]): "2.0"} | {day: "" for other, day in world.repairs if other == node}
        firmware, since = "1.0", -200
        for day in [*sorted(changes), None]:
            until = None if day is None else world_time(day - 0.2)
            place = f"r{node // RACK_NODES}", f"u{node % RACK_NODES}"
            rows.append((f"n{node:05}", "gpu0", f"S{node}", "h100", firmware, *place, world_time(since - 0.2), until))
            if day is not None:
                firmware, since = changes[day] or firmware, day
    return rows


def _write_measurements(database: duckdb.DuckDBPyConnection, world: World, path: Path) -> None:
    node, name, day = (axis.astype(np.int32) for axis in np.nonzero(np.isfinite(world.values)))
    sign = np.where(IS_UPPER, 1.0, -1.0)
    value = world.values[node, name, day]
    kinds = [(other, "", None, None if i in world.counters else 1e6) for i, other in enumerate(world.names)]
    if world.names == NAMES:
        value = MIDDLE[name] + sign[name] * value * SCALE[name]
        limit = MIDDLE + sign * LIMIT * SCALE
        kinds = [(NAMES[i], UNITS[i], None, limit[i]) if IS_UPPER[i] else (NAMES[i], UNITS[i], limit[i], None)
                 for i in range(len(NAMES))]  # fmt: skip
    order = np.lexsort((name, node, day))
    planted = {"node": node[order], "kind": name[order], "day": day[order], "value": value[order]}
    database.execute("CREATE TABLE kinds (kind INT, name VARCHAR, unit VARCHAR, at_least DOUBLE, at_most DOUBLE)")
    database.executemany("INSERT INTO kinds VALUES (?, ?, ?, ?, ?)", [(i, *one) for i, one in enumerate(kinds)])
    database.register("planted", planted)
    start = START.replace(tzinfo=None)
    database.execute(
        "CREATE TABLE rows AS SELECT $start::TIMESTAMP + to_days(day) AS time, printf('n%05d', node) AS node, "
        "'gpu0' AS subject, name, value, unit, at_least, at_most FROM planted JOIN kinds USING (kind)",
        {"start": start},
    )
    database.table("rows").write_parquet(str(path))


def _write_rows(database: duckdb.DuckDBPyConnection, path: Path, columns: str, rows: list[tuple[object, ...]]) -> None:
    database.execute(f"CREATE TABLE {path.stem} ({columns})")
    appender = database.appender(path.stem)
    appender.append_rows(rows)
    appender.flush()
    database.table(path.stem).write_parquet(str(path))
