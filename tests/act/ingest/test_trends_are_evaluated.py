"""The evaluation of trends opens a warning with a fault, and closes both by what becomes of the part."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from assay.act.ingest.trend_evaluation import TrendEvaluation, evaluate_trends
from assay.act.loop.projections import read_node_states
from assay.act.loop.reconcile_pass import record_decisions
from assay.act.loop.snapshot import FleetSnapshotCache
from assay.act.schedules.idle_visits import order_idle_nodes
from assay.decide.state.asset_history import (
    AssetReading,
    InstalledPart,
    NodeAssets,
    NodeSetup,
    make_asset_entries,
    make_setup_entry,
)
from assay.ledger.history.parquet_files import history_folder
from assay.model.entries.faults import FaultEntry, TrendClosedEntry, TrendWarnedEntry
from assay.model.timestamps import format_time
from tests.act.quiet_site import FLEET, NODES, Site
from tests.decide.trends.planted_history import PlantedReading, keep_planted

BEGIN, DAYS = datetime(2026, 6, 1, 6, tzinfo=UTC), 150
WARM, ONSET = NODES[7], 85
MOMENT = BEGIN + timedelta(days=105)


def list_readings() -> Iterator[PlantedReading]:
    """Yield two temperatures a node and day, of which one climbs."""
    chance = random.Random(3)
    for number in range(DAYS):
        for place in ("gpu0", "gpu1"):
            for index, node in enumerate(NODES):
                climb = max(0, number - ONSET) * 0.6 if (node, place) == (WARM, "gpu1") else 0.0
                value = 55 + index % 5 + chance.gauss(0, 0.5) + climb
                at = BEGIN + timedelta(days=number)
                yield PlantedReading(at, node, place, name="gpu_temperature", value=value, unit="C", at_most=85.0)


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("reports")
    keep_planted(home / "history", list_readings())
    return home


@pytest.fixture
def warm(tmp_path: Path, history: Path) -> Iterator[Site]:
    """The example fleet, with months of history, on the day of the warning."""
    site = make_site(tmp_path, history)
    yield site
    site.ledger.close()


def make_site(folder: Path, history: Path) -> Site:
    (folder / "home" / "reports").mkdir(parents=True)
    (folder / "home" / "reports" / "history").symlink_to(history / "history")
    site = Site(folder / "ledger.sqlite", folder / "home")
    for index, node in enumerate(NODES):
        parts = {f"gpu{gpu}": InstalledPart("gpu", f"S{index}-{gpu}") for gpu in range(2)}
        at = BEGIN - timedelta(days=1)
        setup = make_setup_entry(NodeSetup(), NodeSetup("lab/r1", 4, "h100", "", {"driver": "570.1"}), node, at)
        assert setup is not None
        site.ledger.append(*make_asset_entries(NodeAssets(), AssetReading(node, {}, parts), at), setup)
    site.clock.at = MOMENT
    return site


def list_open_faults(site: Site) -> list[tuple[str, str, str]]:
    faults = read_node_states(site.ledger)[WARM].faults
    return [(fault.fault_class, fault.subject, fault.severity) for fault in faults if fault.is_open]


def break_part(site: Site, place: str = "gpu1") -> None:
    at = format_time(site.clock.now())
    body = {
        "fault": f"f79-{place}",
        "class": "gpu.xid.79",
        "subject": f"h100-a/{WARM}/{place}",
        "severity": "catastrophic",
    }
    fault = FaultEntry.from_body({**body, "blame": "hardware", "first_seen": at, "last_seen": at})
    site.ledger.append(fault.make_entry(f"f79 {place}", at, WARM))


def list_outcomes(evaluation: TrendEvaluation) -> list[str]:
    return [one.outcome for one in evaluation.closed]


def test_a_part_that_gets_warmer_is_a_warning_and_a_fault_that_takes_nothing_out(warm: Site) -> None:
    evaluation = evaluate_trends(warm.desk)
    ((node, warned),) = evaluation.opened
    assert (node, warned.place, warned.serial, warned.rule) == (WARM, "gpu1", "S7-1", "heat")
    assert "1 new warnings" in evaluation.summary
    assert list_open_faults(warm) == [("trend.heat", f"h100-a/{WARM}/gpu1", "informational")]
    record_decisions(FleetSnapshotCache(warm.desk))
    assert [one.body["timing"] for one in warm.ledger.entries(kinds=["decision"])] == ["record"], "it is only noted"


def test_the_same_again_adds_nothing(warm: Site) -> None:
    evaluate_trends(warm.desk)
    head = warm.ledger.head()
    assert evaluate_trends(warm.desk).opened == ()
    warm.later(days=3)
    assert evaluate_trends(warm.desk).opened == ()
    assert warm.ledger.head() == head


def test_its_node_is_tested_first(warm: Site) -> None:
    nodes = [FLEET.nodes[name] for name in NODES]
    assert order_idle_nodes(warm.desk, nodes) == nodes
    evaluate_trends(warm.desk)
    first, *others = order_idle_nodes(warm.desk, nodes)
    assert first.name == WARM
    assert others == [node for node in nodes if node.name != WARM]


def test_the_failure_of_the_part_proves_it_right_and_ends_its_fault(warm: Site) -> None:
    evaluate_trends(warm.desk)
    warm.later(days=9)
    break_part(warm, "gpu0")
    assert list_outcomes(evaluate_trends(warm.desk)) == [], "another GPU"
    break_part(warm)
    assert list_outcomes(evaluate_trends(warm.desk)) == ["right"]
    (closed,) = (TrendClosedEntry.read(one) for one in warm.ledger.entries(kinds=[TrendClosedEntry.kind]))
    assert (closed.fault, closed.lead_days) == ("f79-gpu1", 9.0)
    assert "trend.heat" not in [name for name, _, _ in list_open_faults(warm)]


@pytest.mark.slow
def test_a_warning_that_nothing_follows_is_wrong_after_its_horizon(warm: Site) -> None:
    evaluate_trends(warm.desk)
    warm.later(days=29)
    assert list_outcomes(evaluate_trends(warm.desk)) == []
    warm.later(days=2)
    assert list_outcomes(evaluate_trends(warm.desk)) == ["wrong"]


def test_an_exchanged_part_overtakes_it(warm: Site) -> None:
    evaluate_trends(warm.desk)
    warm.later(days=4)
    known = NodeAssets(parts={"gpu1": InstalledPart("gpu", "S7-1")})
    reading = AssetReading(WARM, {}, {"gpu1": InstalledPart("gpu", "NEW")})
    warm.ledger.append(*make_asset_entries(known, reading, warm.clock.now()))
    assert list_outcomes(evaluate_trends(warm.desk)) == ["overtaken"]


def test_a_damaged_file_of_history_is_left_out_and_named(warm: Site) -> None:
    day = f"day={(MOMENT - timedelta(days=9)).date()}"
    damaged = history_folder(warm.desk.reports) / "measurements" / day / "x.parquet"
    damaged.write_bytes(b"no parquet")
    evaluation = evaluate_trends(warm.desk)
    damaged.unlink()
    assert len(evaluation.opened) == 1
    assert f"left out: {damaged}: this file of history cannot be read" in evaluation.summary
    assert str(damaged) in (warm.desk.reports / "trends" / "answer.json").read_text()


def test_the_answer_is_kept_for_pages(warm: Site) -> None:
    evaluate_trends(warm.desk)
    assert WARM in (warm.desk.reports / "trends" / "answer.json").read_text()
    (warm.desk.reports / "trends" / "answer.json").write_text("{")
    assert evaluate_trends(warm.desk).opened == (), "a spoilt file is written anew"
    assert len(warm.ledger.entries(kinds=[TrendWarnedEntry.kind])) == 1
