"""Probation and soak: a node that came back from a repair is told, for two weeks, and what a longer soak catches."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from trends.parts.planted_parts import PlantedParts, moment
from trends.planted_history import PlantedLedger

from assay.ledger.store import Ledger
from assay.model.specs.trend_rules import ReturnDetector
from assay.trends.parts.part_risks import read_ledger_history
from assay.trends.parts.part_stays import FailedPart
from assay.trends.parts.service_returns import ServiceReturn, follow_returns, measure_return_hazard, merge_outages
from assay.trends.parts.soak_costs import measure_soaks

SERVES = frozenset({"production"})


@pytest.fixture
def planted(tmp_path: Path) -> PlantedParts:
    """Twenty nodes with a GPU each since day 0."""
    parts = PlantedParts(tmp_path)
    for number in range(20):
        parts.hold(f"n{number:02}", "gpu0", 0, until=100 if number < 4 else None)
    return parts


def test_the_same_part_again_is_a_repair_and_on_probation_for_two_weeks(planted: PlantedParts) -> None:
    planted.fail("n00", "gpu0", 99.5, "cable")
    planted.hold("n00", "gpu0", 100)
    (one,) = planted.ask("", 103)["probation"]
    assert one["because"] == "back 3 d after repair (cable): on probation until 04-25, tested first"
    assert (one["node"], one["subject"], one["repair"], one["days"]) == ("n00", "gpu0", "cable", 3.0)
    assert "n00 gpu0  back 3 d after repair (cable)" in planted.run("", 103).stdout
    assert planted.ask("", 113.9)["probation"]
    assert not planted.ask("", 114.1)["probation"]
    assert planted.ask("", 103)["warnings"] == [], "a probation is no warning"


@pytest.mark.parametrize(
    ("changes", "is_return"),
    [
        ({"firmware": "2"}, False),
        ({"rack": "r9"}, False),
        ({"serial": "S-other"}, True),
        ({"serial": "S-other", "rack": "r9"}, True),
        ({}, True),
    ],
    ids=["new firmware", "a move", "another part", "another part elsewhere", "a repair"],
)
def test_what_counts_as_a_return(planted: PlantedParts, changes: dict[str, str], is_return: bool) -> None:
    planted.hold("n00", "gpu0", 100, **changes)
    assert bool(planted.ask("", 103)["probation"]) is is_return


def test_all_parts_of_a_node_that_come_back_at_once_are_one_line(planted: PlantedParts) -> None:
    planted.hold("n00", "gpu1", 0, until=100)
    for subject in ("gpu0", "gpu1"):
        planted.hold("n00", subject, 100)
    (one,) = planted.ask("", 101)["probation"]
    assert one["subject"] == ""


def test_the_second_return_in_a_month_is_said(planted: PlantedParts) -> None:
    planted.hold("n00", "gpu0", 100, until=110)
    planted.hold("n00", "gpu0", 110)
    (one,) = planted.ask("", 110.25)["probation"]
    assert one["because"].startswith("back 6 h after repair, 2nd in 30 d: on probation until 05-05")


def test_what_happens_later_changes_no_answer(planted: PlantedParts) -> None:
    planted.fail("n00", "gpu0", 99.5)
    planted.hold("n00", "gpu0", 100)
    before = [planted.run(verb, 103, "--format", "json").stdout for verb in ("", "soak", "parts")]
    planted.fail("n00", "gpu0", 103.5)
    planted.fail("n07", "gpu0", 104)
    planted.hold("n01", "gpu0", 105)
    assert [planted.run(verb, 103, "--format", "json").stdout for verb in ("", "soak", "parts")] == before


def test_one_that_failed_again_or_is_gone_is_not_on_probation(planted: PlantedParts) -> None:
    planted.hold("n00", "gpu0", 100)
    planted.fail("n00", "gpu0", 102)
    planted.hold("n01", "gpu0", 100, until=102)
    planted.hold("n02", "gpu0", 100)
    planted.hold("n02", "gpu0", 100)
    assert [one["node"] for one in planted.ask("", 101)["probation"]] == ["n00", "n01", "n02"]
    assert [one["node"] for one in planted.ask("", 103)["probation"]] == ["n02"]
    assert planted.ask("", 103)["probation"][0]["returns_in_30_days"] == 1, "a row that is there twice is one"


def test_a_part_that_comes_back_to_its_place_starts_anew(planted: PlantedParts) -> None:
    planted.hold("n00", "gpu0", 100, until=110, serial="S-loan")
    planted.hold("n00", "gpu0", 110)
    (one,) = planted.ask("", 112)["probation"]
    assert one["returns_in_30_days"] == 2


def test_soak_by_hand() -> None:
    returns = [
        ServiceReturn(10.0, "a", "", "cable"),
        ServiceReturn(10.0, "b", "", "cable"),
        ServiceReturn(12.0, "c", "", "fan"),
    ]
    failures = [
        FailedPart(9.9, "a", "", "cable"),
        FailedPart(10.125, "a", "", "cable"),
        FailedPart(13.0, "c", "", "fan"),
    ]
    followed = follow_returns(returns, merge_outages(failures, returns), today=40.0)
    everything, cable, fan = measure_soaks(followed)
    assert (everything.repair, everything.returns, everything.failed, everything.known) == ("all repairs", 3, 2, 3)
    steps = {step.high: (step.caught, round(step.node_hours, 6)) for step in everything.steps}
    assert steps[1.0] == (0, 3.0)
    assert steps[6.0] == (1, 5 + 5 + 2), "a fails three hours after its return"
    assert steps[24.0] == (1, 18 + 18), "c fails a day after its return"
    assert steps[48.0] == (0, 24)
    assert cable.share is not None
    assert cable.share[0] == 0.5
    assert fan.as_json()["steps"][2] == {"from_hours": 6.0, "to_hours": 24.0, "caught": 1, "node_hours": 18.0}


def test_the_hazard_after_returns_by_hand() -> None:
    returns = [ServiceReturn(float(number), f"n{number}", "", "") for number in range(10)]
    failures = {f"n{number}": [number + 0.5] for number in range(5)}
    hazard = measure_return_hazard(follow_returns(returns, failures, 100.0), failures=5, node_days=1000.0)
    first, second, *_ = hazard.bands
    assert (first.failures, first.days) == (5, 5 * 0.5 + 5)
    assert first.times == pytest.approx(5 / 7.5 / 0.005)
    assert (second.failures, second.days, second.times) == (0, 10.0, 0.0)
    assert hazard.find(0.5) > hazard.find(2) > 0, "for the order, few failures are drawn towards the usual"


def test_failures_within_a_day_are_one_unless_the_node_came_back_between() -> None:
    failures = [FailedPart(at, "a", "", "x") for at in (1.0, 1.5, 2.4, 5.0)]
    assert merge_outages(failures, []) == {"a": [1.0, 5.0]}
    assert merge_outages(failures, [ServiceReturn(1.2, "a", "", "x")]) == {"a": [1.0, 1.5, 5.0]}


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    """Nodes of which one came back from a fault, one from new firmware, and one is still out."""
    planted = PlantedLedger(moment(0))
    planted.enrol("a", "b", "c", "d")
    planted.fail("a", "gpu3", "gpu.xid.79", moment(10), hours=24)
    planted.fail("a", "gpu3", "gpu.xid.79", moment(20), hours=24)
    planted.leave("b", moment(20), 4, [{"kind": "rollout", "id": "r", "text": "firmware"}])
    planted.fail("c", "", "host.memory", moment(21), hours=500)
    opened = Ledger.open(tmp_path / "ledger.sqlite")
    opened.append(*planted.in_order())
    return opened


def test_the_ledger_says_who_came_back_from_a_repair(ledger: Ledger) -> None:
    (found,) = read_ledger_history(ledger, SERVES, moment(24)).list_probation(ReturnDetector())
    one = found.as_json()
    assert (one["node"], one["subject"], one["repair"], one["returns_in_30_days"]) == ("a", "gpu3", "gpu.xid.79", 2)
    assert datetime.fromisoformat(one["returned"]) == moment(21) + timedelta(hours=1)
    assert datetime.fromisoformat(one["until"]).tzinfo is UTC


def test_the_ledger_says_which_repairs_held(ledger: Ledger) -> None:
    history = read_ledger_history(ledger, SERVES, moment(24))
    assert [(one.returned.node, one.failed) for one in history.followed] == [("a", True), ("a", False)]
    assert history.hazard.usual == pytest.approx(3 / (4 * (24 - 10 - 1 / 24)), rel=1e-6)
