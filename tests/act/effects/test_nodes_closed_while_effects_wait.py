"""An effect that waited in its queue or for its next attempt does nothing on a node that others closed meanwhile."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from assay.act.actions.action import ActionContext, EffectFacts, EffectIntent, EffectVerification
from assay.act.effects import dbos_workflows
from assay.act.effects import effect_attempt_and_verification as steps
from assay.act.effects.effect_journal import EFFECT_KINDS, derive_effect_id, journal_intent
from assay.act.effects.pending_effect_runner import run_effects
from assay.act.effects.workflow_queues import keep_engine_running
from assay.act.loop.reconcile_pass import record_decisions
from assay.act.loop.snapshot import FleetSnapshotCache
from assay.decide.state.outstanding_effects import list_outstanding_effects
from assay.model.errors import AssayError
from tests.act.quiet_site import NODES, Far, Site

ONE, OTHER = NODES[0], NODES[4]
FANS = "bob: fans"


class Restart:
    """Restarts nodes, and counts; it ends when the test says so, and may fail on the way."""

    patience_s = 0.0

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.done: set[str] = set()
        self.may_end = threading.Event()
        self.says = ""

    def before(self, context: ActionContext, intent: EffectIntent) -> EffectFacts:
        return {}

    def run(self, context: ActionContext, intent: EffectIntent) -> None:
        self.begun.append(intent.node)
        assert self.may_end.wait(60)
        if self.says:
            raise AssayError(self.says)
        self.done.add(intent.node)

    def verify(self, context: ActionContext, intent: EffectIntent) -> EffectVerification:
        return EffectVerification(intent.node in self.done, "as it is")


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """A site whose pool restarts one node at a time."""
    (tmp_path / "home").mkdir()
    made = Site(tmp_path / "ledger.sqlite", tmp_path / "home")
    made.later(minutes=1)
    policy = made.desk.policy
    one_at_once = policy.limits.effects_at_once.model_copy(update={"pool": 1})
    policy = policy.model_copy(
        update={"limits": policy.limits.model_copy(update={"effects_at_once": one_at_once, "per_minute": 1000})}
    )
    made.desk = replace(made.desk, fleet=replace(made.desk.fleet, policies={policy.name: policy}))
    yield made
    made.ledger.close()


@pytest.fixture
def restart(monkeypatch: pytest.MonkeyPatch) -> Restart:
    action = Restart()
    monkeypatch.setattr(dbos_workflows, "load_action", lambda _: action)
    return action


def owe_reboot(site: Site, *names: str) -> Mapping[str, str]:
    """Send nodes to a reboot; settle what comes before it. Return the id of each reboot."""
    memory = FleetSnapshotCache(site.desk)
    for name in names:
        site.fault(name)
    record_decisions(memory)
    for name in names:
        site.settle(name, only="cordon")
        site.settle(name, only="drain-now")
        site.settle(name, only="collect")
    states = memory.node_states()
    owed = {name: list_outstanding_effects(site.desk.policy, states[name]) for name in names}
    assert all([one.action for one in effects] == ["reboot"] for effects in owed.values())
    return {name: derive_effect_id(effects[0].decision, "reboot") for name, effects in owed.items()}


def journal(site: Site, name: str, effect: str) -> list[str]:
    entries = site.ledger.entries(name, EFFECT_KINDS)
    return [entry.kind.removeprefix("effect.") for entry in entries if entry.body["effect"] == effect]


def until(true) -> None:
    end = time.monotonic() + 120
    while not true():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_a_node_that_is_closed_while_its_reboot_waits_in_the_queue_is_not_restarted(site: Site, restart: Restart):
    effects = owe_reboot(site, ONE, OTHER)
    with keep_engine_running():
        run_effects(site.desk, wait=False)
        until(lambda: restart.begun)
        (first,) = restart.begun
        second = OTHER if first == ONE else ONE
        site.far.cordons[second] = FANS
        restart.may_end.set()
        until(lambda: not dbos_workflows.find_running_workflows(list(effects.values())))
        assert restart.begun == [first]
        assert journal(site, second, effects[second]) == [], "nothing was begun"
        assert f"{second}: closed by others ({FANS}), so assay waits" in site.said

        site.far.cordons[second] = ""
        run_effects(site.desk)
        run_effects(site.desk)
    assert restart.begun == [first, second], "once, as soon as it is open"
    assert journal(site, second, effects[second]) == ["intent", "done", "verified"]


def test_a_reboot_that_failed_is_not_tried_again_under_a_persons_hands(site: Site, restart: Restart):
    (effect,) = owe_reboot(site, ONE).values()
    restart.says = "the BMC answered 500"
    restart.may_end.set()
    run_effects(site.desk)
    assert journal(site, ONE, effect)[-1] == "tried"
    site.far.cordons[ONE] = FANS
    restart.says = ""
    site.later(hours=1)
    run_effects(site.desk)
    assert restart.begun == [ONE]
    assert journal(site, ONE, effect)[-1] == "tried", "the wait uses up no attempt"
    site.far.cordons[ONE] = ""
    run_effects(site.desk)
    assert restart.begun == [ONE, ONE]
    assert journal(site, ONE, effect)[-1] == "verified"


@pytest.mark.parametrize("is_silent", [False, True])
def test_a_restart_that_a_killed_controller_left_is_not_repeated_on_a_closed_node(
    site: Site, restart: Restart, is_silent: bool
):
    (effect,) = owe_reboot(site, ONE).values()
    begun = journal_intent(site.desk, restart, EffectIntent(effect, "reboot", ONE, "d1", "x"))
    site.far.cordons[ONE], site.far.silent = FANS, is_silent
    attempt = steps.run_action(site.desk, restart, begun, taken_up=True)
    assert (restart.begun, attempt.is_unfinished) == ([], True)
    assert attempt.error.startswith("others closed the node")


def test_what_a_person_ordered_goes_on(site: Site, restart: Restart):
    site.say("move", ONE, to="zap", reason="new BIOS, bob knows")
    memory = FleetSnapshotCache(site.desk)
    record_decisions(memory)
    assert memory.node_states()[ONE].transitions[-1].is_order
    site.far.cordons[ONE] = FANS
    restart.may_end.set()
    intent = EffectIntent("e1", "drain-now", ONE, "d1", "x")
    assert steps.run_action(site.desk, restart, journal_intent(site.desk, restart, intent)).error == ""
    assert restart.begun == [ONE]


def test_far_is_asked_for_nothing_that_disturbs_nobody(site: Site, restart: Restart):
    assert isinstance(site.far, Far)
    asked = len(site.far.asked)
    restart.may_end.set()
    intent = EffectIntent("e1", "dossier", ONE, "d1", "x")
    steps.run_action(site.desk, restart, journal_intent(site.desk, restart, intent))
    assert (len(site.far.asked), restart.begun) == (asked, [ONE])
