"""The engine forgets workflows that ended long ago, and nothing that goes on; the ledger has all of it for ever."""

from __future__ import annotations

import base64
import pickletools
import sqlite3
import time
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from dbos import DBOS

from assay.act.actions.action import ActionContext, EffectFacts, EffectIntent, EffectVerification
from assay.act.effects import dbos_workflows
from assay.act.effects.effect_journal import EFFECT_KINDS
from assay.act.effects.pending_effect_runner import run_effects
from assay.act.effects.workflow_queues import count_unfinished_workflows, format_queue_name, keep_engine_running
from assay.act.loop.context import ControllerContext
from assay.ledger.store import Ledger
from assay.model.errors import AssayError
from tests.act.effects.batch_once import FileScheduler, declared, desk_of, moved

NODES = 5


class Done:
    patience_s = 0.0

    def before(self, ctx: ActionContext, intent: EffectIntent) -> EffectFacts:
        return {}

    def run(self, ctx: ActionContext, intent: EffectIntent) -> None:
        pass

    def verify(self, ctx: ActionContext, intent: EffectIntent) -> EffectVerification:
        return EffectVerification(True, "as it is")


def sent_to_zap(home: Path, per_minute: int) -> ControllerContext:
    desk = desk_of(home, FileScheduler(home))
    policy = next(iter(declared().policies.values()))
    limits = policy.limits.model_copy(update={"per_minute": per_minute})
    some = dict(list(desk.fleet.nodes.items())[:NODES])
    fleet = replace(desk.fleet, nodes=some, policies={policy.name: policy.model_copy(update={"limits": limits})})
    desk = replace(desk, fleet=fleet)
    desk.ledger.append(*moved(desk, "test", "zap", "d1"))
    return desk


@pytest.fixture(autouse=True)
def done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dbos_workflows, "load_action", lambda name: Done())


def standings() -> dict[str, int]:
    return Counter(one.status for one in DBOS.list_workflows(load_input=False, load_output=False))


def rows(home: Path) -> dict[str, int]:
    """Return how many rows of workflows each of the engine's tables has, where it has any."""
    with sqlite3.connect(home / "dbos.sqlite") as database:
        tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        of_workflows = [name for name in tables if name.startswith(("workflow", "operation"))]
        counted = {name: database.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in of_workflows}
    return {name: count for name, count in counted.items() if count}


def test_what_ended_long_ago_is_forgotten_and_what_waits_is_not(tmp_path, monkeypatch):
    desk = sent_to_zap(tmp_path, per_minute=3)
    with keep_engine_running():
        run_effects(desk, wait=False)
        until(standings, {"SUCCESS": 3, "ENQUEUED": 2})
        assert dbos_workflows.delete_old_workflows(desk.ledger) == 0, "they have only just ended"
        monkeypatch.setattr(dbos_workflows, "WORKFLOW_RETENTION", timedelta(0))
        assert (dbos_workflows.delete_old_workflows(desk.ledger), standings()) == (3, {"ENQUEUED": 2})


@pytest.mark.parametrize("place", ["sqlite", "postgresql"])
def test_unfinished_workflows_are_counted_without_the_engine(tmp_path, place, request):
    desk = sent_to_zap(tmp_path, per_minute=3)
    if place == "postgresql":
        desk = replace(desk, ledger=Ledger.open(request.getfixturevalue("database")))
        desk.ledger.append(*moved(desk, "test", "zap", "d1"))
    assert count_unfinished_workflows(desk) == []
    with keep_engine_running():
        run_effects(desk, wait=False)
        until(standings, {"SUCCESS": 3, "ENQUEUED": 2})
    (found,) = count_unfinished_workflows(desk)
    pool = next(iter(desk.fleet.nodes.values())).pool
    assert (found.queue, found.status, found.count) == (format_queue_name(pool), "ENQUEUED", 2)
    assert 0 <= time.time() - found.oldest_s < 600


def test_a_controller_that_starts_forgets_and_keeps_every_line_of_the_ledger(tmp_path, monkeypatch):
    desk = sent_to_zap(tmp_path, per_minute=1000)
    run_effects(desk)
    lines = desk.ledger.entries(kinds=EFFECT_KINDS)
    assert rows(desk.home)["workflow_status"] == NODES
    monkeypatch.setattr(dbos_workflows, "WORKFLOW_RETENTION", timedelta(0))
    with dbos_workflows.hold_engine(desk, []):
        pass
    assert rows(desk.home) == {}
    assert (desk.ledger.entries(kinds=EFFECT_KINDS), len(lines)) == (lines, 2 * NODES)


def test_the_next_attempt_has_a_name_of_its_own_when_the_first_is_forgotten(tmp_path):
    desk = sent_to_zap(tmp_path, per_minute=1000)
    node = next(iter(desk.fleet.nodes))
    wish = EffectIntent("e1", "zap", node, f"d1-{node}", "because")
    with keep_engine_running():
        run_effects(desk)
        first, second = (
            dbos_workflows.enqueue_effect(desk, wish),
            dbos_workflows.enqueue_effect(desk, wish),
        )
        until(lambda: dbos_workflows.find_ended_workflows([first, second]), {first, second})
        DBOS.delete_workflow(first)
        assert (first, second, dbos_workflows.enqueue_effect(desk, wish)) == (
            "e1",
            "e1.2",
            "e1.3",
        )


class Refused(Done):
    def run(self, ctx: ActionContext, intent: EffectIntent) -> None:
        raise AssayError("the BMC answered 500")

    def verify(self, ctx: ActionContext, intent: EffectIntent) -> EffectVerification:
        return EffectVerification(False, "as it was")


@pytest.mark.parametrize("action", [Done, Refused])
def test_what_the_engine_stores_names_no_class_so_that_a_new_release_can_read_it(tmp_path, monkeypatch, action):
    monkeypatch.setattr(dbos_workflows, "load_action", lambda name: action())
    desk = sent_to_zap(tmp_path, per_minute=1000)
    run_effects(desk)
    with sqlite3.connect(desk.home / "dbos.sqlite") as database:
        steps = [text for (text,) in database.execute("SELECT output FROM operation_outputs")]
        whole = [text for row in database.execute("SELECT inputs, output FROM workflow_status") for text in row]
    assert len(steps) == 3 * NODES
    for text in filter(None, [*steps, *whole]):
        names = {operation.name for operation, _, _ in pickletools.genops(base64.b64decode(text))}
        assert not names & {"GLOBAL", "STACK_GLOBAL", "INST", "REDUCE", "NEWOBJ"}


def until(told, expected: object) -> None:
    end = time.monotonic() + 60
    while told() != expected:
        assert time.monotonic() < end, f"{told()} did not become {expected}"
        time.sleep(0.05)
