"""Burn-in and early failures: what parts read is ranked, and is said to foretell only where failures prove it."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from trends.parts.planted_parts import PlantedParts
from typer.testing import CliRunner

from assay.cli.verbs.evidence.trends import trends_app
from assay.ledger.store import Ledger
from assay.lifecycle.assets.asset_history import AssetReading, InstalledPart, NodeAssets, make_asset_entries
from assay.lifecycle.assets.node_setup import NodeSetup, make_setup_entry
from assay.model.entries import burn_in_entries as burn
from assay.model.ledger_entry import LedgerEntry
from assay.model.load.burn_in_spec import BurnIn
from assay.model.load.burn_in_window import BurnInWindow
from assay.trends.parts.acceptance_ranks import AcceptanceReport, judge_acceptances
from assay.trends.parts.acceptance_readings import Acceptance, list_acceptances
from assay.trends.parts.part_risks import list_odd_nodes
from assay.trends.parts.part_stays import FailedPart, FailureTimes, PartStay
from assay.trends.peers.measurement_tables import TrendFiles, open_tables

SPEC = BurnIn.model_validate(
    {"kind": "BurnIn", "name": "day", "owner": "o", "sources": ["s"], "description": "d",
     "phases": [{"name": "heat", "hours": 24, "parts": ["gpu_burn"], "finds": "weak cooling"}]}
)  # fmt: skip
START = datetime(2026, 3, 1, tzinfo=UTC)


def judge(fails: Callable[[float, random.Random], bool], today: float = 200, number: int = 400) -> AcceptanceReport:
    """Judge a delivery whose parts read random warmth; `fails` says whether a part does within 90 days."""
    chance = random.Random(3)
    accepted, stays, failures = [], [], []
    for place in range(number):
        node, reading = f"n{place:03}", chance.gauss(0, 1)
        warmer = 5.0 * (place % 2)
        accepted.append(Acceptance(node, f"gpu{place % 2}", f"S{place}", 10, {"temperature": reading + warmer}))
        stays.append(PartStay(node, f"gpu{place % 2}", "gpu", f"S{place}", "h100", "d1", "r", "p", 0, 1e9))
        if fails(reading, chance):
            failures.append(FailedPart(10 + chance.uniform(1, 89), node, f"gpu{place % 2}", "gpu.xid.79"))
    return judge_acceptances(accepted, stays, FailureTimes.collect(failures), today)


def test_a_quarter_that_fails_sooner_is_told_with_its_measure() -> None:
    report = judge(lambda reading, chance: chance.random() < (0.4 if reading > 0.67 else 0.03))
    (one,) = report.comparisons
    assert one.foretells
    assert one.failures[-1] > 3 * max(one.failures[:-1])
    assert report.verdict == "Parts of the worst quarter fail sooner: warmer than its neighbours at equal power"


@pytest.mark.parametrize(
    "fails",
    [
        lambda reading, chance: chance.random() < 0.1,
        lambda reading, chance: reading > 1.9,
        lambda reading, chance: chance.random() < (0.4 if reading < -0.67 else 0.03),
        lambda reading, chance: False,
    ],
    ids=["it foretells nothing", "fewer than 20 failures", "the best fail sooner", "nothing fails"],
)
def test_otherwise_an_odd_rank_only_means_tested_first(fails: Callable[[float, random.Random], bool]) -> None:
    report = judge(fails)
    assert not any(one.foretells for one in report.comparisons)
    assert report.verdict.endswith('an odd rank only means "tested first"')


def test_odd_parts_are_tested_first_for_ninety_days() -> None:
    def none(reading: float, chance: random.Random) -> bool:
        return False

    odd = judge(none, today=50).tested_first
    assert len(odd) == 20, "one in twenty"
    assert {part.acceptance.subject for part in odd} == {"gpu0", "gpu1"}, "a place that is always warmer is not odd"
    assert judge(none, today=101).tested_first == ()


def test_few_parts_are_no_delivery_to_be_ranked_in() -> None:
    assert judge(lambda reading, chance: True, number=7).parts == 0


def list_windows(warming: int = -1, slowing: int = -1, erring: int = -1) -> Iterator[BurnInWindow]:
    """A day of four GPUs, of which one changes against the others."""
    chance = random.Random(1)
    for number in range(1, 49):
        hours = number / 2
        gpus = {
            f"gpu{gpu}": {
                "temperature": 60 + chance.gauss(0, 0.3) + (hours / 3 if gpu == warming else 0),
                "power": 690.0,
                "gflops": 50_000 + chance.gauss(0, 50) - (hours * 80 if gpu == slowing else 0),
            }
            for gpu in range(4)
        }
        corrected = {f"gpu{gpu}": number * (5 if gpu == erring else 0) for gpu in range(4)}
        yield BurnInWindow(hours, "heat", {}, gpus, corrected)


def list_entries(node: str, windows: Iterator[BurnInWindow], outcome: burn.BurnInOutcome = "done") -> list[LedgerEntry]:
    serials = {f"gpu{gpu}": f"{node}-{gpu}" for gpu in range(4)}
    contents: list[burn.EntryContent] = [burn.BurnInStartedEntry("b", "day", 24)]
    contents += [
        burn.BurnInWindowEntry("b", "log", number, window.as_json(), "boot", serials)
        for number, window in enumerate(windows)
    ]
    contents.append(burn.BurnInEndedEntry("b", outcome, "", 24))
    times = (START + timedelta(minutes=30 * number) for number in range(len(contents)))
    return [one.make_entry(f"{node} {at}", at.isoformat(), node) for one, at in zip(contents, times, strict=True)]


def test_what_a_part_read_is_worst_for_the_part_that_changed() -> None:
    found = list(list_acceptances("n1", list_entries("n1", list_windows(1, 2, 3)), {"day": SPEC}))
    assert [one.serial for one in found] == ["n1-0", "n1-1", "n1-2", "n1-3"]
    for measure, worst in (
        ("temperature", 1), ("temperature_slope", 1), ("gflops", 2), ("gflops_slope", 2), ("corrected", 3)
    ):  # fmt: skip
        readings = [one.readings[measure] for one in found]
        assert readings.index(max(readings)) == worst, measure


def test_without_the_spec_no_change_is_told() -> None:
    found = list(list_acceptances("n1", list_entries("n1", list_windows(1)), {}))
    assert {name for one in found for name in one.readings} == {"gflops", "corrected"}


@pytest.mark.parametrize("outcome", ["failed", "incomplete", "stopped", "none"])
def test_a_burn_in_that_did_not_end_well_accepts_nothing(outcome: burn.BurnInOutcome) -> None:
    assert not list(list_acceptances("n1", list_entries("n1", list_windows(), outcome), {"day": SPEC}))


def test_nodes_with_an_odd_burn_in_are_known_for_the_order_of_tests(tmp_path: Path) -> None:
    ledger, planted = Ledger.open(tmp_path / "ledger.sqlite"), PlantedParts(tmp_path)
    for number in range(10):
        ledger.append(*list_entries(f"n{number}", list_windows(1 if number == 4 else -1)))
        for gpu in range(4):
            planted.hold(f"n{number}", f"gpu{gpu}", 0)
    holders, failures = (Path(word.partition("=")[2]) for word in planted.write())
    for days, first in ((30, ["n4"]), (100, [])):
        as_of = START + timedelta(days=days)
        with open_tables(TrendFiles(None, holders, failures), as_of) as database:
            assert list_odd_nodes(database, ledger, {"day": SPEC}, as_of)[:1] == first


def test_the_command_ranks_what_the_ledger_has(tmp_path: Path) -> None:
    for name in ("specs", "inventory"):
        shutil.copytree(Path(__file__).resolve().parents[3] / name, tmp_path / name)
    ledger = Ledger.open(tmp_path / ".assay" / "ledger.sqlite")
    for number in range(10):
        node = f"n{number}"
        parts = {f"gpu{gpu}": InstalledPart("gpu", f"{node}-{gpu}") for gpu in range(4)}
        setup = make_setup_entry(NodeSetup(), NodeSetup("r1", 4, "h100", "d1", {}), node, START)
        assert setup is not None
        ledger.append(*make_asset_entries(NodeAssets(), AssetReading(node, {}, parts), START), setup)
        ledger.append(*list_entries(node, list_windows(1 if number == 4 else -1)))
    ledger.close()
    words = ["burn-in", "--fleet", str(tmp_path), "--as-of", (START + timedelta(days=30)).isoformat()]
    told = CliRunner().invoke(trends_app, words)
    assert told.exit_code == 0, told.exception
    assert "40 parts in 1 group of one delivery and kind, 0 failures within 90 days of the burn-in" in told.stdout
    assert 'an odd rank only means "tested first"' in told.stdout
    assert "  n4 gpu1  " in told.stdout
    plain = json.loads(CliRunner().invoke(trends_app, [*words, "--format", "json"]).stdout)
    assert plain["tested_first"][0]["serial"] == "n4-1"
