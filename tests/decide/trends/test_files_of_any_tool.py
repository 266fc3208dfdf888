"""Measurements of any tool: CSV, JSON lines and Prometheus say the same as Parquet; what cannot be right is refused."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from assay.cli.app import load_verb
from assay.model.errors import AssayError
from tests.decide.trends.planted_fleet import PlantedFleet, ask_files, name_nodes, node_name

trends_app = load_verb("trends")

COLUMNS = ("time", "node", "subject", "name", "value", "unit", "at_least", "at_most")


@pytest.fixture
def fleet(tmp_path: Path) -> PlantedFleet:
    """One GPU of 24 warms up."""
    fleet = PlantedFleet(tmp_path, nodes=24, days=110)
    fleet.courses[3] = lambda day: max(0, day - 85) * 0.6
    fleet.grow()
    return fleet


def write_csv(fleet: PlantedFleet, *, more: Iterable[tuple[Any, ...]] = (), without: Iterable[str] = ()) -> list[str]:
    path = fleet.folder / "measurements.csv"
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, [name for name in COLUMNS if name not in without], extrasaction="ignore")
        writer.writeheader()
        for row in (*fleet.rows, *more):
            at = row[0] if isinstance(row[0], str) else row[0].isoformat()
            writer.writerow(dict(zip(COLUMNS, (at, *row[1:]), strict=True)))
    return ["--measurements", str(path)]


def test_csv_and_json_lines_say_the_same_as_parquet(fleet: PlantedFleet) -> None:
    wanted = fleet.ask()
    assert name_nodes(wanted) == [node_name(3)]
    path = fleet.folder / "measurements.jsonl"
    rows = (dict(zip(COLUMNS, row, strict=True)) for row in fleet.rows)
    path.write_text("".join(json.dumps({**row, "time": row["time"].isoformat()}) + "\n" for row in rows))
    assert ask_files(write_csv(fleet), 109) == wanted
    assert ask_files(["--measurements", str(path)], 109) == wanted


def write_prometheus(fleet: PlantedFleet) -> list[str]:
    series: dict[str, list[list[Any]]] = {}
    for row in fleet.rows:
        series.setdefault(row[1], []).append([row[0].timestamp(), str(row[4])])
    result = [
        {"metric": {"__name__": "DCGM_FI_DEV_GPU_TEMP", "Hostname": node, "gpu": "0"}, "values": values}
        for node, values in series.items()
    ]
    path = fleet.folder / "range.json"
    path.write_text(json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}}))
    return ["--measurements", str(path)]


def test_a_range_of_prometheus_needs_a_unit_and_a_side(fleet: PlantedFleet) -> None:
    words = write_prometheus(fleet)
    answer = ask_files([*words, "--declare", "DCGM_FI_DEV_GPU_TEMP=C:up"], 109)
    (warning,) = answer["warnings"]
    assert (warning["node"], warning["subject"], warning["unit"]) == (node_name(3), "gpu0", "C")
    with pytest.raises(AssayError, match="nothing tells the unit of DCGM_FI_DEV_GPU_TEMP"):
        CliRunner().invoke(trends_app, words, catch_exceptions=False)
    with pytest.raises(AssayError, match="names no side"):
        CliRunner().invoke(trends_app, [*words, "--declare", "x=C:left"], catch_exceptions=False)
    better = ask_files([*words, "--declare", "DCGM_FI_DEV_GPU_TEMP=C:down"], 109)
    assert better["warnings"] == []


def test_a_declared_side_stands_for_a_limit(fleet: PlantedFleet) -> None:
    words = write_csv(fleet, without=("at_least", "at_most", "unit"))
    answer = ask_files([*words, "--declare", f"{fleet.name}=C:up"], 109)
    assert [(one["node"], one["limit"]) for one in answer["warnings"]] == [(node_name(3), None)]


def test_rows_that_cannot_be_right_are_refused_by_line(fleet: PlantedFleet) -> None:
    at, last = fleet.rows[-1][0], len(fleet.rows) + 1
    usual = (at, "n0001", "gpu0", fleet.name, 60.0, "C", None, 85.0)
    wrong = {
        "it has no node": (at, "", *usual[2:]),
        "it has no name": (*usual[:3], "", *usual[4:]),
        "its time is none": ("yesterday", *usual[1:]),
        "its value is no number": (*usual[:4], "hot", *usual[5:]),
        "at_least is above at_most": (*usual[:6], 90.0, 85.0),
        f"its unit is F, and that of {fleet.name} is C": (*usual[:4], 140.0, "F", *usual[6:]),
        "400.0 C is no temperature of a part; which unit has it?": (*usual[:4], 400.0, *usual[5:]),
    }
    answer = ask_files(write_csv(fleet, more=tuple(wrong.values())), 109)
    path = fleet.folder / "measurements.csv"
    assert answer["refused"] == [f"{path}:{last + number}: {reason}" for number, reason in enumerate(wrong, 1)]
    assert (answer["refused_rows"], name_nodes(answer)) == (len(wrong), [node_name(3)])


def test_holders_that_overlap_or_end_before_they_begin_are_refused(fleet: PlantedFleet) -> None:
    fleet.hold_all()
    fleet.hold(3, since=-50)
    fleet.hold(4, since=20, until=10)
    answer = fleet.ask()
    reasons = [line.rpartition(": ")[2] for line in answer["refused"]]
    assert reasons == ["another part was there at that time", "it ends before it begins"]
    assert (answer["series"], name_nodes(answer)) == (24, [node_name(3)])
