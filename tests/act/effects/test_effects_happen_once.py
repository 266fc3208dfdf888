"""An effect happens once and is proved by a look at the world, wherever the process that carries it is killed."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from assay.act.actions.action import EffectIntent
from assay.act.effects import effect_attempt_and_verification as steps
from assay.act.effects.effect_journal import EFFECT_KINDS, journal_intent, parse_effects
from assay.ledger.store import Ledger
from tests.act import standin_world as world
from tests.support.places import ROOT

WISH = EffectIntent("e1", "reboot", "n0001", "d1", "because")


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    return world.context(tmp_path)


def kinds(ledger: Ledger) -> list[str]:
    return [entry.kind for entry in ledger.entries(kinds=EFFECT_KINDS)]


def test_the_intent_is_journalled_with_what_was_true_before(desk):
    action = world.Switch(desk.home)

    begun = journal_intent(desk, action, WISH)

    assert begun.before == {"level": 0}
    assert kinds(desk.ledger) == ["effect.intent"]


def test_a_begun_effect_keeps_its_first_before_facts(desk):
    action = world.Switch(desk.home)
    journal_intent(desk, action, WISH)
    action.run(desk, WISH)

    assert journal_intent(desk, action, WISH).before == {"level": 0}


def test_what_is_done_already_is_not_done_again(desk):
    action = world.Switch(desk.home)
    intent = journal_intent(desk, action, WISH)
    steps.run_action(desk, action, intent)
    steps.run_action(desk, action, intent)

    assert action.runs() == 1


def test_an_action_that_says_it_failed_is_verified_when_the_world_says_done(desk):
    action = world.Switch(desk.home, says="the playbook ended 2")
    intent = journal_intent(desk, action, WISH)
    steps.verify_effect(desk, action, intent, steps.run_action(desk, action, intent))

    assert kinds(desk.ledger) == ["effect.intent", "effect.done", "effect.verified"]


def test_an_action_that_says_it_worked_has_failed_when_the_world_says_not_done(desk):
    action = world.Switch(desk.home, works=False)
    intent = journal_intent(desk, action, WISH)
    steps.verify_effect(desk, action, intent, steps.run_action(desk, action, intent))

    assert kinds(desk.ledger) == ["effect.intent", "effect.done", "effect.failed"]


def test_a_world_that_cannot_be_read_makes_the_effect_unknown_and_only_a_later_look_leaves_that(desk):
    action = world.Switch(desk.home, dark=True)
    intent = journal_intent(desk, action, WISH)
    steps.verify_effect(desk, action, intent, steps.run_action(desk, action, intent))
    assert kinds(desk.ledger)[-1] == "effect.unknown"

    (effect,) = parse_effects(desk.ledger.entries(kinds=EFFECT_KINDS)).values()
    assert not effect.has_ended
    steps.reverify_effect(desk, action, effect)
    assert kinds(desk.ledger)[-1] == "effect.unknown", "still dark: nothing new is written"

    steps.reverify_effect(desk, world.Switch(desk.home), effect)
    assert kinds(desk.ledger)[-1] == "effect.verified"
    assert action.runs() == 1, "looking again is not doing again"


def test_a_bug_in_an_action_is_no_proof_of_anything(desk):
    action = world.Switch(desk.home, bug=True)
    intent = journal_intent(desk, action, WISH)
    proof = steps.verify_effect(desk, action, intent, steps.run_action(desk, action, intent))

    assert proof.done is None
    assert "internal error: ZeroDivisionError" in proof.reason


@pytest.mark.parametrize("moment", ["before", "during", "after"])
def test_a_killed_process_leaves_an_effect_that_the_next_one_finishes_once(tmp_path: Path, moment: str):
    first = _carry(tmp_path, hang=moment)
    _until((tmp_path / "hanging").exists)
    os.kill(first.pid, signal.SIGKILL)
    first.wait()

    second = _carry(tmp_path, hang="never")
    out, err = second.communicate(timeout=60)

    assert second.returncode == 0, err
    assert json.loads(out)["left"] == "e1", "the next process finds what was left before it starts anything"
    ledger = Ledger.open(tmp_path / "ledger.sqlite")
    assert kinds(ledger).count("effect.intent") == 1
    assert kinds(ledger).count("effect.verified") == 1
    assert world.Switch(tmp_path).runs() == 1


def test_what_a_killed_process_may_have_done_is_not_done_again_while_the_world_cannot_be_read(desk, tmp_path: Path):
    first = _carry(tmp_path, hang="during")
    _until((tmp_path / "hanging").exists)
    os.kill(first.pid, signal.SIGKILL)
    first.wait()

    _, err = _carry(tmp_path, hang="dark").communicate(timeout=60)

    assert kinds(desk.ledger)[-1] == "effect.unknown", err
    (effect,) = parse_effects(desk.ledger.entries(kinds=EFFECT_KINDS)).values()
    assert "a controller that was killed may have done it" in effect.reason
    assert steps.reverify_effect(desk, world.Switch(tmp_path), effect) == "verified"
    assert world.Switch(tmp_path).runs() == 1


def test_what_a_killed_process_did_not_do_is_done_once_the_world_says_so(desk):
    intent = journal_intent(desk, world.Switch(desk.home), WISH)
    assert steps.run_action(desk, world.Switch(desk.home, dark=True), intent, taken_up=True).is_unfinished
    assert world.Switch(desk.home).runs() == 0
    steps.run_action(desk, world.Switch(desk.home), intent, taken_up=True)
    assert world.Switch(desk.home).runs() == 1


def _carry(home: Path, hang: str) -> subprocess.Popen[str]:
    words = [sys.executable, "-m", world.__name__, str(home), hang]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT)


def _until(come) -> None:
    deadline = time.monotonic() + 300
    while not come():
        assert time.monotonic() < deadline, "it never came"
        time.sleep(0.02)
