"""Nodes that nothing new is known of: noticed, told at the second sweep, over when they are judged again."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from assay.act.loop.context import ControllerContext
from assay.act.schedules.due_slots import SLOT_RAN, ScheduleLine, SlotTask
from assay.act.schedules.slot_runner import run_slot_task
from assay.act.schedules.staleness_sweep import sweep_stale_nodes
from assay.model.ledger_entry import LedgerEntry
from assay.model.outcome import Outcome, SuiteRun
from assay.model.specs.check_catalog import CheckCatalog
from assay.model.specs.schedules import FleetSchedule, find_previous_slot
from assay.validate.runs.subjects import list_declared_outcomes
from tests.act.schedules.by_hand import in_production

POOL = [f"n{number:04}" for number in range(3, 7)]
SWEEP = FleetSchedule(does="staleness-sweep", every_minutes=15, stale_minutes={"production": 30, "fabric": 780})
LINE = ScheduleLine("stale", "h100-a", SWEEP, "UTC")


@pytest.fixture
def serving(desk: ControllerContext) -> ControllerContext:
    """Return the desk of four nodes in production, of which a few checks are asked."""
    fleet = desk.fleet
    every = [
        check
        for listed in fleet.check_catalogs.values()
        for check in listed.checks
        if check.subject in ("node", "gpu", "hca")
    ]
    few = [
        check
        for phase in ("production", "fabric", "test")
        for check in every
        if phase in check.phases and not check.is_observe_only
    ]
    asked = CheckCatalog(kind="CheckCatalog", name="few", checks=few[::9])
    fleet = replace(fleet, nodes={name: fleet.nodes[name] for name in POOL}, check_catalogs={"few": asked})
    assert {phase for check in asked.checks for phase in check.phases} >= {"production", "fabric"}
    in_production(served := replace(desk, fleet=fleet))
    return served


@pytest.fixture
def fresh(serving: ControllerContext) -> ControllerContext:
    """Return the same, when all were judged a moment ago."""
    judge(serving, *POOL)
    return serving


def judge(
    desk: ControllerContext, *names: str, phases: tuple[str, ...] = ("production", "fabric"), verdict: str = "pass"
) -> None:
    """Record an outcome of now for every check that production asks of these nodes."""
    asked = {
        name: [one for one in list_declared_outcomes(desk.fleet, name) if set(phases) & set(one[0].phases)]
        for name in names
    }
    outcomes = [
        Outcome(check.id, str(subject), name, verdict, evidence="x", evidence_at=desk.now, phases=tuple(check.phases))
        for name, pairs in asked.items()
        for check, subject in pairs
    ]
    desk.ledger.record(SuiteRun(f"run-{desk.now}-{names[0]}", desk.now), outcomes)


def sweep(desk: ControllerContext, minutes: float = 15) -> str:
    """Let minutes pass, sweep, and return what was said of it."""
    desk.clock.sleep(minutes * 60)
    task = SlotTask(LINE, find_previous_slot(SWEEP, "UTC", desk.clock.now()))
    assert run_slot_task(desk, task, jobs={"staleness-sweep": sweep_stale_nodes})
    return desk.ledger.entries(kinds=[SLOT_RAN])[-1].body["reason"]


def told(desk: ControllerContext) -> list[tuple[str, str]]:
    return [
        (one.kind, one.body.get("subject", one.node)) for one in desk.ledger.entries(kinds=["fault", "fault.cleared"])
    ]


def test_nodes_that_are_judged_in_time_are_not_stale(fresh):
    assert sweep(fresh) == "4 nodes looked at, none is stale"
    assert sweep(fresh) == "4 nodes looked at, none is stale"
    assert told(fresh) == []


def test_a_node_that_is_judged_no_more_is_told_at_the_second_sweep_and_over_when_it_is_again(fresh):
    sweep(fresh)
    judge(fresh, *POOL[1:])
    sweep(fresh, 16)
    assert told(fresh) == [], "the look that mends it may be under way"
    judge(fresh, *POOL[1:])
    assert "n0003" in sweep(fresh)
    assert told(fresh) == [("fault", "h100-a/n0003/judgement")]
    [fault] = fresh.ledger.entries(kinds=["fault"])
    assert fault.body["class"] == "telemetry.lost"
    assert "46 min old, and may be 30 min" in fault.body["detail"]
    judge(fresh, *POOL)
    sweep(fresh)
    sweep(fresh, 1e-9 + 15)
    assert told(fresh)[1:] == [("fault.cleared", "n0003")]


def test_a_node_that_never_was_judged_is_stale_once_it_is_there_for_longer(serving):
    judge(serving, *POOL[1:])
    sweep(serving)
    assert told(serving) == []
    judge(serving, *POOL[1:])
    sweep(serving, 16)
    judge(serving, *POOL[1:])
    sweep(serving)
    [fault] = serving.ledger.entries(kinds=["fault"])
    assert "was never there" in fault.body["detail"]


def test_what_was_judged_without_evidence_does_not_count(fresh):
    fresh.ledger.record(
        SuiteRun("blind", fresh.now),
        [
            Outcome(check.id, str(subject), "n0003", "error", "no evidence", phases=tuple(check.phases))
            for check, subject in list_declared_outcomes(fresh.fleet, "n0003")
            if "production" in check.phases
        ],
    )
    fresh.clock.sleep(1)
    for _ in range(4):
        judge(fresh, *POOL[1:])
        sweep(fresh)
    assert told(fresh) == [("fault", "h100-a/n0003/judgement")]


def test_many_at_once_are_a_controller_that_did_not_look(fresh):
    for _ in range(4):
        said = sweep(fresh)
    assert said.startswith("4 of 4 nodes of h100-a are judged by nothing new since 2026-11-21 12:00 UTC: more likely")
    assert told(fresh) == []


def test_a_state_in_which_nobody_judges_makes_nobody_stale(fresh):
    fresh.ledger.append(
        LedgerEntry("t", fresh.now, "transition", "n0003", {"from": "production", "to": "triage", "decision": ""})
    )
    for _ in range(3):
        judge(fresh, *POOL[1:])
        assert sweep(fresh) == "3 nodes looked at, none is stale"


def test_what_stays_fresh_for_longer_is_given_longer(fresh):
    for _ in range(2):
        judge(fresh, *POOL, phases=("production",))
        assert sweep(fresh, 25).endswith("none is stale")
    fresh.clock.sleep(timedelta(hours=13).total_seconds())
    judge(fresh, *POOL, phases=("production",))
    assert "4 of 4" in sweep(fresh)
