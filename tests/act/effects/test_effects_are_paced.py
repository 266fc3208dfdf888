"""The policy's limits pace what was decided: so many at once in a pool and in each rack, and so many a minute."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from assay.act.actions.action import ActionContext, EffectFacts, EffectIntent, EffectVerification
from assay.act.effects import dbos_workflows
from assay.act.effects.effect_attempt_and_verification import must_wait_to_begin
from assay.act.effects.effect_journal import EFFECT_KINDS, journal_intent
from assay.act.effects.pending_effect_runner import run_effects
from assay.act.effects.workflow_queues import keep_engine_running
from assay.act.loop.context import ControllerContext
from assay.model.node import Node
from assay.model.specs.policy_sections import EffectConcurrency
from tests.act.effects.batch_once import FileScheduler, declared, desk_of, moved


class Watched:
    """Takes its time, and knows how many did so at once in each rack and in all."""

    patience_s = 0.0

    def __init__(self, racks: dict[str, str], seconds: float) -> None:
        self.racks, self.seconds, self.done, self.begun = racks, seconds, set[str](), list[str]()
        self.now, self.most, self.lock = Counter[str](), Counter[str](), threading.Lock()

    def before(self, ctx: ActionContext, intent: EffectIntent) -> EffectFacts:
        return {}

    def run(self, ctx: ActionContext, intent: EffectIntent) -> None:
        with self._inside("pool"), self._inside(self.racks[intent.node]):
            self.begun.append(intent.node)
            time.sleep(self.seconds)
            self.done.add(intent.node)

    def verify(self, ctx: ActionContext, intent: EffectIntent) -> EffectVerification:
        return EffectVerification(intent.node in self.done, "as it is")

    @contextmanager
    def _inside(self, where: str) -> Iterator[None]:
        with self.lock:
            self.now[where] += 1
            self.most[where] = max(self.most[where], self.now[where])
        yield
        with self.lock:
            self.now[where] -= 1


def paced(home: Path, pool: int, rack: int, per_minute: int) -> ControllerContext:
    """Return the desk of twelve nodes in three racks that all were sent to zap."""
    desk = desk_of(home, FileScheduler(home))
    policy = next(iter(declared().policies.values()))
    at_once = {"effects_at_once": EffectConcurrency(pool=pool, rack=rack), "per_minute": per_minute}
    policy = policy.model_copy(update={"limits": policy.limits.model_copy(update=at_once)})
    nodes = {
        name: Node(name, "h100-a", "s1", f"r{i % 3}", i, "", "", "")
        for i, name in enumerate(list(desk.fleet.nodes)[:12])
    }
    desk = replace(desk, fleet=replace(desk.fleet, nodes=nodes, policies={policy.name: policy}))
    desk.ledger.append(*moved(desk, "test", "zap", "d1"))
    return desk


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch):
    def put(desk: ControllerContext, seconds: float) -> Watched:
        action = Watched({node.name: node.rack for node in desk.fleet.nodes.values()}, seconds)
        monkeypatch.setattr(dbos_workflows, "load_action", lambda name: action)
        return action

    return put


def test_so_many_at_once_in_a_pool_and_in_a_rack(tmp_path: Path, watched):
    desk = paced(tmp_path, pool=4, rack=2, per_minute=1000)
    action = watched(desk, 0.4)
    run_effects(desk)
    assert sorted(action.begun) == sorted(desk.fleet.nodes), "each once"
    assert action.most["pool"] <= 4
    assert max(action.most[rack] for rack in ("r0", "r1", "r2")) <= 2
    assert action.most["pool"] > 1, "and not one after the other"


def test_no_more_than_so_many_begin_within_a_minute_and_the_loop_goes_on_meanwhile(tmp_path: Path, watched):
    desk = paced(tmp_path, pool=12, rack=12, per_minute=5)
    action = watched(desk, 0.0)
    with keep_engine_running():
        begun = time.monotonic()
        run_effects(desk, wait=False)
        assert time.monotonic() - begun < 60, "it did not wait for what is paced: that takes two minutes"
        until(lambda: len(action.begun) == 5)
        time.sleep(1.0)
        run_effects(desk, wait=False)
        assert len(action.begun) == 5


def test_a_controller_that_goes_on_is_paced_by_the_policy_that_it_reads_now(tmp_path: Path, watched):
    desk = paced(tmp_path, pool=12, rack=12, per_minute=1)
    action = watched(desk, 0.0)
    with keep_engine_running():
        run_effects(desk, wait=False)
        until(lambda: len(action.begun) == 1)
        run_effects(paced(tmp_path, pool=12, rack=12, per_minute=1000), wait=False)
        until(lambda: len(action.begun) == 12)


def test_who_stops_a_controller_waits_for_no_deed_and_the_ledger_has_it_open(tmp_path: Path, watched):
    desk = paced(tmp_path, pool=2, rack=2, per_minute=1000)
    action = watched(desk, 600.0)
    with keep_engine_running():
        run_effects(desk, wait=False)
        until(lambda: len(action.begun) == 2)
        begun = time.monotonic()
    until(lambda: not [one for one in threading.enumerate() if one.name.startswith("dbos-executor") and not one.daemon])
    assert time.monotonic() - begun < 300, "a deed takes twice as long"
    kinds = [entry.kind for entry in desk.ledger.entries(kinds=EFFECT_KINDS)]
    assert kinds == ["effect.intent"] * 2, "what had not begun was not journalled"


def test_what_a_killed_controller_began_counts_before_somebody_takes_it_up(tmp_path: Path, watched):
    desk = paced(tmp_path, pool=3, rack=2, per_minute=1000)
    action, names = watched(desk, 0.0), list(desk.fleet.nodes)
    intents = [EffectIntent(f"e{name}", "zap", name, "d1", "") for name in names]

    def waits() -> list[str]:
        return [intent.node for intent in intents if must_wait_to_begin(desk, intent)]

    journal_intent(desk, action, intents[0])
    assert waits() == []
    journal_intent(desk, action, intents[3])
    assert waits() == names[6::3], "the others of its rack"
    journal_intent(desk, action, intents[1])
    begun = {names[0], names[1], names[3]}
    assert waits() == [name for name in names if name not in begun], "what has begun goes on"


def until(true: Callable[[], object]) -> None:
    end = time.monotonic() + 120
    while not true():
        assert time.monotonic() < end, "it did not come true in time"
        time.sleep(0.05)
