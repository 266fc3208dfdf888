"""The replays of public sets: on small files of the same form, what is planted is found, and the future is not read."""

from __future__ import annotations

import csv
import json
import random
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from assay.trends.parts.part_stays import FailedPart
from assay.trends.parts.service_returns import ServiceReturn
from bench.trend_replays import (
    TITAN_FROM,
    Ranked,
    find_auc,
    find_base,
    find_precision,
    judge_positions,
    judge_probation,
    list_outages,
    rank_gpus,
    rank_nodes,
)
from bench.trend_sets import NodeTrace, TitanLives, read_titan, read_trace

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
TITAN_END = 1700
DAYS = [Ranked([5, 4, 3, 2, 1, 0, 0, 0], [True, False, True, False, False, False, True, False])]


def test_the_figures_by_hand() -> None:
    assert find_base(DAYS) == 3 / 8
    assert find_precision(DAYS, lambda _: 3) == 2 / 3
    assert find_precision(DAYS, lambda _: 6) == pytest.approx((2 + 1 / 3) / 6), "of three equal ones, one failed"
    assert find_auc(DAYS) == pytest.approx((5 + 4 + 1) / 15)


@pytest.fixture
def trace(tmp_path: Path) -> NodeTrace:
    """A trace in which a tenth of the nodes come back twice, the second time soon after the first."""
    chance, events = random.Random(6), []
    for number in range(200):
        at = chance.uniform(0, 300)
        for _ in range(3 if number % 10 == 0 else 1):
            for kind, when in (("fault_start", at), ("fault_end", at + 0.2)):
                fault = {"Level": "Hardware Failure", "Class": "GPU", "Desc": "x"}
                events.append({"node_id": f"u{number}", "event_time": when, "event_type": kind, "fault_type": fault})
            at += 0.2 + chance.uniform(1.5, 6)
    (tmp_path / "fault_trace.json").write_text(json.dumps(events))
    found = read_trace(tmp_path)
    assert found is not None
    return found


def test_nodes_that_are_back_are_the_first_to_fail_again(trace: NodeTrace) -> None:
    figures = {one.what: one for one in judge_probation(trace)}
    assert figures["InfiniteHBD: first 5 on probation, 7 days: lift"].figure > 3
    assert len(list_outages(trace)) == 400, "also those that never failed"


def test_a_failure_within_a_day_of_the_return_is_no_new_outage() -> None:
    failures = [FailedPart(at, "a", "", "GPU") for at in (1.0, 2.0, 4.0)]
    returns = [ServiceReturn(at, "a", "", "GPU") for at in (1.5, 2.5, 4.5)]
    assert list_outages(NodeTrace(failures, returns))["a"] == [1.0, 4.0]


def test_the_order_of_a_day_does_not_see_the_next(trace: NodeTrace) -> None:
    def cut(day: float) -> NodeTrace:
        return NodeTrace(
            [one for one in trace.failures if one.at <= day], [one for one in trace.returns if one.at <= day]
        )

    outages = list_outages(trace)
    assert rank_nodes(trace, outages, 150.0, 7).scores == rank_nodes(cut(150.0), outages, 150.0, 7).scores


def test_the_same_trace_as_csv(trace: NodeTrace, tmp_path: Path) -> None:
    events = json.loads((tmp_path / "fault_trace.json").read_text())
    (tmp_path / "csv").mkdir()
    with (tmp_path / "csv" / "fault_trace.csv").open("w", newline="") as lines:
        writer = csv.writer(lines)
        writer.writerow(["node_id", "event_time", "event_type", "Class"])
        writer.writerows([one["node_id"], one["event_time"], one["event_type"], "GPU"] for one in events)
    assert read_trace(tmp_path / "csv") == trace


@pytest.fixture
def titan(tmp_path: Path) -> TitanLives:
    """Four hundred GPUs of which those in cage 2 fail often, each with a row where it stayed."""
    chance, rows, names = random.Random(9), [], []
    for number in range(400):
        cage, serial = number % 3, f"03{number:011}"
        place = f"c{number % 5}-0c{cage}s{number % 8}n{number % 4}"
        names.append((serial, "old"))
        fails = chance.expovariate(1 / (600 if cage == 2 else 20_000))
        event = "DBE" if fails < TITAN_END else ""
        end = min(fails, TITAN_END)
        rows.append((serial, f"{place}", day(0), day(end), 0, bool(event), event))
    write(tmp_path / "gc_full.csv", ["SN", "location", "insert", "remove", "duration", "out", "event"], rows)
    write(tmp_path / "gc_summary_loc.csv", ["SN", "batch"], names)
    found = read_titan(tmp_path)
    assert found is not None
    return found


def day(after: float) -> str:
    """A time some days after 500 days before the first date that is asked."""
    return (EPOCH + timedelta(days=TITAN_FROM - 500 + after)).strftime("%Y-%m-%d %H:%M:%S")


def write(path: Path, head: list[str], rows: list[tuple[object, ...]]) -> None:
    with path.open("w", newline="") as lines:
        writer = csv.writer(lines)
        writer.writerow(head)
        writer.writerows(rows)


def test_positions_that_fail_often_are_ranked_first(titan: TitanLives) -> None:
    figures = {one.what: one.figure for one in judge_positions(titan)}
    assert figures["Titan: worst positions, 60 days: AUC"] > 0.7
    assert figures["Titan: worst positions, 60 days: worst 5 %"] > 1.5


def test_the_rank_of_a_position_does_not_see_later_failures(titan: TitanLives) -> None:
    early = TitanLives(titan.stays, [one for one in titan.failures if one.at <= TITAN_FROM])
    assert rank_gpus(titan, TITAN_FROM).scores == rank_gpus(early, TITAN_FROM).scores


def test_a_folder_without_sets_has_none(tmp_path: Path) -> None:
    assert read_trace(tmp_path) is None
    assert read_titan(tmp_path) is None
