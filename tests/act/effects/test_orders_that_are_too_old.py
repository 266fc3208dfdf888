"""A controller that was paused finds old orders before it acts."""

from __future__ import annotations

import sqlite3
from dataclasses import replace

import pytest

from assay.act.actions.action import EffectIntent
from assay.act.effects import pending_effect_runner as runner
from assay.act.effects.gates import hold_outlived_orders, must_wait_for_trust
from assay.act.loop.reconcile_pass import record_decisions
from assay.act.loop.snapshot import FleetSnapshotCache
from assay.act.orders.orders import OperatorIdentity, answer_wait, list_fleet_waits
from assay.act.tickets.fleet_tickets import make_trust_tickets
from assay.ledger.store import Ledger
from assay.model.decision import DecisionCause
from assay.model.entries.rollouts import RolloutGroup, RolloutStartedEntry
from assay.model.specs.trust_rules import TrustRules
from tests.act.loop.test_nothing_leaves_at_watch import ACT, NODE, Recorder, decided
from tests.act.quiet_site import FLEET


def age_passes(desk, hours: float) -> None:
    """Let the last pass of every stage have ended so many hours ago."""
    with sqlite3.connect(desk.home / "passes.sqlite") as data:
        data.execute("UPDATE pass SET ended_s = ended_s - ?", (hours * 3600,))


def kinds(ledger: Ledger, node: str = "") -> list[str]:
    return [entry.kind for entry in ledger.entries(node or None)]


@pytest.fixture
def ordered(site):
    """A site with an order that waits for a job, and whose cordon is verified."""
    site.far.jobs[NODE] = ("job 7",)
    site.say("move", NODE, to="triage")
    memory = FleetSnapshotCache(site.desk)
    record_decisions(memory)
    site.settle(NODE)
    return site


def test_a_drain_goes_on_while_a_controller_looks(ordered):
    ordered.later(hours=40)
    memory = FleetSnapshotCache(ordered.desk)
    record_decisions(memory)
    assert "order.outlived" not in kinds(ordered.ledger, NODE)
    ordered.far.jobs[NODE] = ()
    record_decisions(memory)
    assert memory.node_states()[NODE].state == "draining"


def test_after_a_pause_of_the_controller_the_order_waits_and_nothing_is_done(ordered):
    ordered.later(hours=40)
    age_passes(ordered.desk, 40)
    ordered.far.jobs[NODE] = ()
    memory = FleetSnapshotCache(ordered.desk)
    for _ in range(3):  # the first look ends the pause, and the order waits all the same
        record_decisions(memory)
    state = memory.node_states()[NODE]
    assert (state.state, kinds(ordered.ledger, NODE).count("order.outlived")) == ("production", 1)
    ordered.say("approved", NODE, decision=state.move_request.id)
    record_decisions(memory)
    assert memory.node_states()[NODE].state == "draining"


def test_a_no_takes_back_an_order_that_has_outlived_its_time(ordered):
    ordered.later(hours=40)
    age_passes(ordered.desk, 40)
    memory = FleetSnapshotCache(ordered.desk)
    for _ in range(2):
        record_decisions(memory)
    state = memory.node_states()[NODE]
    (wait,) = list_fleet_waits(ordered.desk.fleet, [state])
    assert wait.kind == "order"
    answer = answer_wait(wait, state, OperatorIdentity("ann", "not any more", ordered.desk.now), is_yes=False)
    ordered.ledger.append(answer.entry)
    for _ in range(2):
        record_decisions(memory)
    state = memory.node_states()[NODE]
    assert (state.state, state.move_request, state.pending) == ("production", None, None)
    assert list_fleet_waits(ordered.desk.fleet, [state]) == []


def test_an_effect_of_an_order_waits_after_a_pause_before_anything_is_decided(site, monkeypatch):
    there = Recorder()
    monkeypatch.setattr(runner, "load_action", lambda _: there)
    why = (DecisionCause("person", "move-1", "ann asked"),)
    decision = decided(site, "reboot", why, rule="p.yaml:1 person")
    desk = replace(site.desk, fleet=ACT, workloads=lambda _: there)
    site.later(hours=5)
    runner.run_effects(desk)  # no pass was made yet: nobody knows for how long it was paused
    assert there.calls == []
    assert any("did not go on" in line for line in site.said)
    intent = EffectIntent("e", "reboot", NODE, decision, "x")
    assert must_wait_for_trust(desk, intent)
    site.say("approved", NODE, decision="move-1")
    assert not must_wait_for_trust(desk, intent)


def test_a_rollout_is_paused_after_a_pause_of_its_controller(site):
    group = RolloutGroup("zap", "bmc 1 → 2", "aa", (NODE,))
    site.ledger.append(RolloutStartedEntry("r1", "aa", "bb", (group,)).make_entry("r1", site.desk.now))
    record_decisions(FleetSnapshotCache(site.desk))
    site.later(hours=30)
    assert not hold_outlived_orders(site.desk, {}), "a controller looked after it"
    age_passes(site.desk, 30)
    assert hold_outlived_orders(site.desk, {})
    paused = FleetSnapshotCache(site.desk).rollouts.find_active()
    assert (paused.status, paused.pause.rule) == ("paused", "age")


def test_what_waits_for_a_yes_has_a_ticket_that_says_how(site):
    fleet = replace(
        FLEET,
        policies={FLEET.policy.name: FLEET.policy.model_copy(update={"trust": TrustRules(fleet="suggest")})},
        is_lab=False,
    )
    site.fault(NODE)
    memory = FleetSnapshotCache(replace(site.desk, fleet=fleet))
    record_decisions(memory)
    [ticket] = make_trust_tickets(fleet, memory.build_snapshot())
    assert "assay approve" in ticket.steps
    assert "undo:" in ticket.steps
    [wait] = memory.node_states()[NODE].trust.held
    site.say("declined", NODE, decision=wait.decision)
    assert list(make_trust_tickets(fleet, memory.build_snapshot())) == []
