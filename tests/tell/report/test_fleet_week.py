"""The manager's part of the report: this week of the fleet beside the week before, by what happened in both."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from assay.declare.loader import load_fleet
from assay.model.entries.node_entries import TransitionEntry
from assay.model.specs.serving import AccessRules
from assay.model.ticket import Ticket, TicketEvent, TicketRecord
from assay.model.timestamps import parse_time
from assay.tell.report.fleet_week import MAX_ROWS, FleetWeek, LossCause, build_fleet_week
from assay.tell.report.overview_phrases import change
from tests.decide.conftest import Paper, catalog, paper, policy, profiles  # noqa: F401 — the policy is the real one
from tests.support.places import ROOT

NODES = 40
XID = "gpu.xid.79"


@pytest.fixture
def week(paper: Paper) -> Callable[..., FleetWeek]:  # noqa: F811
    """Return what makes the week of the fleet on paper."""
    fleet = load_fleet(ROOT)
    access = AccessRules.model_validate({"visitors": {"acme": {"role": "customer", "pools": ["a"]}}})
    policies = {name: one.model_copy(update={"access": access}) for name, one in fleet.policies.items()}

    def build(*tickets: TicketRecord, **unread: str) -> FleetWeek:
        declared = replace(fleet, nodes=paper.nodes, policies=policies)
        unknown = {node: [(parse_time(since), paper.now)] for node, since in unread.items()}
        return build_fleet_week(declared, paper.stories(), tickets, paper.now, unknown)

    return build


@pytest.fixture
def serving(paper: Paper) -> Paper:  # noqa: F811
    for number in range(NODES):
        paper.add(f"n{number}", rack=f"r{number}", pool="a" if number < NODES // 2 else "b")
    return paper


def lose(paper: Paper, name: str, hours: float) -> None:  # noqa: F811
    """Let a GPU fall off the bus, which takes the node out of service, and bring it back."""
    paper.fault(name, XID, "gpu4")
    paper.step()
    state = paper.story(name).state
    assert state != "production"
    paper.later(hours=hours)
    back = TransitionEntry(state, "production", "d-back")
    paper.write(back.make_entry(f"back-{name}-{paper.serial}", paper.now.isoformat(), name))


def test_a_node_that_nobody_knows_is_not_said_to_serve(serving: Paper, week: Callable[..., FleetWeek]) -> None:
    serving.later(days=2)
    pool, other = week(n1="", n2=serving.now.isoformat()).pools
    assert (pool.serving, pool.unread, pool.shares[0]) == (NODES // 2 - 2, 2, 1.0)
    assert (other.serving, other.unread) == (NODES // 2, 0)


def test_what_took_nodes_out_stands_beside_the_week_before(serving: Paper, week: Callable[..., FleetWeek]) -> None:
    serving.later(days=2)
    lose(serving, "n1", hours=10)
    serving.later(days=6)
    for name in ("n2", "n3", "n4"):
        lose(serving, name, hours=20)
        serving.later(hours=10)
    serving.later(days=2)
    serving.say("move", "n5", to="triage")
    seen = week()
    cause = seen.causes[0]
    assert XID in cause.title
    assert cause.next_step
    assert (cause.incidents, cause.hours) == ((3, 1), (pytest.approx(60, abs=0.1), pytest.approx(10, abs=0.1)))
    assert change(cause) == "+50.0 h, 3.0 times the incidents: may be chance"
    ours = 20 * 168
    levels = {level.name: level.shares for level in (*seen.pools, *seen.customers)}
    assert (
        levels["a"]
        == levels["acme"]
        == (pytest.approx(1 - 60 / ours, abs=1e-3), pytest.approx(1 - 10 / ours, abs=1e-3))
    )
    assert levels["b"] == (1.0, 1.0)
    assert dict(seen.states)["production"] == (NODES, NODES)


def test_a_week_ago_stands_beside_now(serving: Paper, week: Callable[..., FleetWeek]) -> None:
    serving.later(days=6)
    serving.fault("n1", XID, "gpu4")
    serving.step()
    state = serving.story("n1").state
    serving.later(days=2)
    seen = week()
    assert dict(seen.states) == {"production": (NODES - 1, NODES), state: (1, 0)}
    assert seen.causes[0].hours == (pytest.approx(48, abs=0.1), 0)
    assert sum(level.serving for level in seen.pools) == NODES - 1
    serving.later(days=7)
    assert week().causes[0].hours == (pytest.approx(168, abs=0.1), pytest.approx(48, abs=0.1)), "it is still out"


def test_a_fleet_that_began_this_week_has_no_week_before(serving: Paper, week: Callable[..., FleetWeek]) -> None:
    serving.later(days=2)
    seen = week()
    assert seen.pools[0].shares == (1.0, None)
    assert (dict(seen.states), seen.causes) == ({"production": (NODES, 0)}, ())


@pytest.mark.parametrize(("incidents", "is_sure"), [((3, 1), False), ((12, 2), True), ((2, 12), True), ((5, 5), False)])
def test_a_change_that_may_be_chance_is_said_to_be_one(incidents: tuple[int, int], is_sure: bool) -> None:
    assert LossCause("x", incidents, (0, 0), "").is_sure is is_sure


def test_a_ranking_has_ten_rows_and_counts_the_rest(serving: Paper, week: Callable[..., FleetWeek]) -> None:
    kinds = [name for name, each in serving.catalog.classes.items() if each.severity == "degraded"][: MAX_ROWS + 3]
    for number, kind in enumerate(kinds):
        serving.fault(f"n{number}", kind)
    serving.later(hours=1)
    seen = week()
    assert (len(seen.causes), seen.more_causes) == (MAX_ROWS, 3)


def test_tickets_are_counted_by_age_and_by_what_became_of_them(serving: Paper, week: Callable[..., FleetWeek]) -> None:
    serving.later(days=20)

    def ticket(number: int, days: float, closed_days: float | None = None) -> TicketRecord:
        at, closed = ago(serving.now, days), ago(serving.now, closed_days) if closed_days is not None else ""
        events = [TicketEvent(at, "opened"), *([TicketEvent(closed, "closed")] if closed else [])]
        one = Ticket(f"t{number}", f"k{number}", "Reseat gpu4", "n1", severity="degraded")
        return TicketRecord(one, at, closed_at=closed, history=tuple(events))

    seen = week(ticket(1, 0.5), ticket(2, 3), ticket(3, 6), ticket(4, 12), ticket(5, 9, 2), ticket(6, 13, 8))
    assert seen.tickets == (("degraded", (1, 2, 1)),)
    assert (seen.opened, seen.done) == ((3, 3), (1, 1))


def ago(now: datetime, days: float) -> str:
    return (now - timedelta(days=days)).isoformat()


def test_nodes_that_were_closed_because_of_a_fault_are_counted(serving: Paper, week: Callable[..., FleetWeek]) -> None:
    serving.fault("n1", XID, "gpu4")
    serving.step()
    actions: Any = serving.settle("n1")
    assert "cordon" in actions
    serving.later(hours=1)
    assert week().closed == (1, 0)
    serving.later(days=7)
    assert week().closed == (0, 1)
