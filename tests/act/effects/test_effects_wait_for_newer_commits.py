"""A controller whose clone is behind brings nothing by its old spec, and judges nothing by it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from assay.act.actions.action import ActionContext, EffectIntent
from assay.act.effects import effect_attempt_and_verification as steps
from assay.act.effects.effect_journal import EFFECT_KINDS, journal_intent
from assay.model.entries.rollouts import CommitAdoptedEntry
from tests.act import standin_world as world

ZAP = EffectIntent("e1", "zap", "n1", "d1", "a merge")
REBOOT = EffectIntent("e2", "reboot", "n1", "d1", "a fault")


@pytest.fixture
def behind(rolling) -> ActionContext:
    """A controller with the fleet of before, after another one has adopted a merge."""
    older = rolling.context()
    rolling.set_version("2")
    rolling.take_up()
    return older


def attempt(context: ActionContext, action: world.Switch, intent: EffectIntent) -> list[str]:
    """Attempt and verify an effect that is in the journal; return the kinds of its entries."""
    intent = journal_intent(context, action, intent)
    steps.verify_effect(context, action, intent, steps.run_action(context, action, intent))
    return [entry.kind.removeprefix("effect.") for entry in context.ledger.entries(kinds=EFFECT_KINDS)]


def test_what_a_spec_declares_waits_until_the_clone_has_the_adopted_commit(rolling, behind):
    action = world.Switch(rolling.git.root)
    assert steps.must_wait_to_begin(behind, ZAP)
    assert attempt(behind, action, ZAP) == ["intent"], "neither attempted nor judged"
    assert "another controller works with the newer commit" in rolling.told[-1]
    assert not steps.must_wait_to_begin(rolling.context(), ZAP)
    assert attempt(rolling.context(), action, ZAP) == ["intent", "done", "verified"]


def test_a_commit_that_this_clone_does_not_have_counts_as_newer(rolling):
    context = rolling.context()
    adopted = CommitAdoptedEntry("f" * 40, context.fleet.commit)
    rolling.ledger.append(adopted.make_entry("elsewhere", rolling.clock.at.isoformat()))
    assert steps.must_wait_to_begin(context, ZAP)


def test_what_no_spec_declares_goes_on(rolling, behind):
    assert attempt(behind, world.Switch(rolling.git.root), REBOOT) == ["intent", "done", "verified"]


def test_a_controller_that_is_ahead_or_has_no_git_goes_on(rolling, behind):
    rolling.set_version("3")
    assert not steps.must_wait_to_begin(rolling.context(), ZAP), "nobody has adopted its commit yet"
    no_git = replace(behind, fleet=replace(behind.fleet, commit=""))
    assert not steps.must_wait_to_begin(no_git, ZAP)
