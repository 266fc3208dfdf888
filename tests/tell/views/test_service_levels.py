"""What pools delivered of their service level in a month: every hour is counted by hand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from pydantic import ValidationError

from assay.decide.state.node_state import NodeState
from assay.decide.state.service_absences import JudgedTimes, Times
from assay.declare.loader import load_fleet
from assay.model.fleet import Fleet
from assay.model.outcome import SuiteRun
from assay.model.specs.node_settings import AgreedLevel, PoolCapacity
from assay.model.timestamps import parse_time
from assay.tell.views.pool_delivery import ORDERED, TOO_FEW, ServiceLevelRow, list_service_levels
from tests.support.places import ROOT
from tests.tell.views.test_reliability import BEGIN, END, XID, at, fault, node

LEVEL = {
    "percent": 99,
    "since": "2026-11-01",
    "credit": [{"below": 99, "percent": 10}, {"below": 95, "percent": 25}],
    "source": "contract 7",
}


def declare(*names: str, delivered: int = 2, **terms: str) -> Fleet:
    """Return a fleet whose one pool agreed to deliver so many nodes."""
    fleet = load_fleet(ROOT)
    capacity = PoolCapacity(delivered=delivered, spares=1, service_level=AgreedLevel.model_validate(LEVEL | terms))
    some = next(iter(fleet.nodes.values()))
    settings = some.settings.model_copy(update={"capacity": capacity})
    return replace(fleet, nodes={name: replace(some, name=name, pool="a", settings=settings) for name in names})


def measure(
    fleet: Fleet, *states: NodeState, now: datetime = END, unjudged: Mapping[str, Times] | None = None
) -> list[ServiceLevelRow]:
    return list(list_service_levels(fleet, states, BEGIN, now, unjudged or {}))


def test_what_a_spare_delivers_is_not_lost() -> None:
    out = node("n1", -50, "production", (10, "triage", "f1"), (40, "production", "d"), faults=[fault("f1", 10, 40)])
    spare = node("n3", -50, "production", (-40, "spare", "d"), (14, "production", "d"), (42, "spare", "d"))
    whole, cause = measure(declare("n1", "n2", "n3"), out, node("n2", -50, "production"), spare)
    # n1 is out for 30 h, and its spare serves from the fifth hour on
    assert (whole.declared_hours, whole.delivered_hours, whole.lost_hours, whole.unknown_hours) == (200, 196, 4, 0)
    assert (whole.agreed_percent, whole.percent, whole.credit_percent, whole.credit_at_most_percent) == (99, 98, 10, 10)
    assert (cause.cause, cause.lost_hours, cause.nodes, cause.decisions) == (XID, 4, ("n1",), ("d-n1-10",))


def test_hours_of_one_moment_are_shared_by_the_nodes_that_are_out_then() -> None:
    one = node("n1", -50, "production", (10, "triage", "f1"), faults=[fault("f1", 10, None)])
    two = node("n2", -50, "production", (30, "triage", ""), (70, "production", ""))
    whole, first, second = measure(declare("n1", "n2", "n3"), one, two, node("n3", -50, "production"))
    # of three nodes two are to serve: one lacks while two are out, for 40 h, and each is out for half of it
    assert (whole.lost_hours, whole.percent, whole.credit_percent) == (40, 80, 25)
    assert {first.cause: first.lost_hours, second.cause: second.lost_hours} == {XID: 20, ORDERED: 20}


def test_hours_that_nobody_knows_are_neither_delivered_nor_lost_and_bound_the_credit() -> None:
    fleet = declare("n1", "n2")
    states = [node(name, -50, "production") for name in ("n1", "n2")]
    [whole] = measure(fleet, *states, unjudged={"n1": [(parse_time(at(90)), END)]})
    assert (whole.delivered_hours, whole.unknown_hours, whole.lost_hours) == (190, 10, 0)
    assert (whole.percent, whole.credit_percent, whole.credit_at_most_percent) == (100, 0, 10)
    [dark] = measure(fleet, *states, unjudged={name: [(BEGIN, END)] for name in ("n1", "n2")})
    assert (dark.percent, dark.credit_percent, dark.credit_at_most_percent) == (None, None, 25)


def test_a_level_counts_from_its_day_to_the_end_of_the_month() -> None:
    states = [node(name, -50, "production", (24 * 29, "triage", "")) for name in ("n1", "n2")]
    fleet = declare("n1", "n2", since="2026-11-29")
    whole, cause = measure(fleet, *states, now=BEGIN + timedelta(days=90))
    assert (whole.since[:10], whole.until[:10]) == ("2026-11-29", "2026-12-01")
    assert (whole.declared_hours, whole.delivered_hours, cause.lost_hours) == (96, 48, 48)
    assert measure(fleet, *states, now=BEGIN + timedelta(days=3)) == [], "it has not begun"


def test_a_pool_with_too_few_nodes_loses_what_they_would_deliver() -> None:
    whole, cause = measure(declare("n1"), node("n1", 0, "test", (40, "production", "d")))
    assert (whole.delivered_hours, cause.cause, cause.lost_hours) == (60, TOO_FEW, 140)


def test_before_the_first_node_was_enrolled_nothing_is_known() -> None:
    [whole] = measure(declare("n1", "n2"), *(node(name, 60, "production") for name in ("n1", "n2")))
    assert (whole.declared_hours, whole.delivered_hours, whole.unknown_hours, whole.lost_hours) == (200, 80, 120, 0)
    [empty] = measure(declare("n1", "n2"))
    assert (empty.unknown_hours, empty.percent) == (200, None)


def judge(*runs: tuple[float, str], of: NodeState, now: datetime = END) -> dict[str, Times]:
    """Return when a node was not judged; each run has its hour and its nodes."""
    judged = JudgedTimes(BEGIN - timedelta(hours=1), timedelta(hours=1))
    for hour, names in runs:
        judged.add(SuiteRun(f"run-{hour}", at(hour), nodes=tuple(names.split())), ["n1", "n2"])
    return {of.node: judged.list_gaps(of, now)}


def test_while_no_controller_judged_a_node_nothing_of_it_is_known() -> None:
    n1 = node("n1", 0, "production")
    hourly = [(float(hour), "n1 n2") for hour in range(101) if not 20 < hour < 60]
    unjudged = judge(*hourly, of=n1)
    assert unjudged == {"n1": [(parse_time(at(20)), parse_time(at(60)))]}
    [whole] = measure(declare("n1", delivered=1), n1, unjudged=unjudged)
    assert (whole.delivered_hours, whole.unknown_hours, whole.lost_hours) == (60, 40, 0)
    assert (whole.percent, whole.credit_percent, whole.credit_at_most_percent) == (100, 0, 25)


def test_a_run_of_other_nodes_says_nothing_and_a_run_of_all_nodes_does() -> None:
    n1 = node("n1", 0, "production")
    assert judge((0.5, "n1"), (1, "n2"), (1.5, ""), (2, "n2"), (3, "n1"), of=n1, now=parse_time(at(5))) == {
        "n1": [(parse_time(at(1.5)), parse_time(at(3))), (parse_time(at(3)), parse_time(at(5)))]
    }
    assert judge(of=n1) == {"n1": [(parse_time(at(0)), END)]}, "it was never judged"


def test_hours_that_are_not_known_for_two_reasons_count_once() -> None:
    silent = node("n1", 0, "production", faults=[fault("f1", 10, 30, "telemetry.lost", "probe")])
    unjudged = {"n1": [(parse_time(at(20)), parse_time(at(40))), (parse_time(at(35)), END)]}
    [whole] = measure(declare("n1", delivered=1), silent, unjudged=unjudged)
    assert (whole.delivered_hours, whole.unknown_hours) == (10, 90)


def test_a_level_without_a_source_is_none() -> None:
    with pytest.raises(ValidationError, match="source"):
        AgreedLevel.model_validate({key: value for key, value in LEVEL.items() if key != "source"})
