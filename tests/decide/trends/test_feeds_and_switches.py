"""A PDU or a leaf switch of the fleet itself that explains a trend is one line: look there first."""

from __future__ import annotations

import random
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb
import pytest

from assay.decide.state.asset_history import (
    AssetReading,
    InstalledPart,
    NodeAssets,
    NodeSetup,
    make_asset_entries,
    make_setup_entry,
)
from assay.decide.trends.fleet_tables import name_feeds_and_switches, open_fleet_tables
from assay.decide.trends.trend_answer import TrendAnswer, find_trends
from assay.declare.loader import load_fleet
from assay.fabric.design.node_cables import find_node_leaves
from assay.ledger.store import Ledger
from assay.model.node import Node
from assay.model.specs.node_settings import NodeSettings
from tests.support.places import ROOT

START, DAYS, NODES, WARMING = datetime(2026, 3, 1, 6, tzinfo=UTC), 75, 32, range(0, 32, 5)


def place_of(node: int) -> str:
    return f"mlx5_{node % 2}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A history in which one adapter in five receives less and less light, and a ledger that knows the adapters."""
    folder, chance, database = tmp_path_factory.mktemp("fleet"), random.Random(5), duckdb.connect()
    for day in range(DAYS):
        at = START + timedelta(days=day)
        light = [chance.gauss(-1, 0.1) - (max(0, day - 60) * 0.2 if node in WARMING else 0) for node in range(NODES)]
        path = folder / "history" / "measurements" / f"day={at.date()}"
        path.mkdir(parents=True)
        database.execute(
            """
            CREATE OR REPLACE TABLE t AS
            SELECT $at AS run_at, format('n{:02}', i) AS node, format('h100-a/n{:02}/mlx5_{}', i, i % 2) AS subject,
              'suites/test_light.py::test_light' AS check_, 'rx_power' AS name, $light[i + 1] AS value, 'dBm' AS unit,
              -6.0::DOUBLE AS at_least, NULL::DOUBLE AS at_most
            FROM (SELECT unnest(range($nodes)) AS i)
            """,
            {"at": at.isoformat(), "light": light, "nodes": NODES},
        )
        database.execute(f"COPY t TO '{path / 'r.parquet'}'")
    with closing(Ledger.open(folder / "ledger.sqlite")) as ledger:
        for node in range(NODES):
            note_adapter(ledger, f"n{node:02}", place_of(node))
    return folder


def note_adapter(ledger: Ledger, node: str, place: str) -> None:
    at = START - timedelta(days=1)
    reading = AssetReading(node, {}, {place: InstalledPart("hca", f"0x{node}")})
    setup = make_setup_entry(NodeSetup(), NodeSetup("lab/r1", 4, "h100", "", {}), node, at)
    assert setup is not None
    ledger.append(*make_asset_entries(NodeAssets(), reading, at), setup)


def ask(folder: Path, pdus: dict[int, str], switches: dict[tuple[str, str], str]) -> TrendAnswer:
    nodes = [Node(f"n{node:02}", "h100-a", "lab", "r1", node, f"S{node}", "h100", "managed",
                  settings=NodeSettings(pdu=pdus.get(node, ""))) for node in range(NODES)]  # fmt: skip
    as_of = START + timedelta(days=DAYS)
    with (
        closing(Ledger.open(folder / "ledger.sqlite")) as ledger,
        open_fleet_tables(folder / "history", ledger, as_of) as database,
    ):
        name_feeds_and_switches(database, nodes, switches)
        return find_trends(database, as_of)


def test_a_pdu_of_the_inventory_is_a_group(folder: Path) -> None:
    answer = ask(folder, {node: "pdu-1" if node in WARMING else "pdu-2" for node in range(NODES)}, {})
    assert [(one.trait, one.value, one.named) for one in answer.groups] == [("pdu", "lab/pdu-1", len(WARMING))]


def test_a_leaf_switch_of_the_design_is_a_group(folder: Path) -> None:
    places = {(f"n{node:02}", place_of(node)): "leaf-1" if node in WARMING else "leaf-2" for node in range(NODES)}
    answer = ask(folder, {}, places)
    assert [(one.trait, one.value, one.named) for one in answer.groups] == [("switch", "leaf-1", len(WARMING))]
    assert all(one.group.startswith("switch leaf-1: 7 of 7") for one in answer.warnings)


def test_without_them_nobody_is_blamed(folder: Path) -> None:
    answer = ask(folder, {}, {("n00", "mlx5_7"): "leaf-1"})
    assert len(answer.warnings) == len(WARMING)
    assert answer.groups == []


def test_the_design_says_which_leaf_each_adapter_is_at() -> None:
    leaves = find_node_leaves(load_fleet(ROOT))
    assert leaves["n0001", "mlx5_3"] == "leaf-su01-r3"
    assert ("n0001", "") not in leaves, "its adapters are at eight of them"
