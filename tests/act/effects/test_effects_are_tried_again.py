"""What went wrong on the way is tried again, later each time and not for ever; what was done in vain is not."""

from __future__ import annotations

import ast
import inspect
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from assay.act.actions.action import ACTION_NAMES, ActionContext, EffectIntent, UnfinishedAction, load_action
from assay.act.effects import effect_attempt_and_verification as steps
from assay.act.effects.effect_journal import EFFECT_KINDS, journal_intent, parse_effects
from assay.act.effects.pending_effect_runner import STATUS_VERIFIERS, run_effects
from assay.model.entries.rollouts import CommitAdoptedEntry
from assay.model.specs.policy_sections import EffectRetryPolicy
from tests.act import standin_world as world
from tests.act.effects.batch_once import FileScheduler, desk_of, moved

WISH = EffectIntent("e1", "reboot", "n0001", "d1", "because")
START = datetime(2026, 11, 1, 8, 0, tzinfo=UTC)


class Hand:
    """A clock that is set by hand; to sleep is to set it."""

    def __init__(self) -> None:
        self.time = START

    def now(self) -> datetime:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.time += timedelta(seconds=seconds)


@pytest.fixture
def ctx(tmp_path: Path) -> ActionContext:
    return replace(world.context(tmp_path), clock=Hand())


def carried(ctx: ActionContext, action: world.Switch) -> list[str]:
    """Carry the wish once; return the kinds of what the ledger has."""
    intent = journal_intent(ctx, action, WISH)
    steps.verify_effect(ctx, action, intent, steps.run_action(ctx, action, intent))
    return [entry.kind.removeprefix("effect.") for entry in ctx.ledger.entries(kinds=EFFECT_KINDS)]


def test_trouble_is_tried_again_with_growing_waits_and_fails_after_the_last(ctx: ActionContext):
    action = world.Switch(ctx.home, works=False, says="the BMC answered 500")
    assert carried(ctx, action)[-1] == "tried"
    assert carried(ctx, action)[-1] == "tried"
    assert carried(ctx, action) == ["intent", "done", "tried", "done", "tried", "done", "failed"]

    tries = ctx.ledger.entries(kinds=["effect.tried"])
    waits = [datetime.fromisoformat(one.body["again_at"]) - datetime.fromisoformat(one.at) for one in tries]
    assert waits == [timedelta(minutes=1), timedelta(minutes=5)]
    assert tries[0].body["reason"] == "the level is 0; the BMC answered 500"
    (effect,) = parse_effects(ctx.ledger.entries(kinds=EFFECT_KINDS)).values()
    assert (effect.has_ended, effect.attempts) == (True, 2)


def test_what_was_done_without_trouble_and_did_not_help_has_failed_at_once(ctx: ActionContext):
    assert carried(ctx, world.Switch(ctx.home, works=False)) == ["intent", "done", "failed"]


@pytest.mark.parametrize(("action", "merged_before", "end"), [
    ("zap", False, "tried"), ("zap", True, "failed"), ("reboot", False, "failed"),
])  # fmt: skip
def test_what_brings_the_specs_is_attempted_again_after_a_merge(ctx: ActionContext, action, merged_before, end):
    merge = CommitAdoptedEntry("c2", "c1").make_entry("merge", START.isoformat())
    switch, wish = world.Switch(ctx.home, works=False), replace(WISH, action=action)
    if merged_before:
        ctx.ledger.append(merge)
    intent = journal_intent(ctx, switch, wish)
    attempt = steps.run_action(ctx, switch, intent)
    ctx.ledger.append(merge)
    steps.verify_effect(ctx, switch, intent, attempt)
    assert ctx.ledger.entries(kinds=EFFECT_KINDS)[-1].kind == f"effect.{end}"


def test_a_second_attempt_that_works_ends_it(ctx: ActionContext):
    carried(ctx, world.Switch(ctx.home, works=False, says="busy"))
    assert carried(ctx, world.Switch(ctx.home)) == ["intent", "done", "tried", "done", "verified"]


def test_an_attempt_whose_end_is_not_known_is_told_even_after_another(ctx: ActionContext):
    carried(ctx, world.Switch(ctx.home, works=False, says="busy"))
    assert carried(ctx, world.Switch(ctx.home, dark=True))[-1] == "unknown"


class Late(world.Switch):
    """Is cut short, and happens all the same after a while."""

    patience_s = 100.0

    def run(self, ctx: ActionContext, intent: EffectIntent) -> None:
        self.at = ctx.clock.now() + timedelta(seconds=50)
        raise UnfinishedAction("ansible-playbook ended canceled in the middle")

    def level(self) -> int:
        return int(hasattr(self, "at") and self.ctx.clock.now() > self.at)


def test_what_was_cut_short_is_given_its_time_since_it_may_happen_all_the_same(ctx: ActionContext):
    action = Late(ctx.home)
    action.ctx = ctx
    assert carried(ctx, action) == ["intent", "done", "verified"]


def test_a_refused_order_waits_for_its_time_and_says_when_that_is(tmp_path: Path):
    scheduler, clock = FileScheduler(tmp_path), Hand()
    scheduler.refuses = "slurm says: not permitted"
    desk = replace(desk_of(tmp_path, scheduler, count=3), clock=clock)
    desk.ledger.append(*moved(desk, "production", "draining", "d1"))

    due = run_effects(desk)
    assert datetime.fromisoformat(due) - START == timedelta(minutes=0.2)
    orders = scheduler.asked
    assert run_effects(desk) == due, "not before its time"
    assert scheduler.asked == orders

    clock.time += timedelta(minutes=1)
    scheduler.refuses = ""
    assert run_effects(desk) == ""
    told = Counter(entry.kind.removeprefix("effect.") for entry in desk.ledger.entries(kinds=EFFECT_KINDS))
    assert told == {"intent": 3, "done": 6, "tried": 3, "verified": 3}


def test_the_last_wait_counts_for_all_further_attempts():
    effort = EffectRetryPolicy(attempts=9, waits_minutes=[1, 4])
    assert [effort.backoff.wait_s(number) / 60 for number in (1, 2, 3, 8)] == [1, 4, 4, 4]


@pytest.mark.parametrize("name", ACTION_NAMES)
def test_every_action_names_what_undoes_it_or_why_nothing_does(name: str):
    undone_by = load_action(name).undone_by
    statements = ast.parse(inspect.getsource(load_action(name))).body
    number = next(n for n, one in enumerate(statements) if ast.unparse(one) == f"undone_by = {undone_by!r}")
    reason = statements[number + 1]
    assert undone_by in STATUS_VERIFIERS or (isinstance(reason, ast.Expr) and isinstance(reason.value, ast.Constant))
