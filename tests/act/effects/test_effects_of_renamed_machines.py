"""A machine that gets another name takes along what is under way on it: once, and to a verified end."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from assay.act.actions.action import EffectIntent
from assay.act.effects import dbos_workflows, effect_journal, pending_effect_runner
from assay.act.effects import effect_attempt_and_verification as steps
from assay.act.loop.enrollment import enroll_nodes
from assay.act.loop.projections import read_node_states
from assay.model.ledger_entry import LedgerEntry
from assay.model.timestamps import format_time
from tests.act.loop.test_machines_and_their_names import OLD, site, with_nodes  # noqa: F401 — a fixture
from tests.act.standin_world import Switch

NEW = "n0103"


def send(site, name: str, to: str = "production-powercycle-test") -> None:  # noqa: F811
    """Let a decision have moved a node of production to a state that cordons, drains and power-cycles it."""
    at = format_time(site.clock.at)
    body = {"decision": "d1", "from": "production", "to": to, "timing": "immediate", "rule": "a rule", "remedy": ""}
    site.ledger.append(
        LedgerEntry("d1", at, "decision", name, body | {"because": [], "blockers": []}),
        LedgerEntry("d1-moved", at, "transition", name, {"from": "production", "to": to, "decision": "d1"}),
    )
    for action in ("cordon", "drain-now", "collect"):
        site.settle(name, only=action)


def renamed(site):  # noqa: F811
    desk = with_nodes(site, **{OLD: None, NEW: replace(site.desk.fleet.nodes[OLD], name=NEW)})
    enroll_nodes(desk)
    return desk


def begin(desk, action, name: str) -> EffectIntent:
    """Journal the intent of the power cycle."""
    (pending,) = pending_effect_runner.list_pending_effects(desk, read_node_states(desk.ledger)[name])
    assert pending.intent.action == "powercycle"
    return effect_journal.journal_intent(desk, action, pending.intent)


@pytest.fixture
def switch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Switch:
    (tmp_path / "home").mkdir(exist_ok=True)
    made = Switch(tmp_path)
    for module in (pending_effect_runner, dbos_workflows):
        monkeypatch.setattr(module, "load_action", lambda _: made)
    return made


def ended(desk, name: str) -> list[str]:
    return [
        entry.kind for entry in desk.ledger.entries(name, effect_journal.EFFECT_KINDS) if "powercycle" in str(entry)
    ]


def test_what_was_done_before_the_rename_is_verified_under_the_new_name_and_not_done_again(site, switch):  # noqa: F811
    send(site, OLD)
    intent = begin(site.desk, switch, OLD)
    steps.run_action(site.desk, switch, intent)
    desk = renamed(site)
    pending_effect_runner.run_effects(desk)
    state = read_node_states(desk.ledger)[NEW]
    assert [(one.action, one.standing) for one in state.effects][-1] == ("powercycle", "verified")
    assert (state.state, switch.runs()) == ("production-powercycle-test", 1)
    assert ended(desk, NEW) == ["effect.intent", "effect.done", "effect.verified"]


def test_what_was_only_begun_is_done_once_under_the_new_name(site, switch):  # noqa: F811
    send(site, OLD)
    begin(site.desk, switch, OLD)
    desk = renamed(site)
    pending_effect_runner.run_effects(desk)
    assert switch.runs() == 1
    assert read_node_states(desk.ledger)[NEW].unsettled_effects == ()
    pending_effect_runner.run_effects(desk)
    assert switch.runs() == 1, "once"


def test_what_was_only_asked_for_happens_under_the_new_name(site, switch):  # noqa: F811
    send(site, OLD)
    desk = renamed(site)
    pending_effect_runner.run_effects(desk)
    assert ended(desk, NEW)[-1] == "effect.verified"
    assert ended(desk, OLD) == []


def test_who_still_works_under_the_old_name_does_and_writes_nothing_more(site, switch):  # noqa: F811
    send(site, OLD)
    intent = begin(site.desk, switch, OLD)
    desk, before = renamed(site), ended(site.desk, OLD)
    for known in (site.desk, desk):
        attempt = steps.run_action(known, switch, intent)
        verification = steps.verify_effect(known, switch, intent, attempt)
        assert verification.done is None
        assert "another name" in verification.reason
    assert switch.runs() == 0
    assert ended(desk, OLD) == before


def test_two_machines_that_swap_their_names_keep_their_own_work(site, switch):  # noqa: F811
    send(site, OLD)
    intent = begin(site.desk, switch, OLD)
    one, other = site.desk.fleet.nodes[OLD], site.desk.fleet.nodes["n0001"]
    desk = with_nodes(site, n0003=replace(one, serial=other.serial), n0001=replace(other, serial=one.serial))
    enroll_nodes(desk)
    steps.run_action(desk, switch, intent)
    assert switch.runs() == 0, "the other machine is not power-cycled"
    pending_effect_runner.run_effects(desk)
    states = read_node_states(desk.ledger)
    assert (states["n0001"].state, states[OLD].state) == ("production-powercycle-test", "onboard")
    assert ended(desk, "n0001")[-1] == "effect.verified"
    assert "effect.verified" not in ended(desk, OLD)


def test_a_machine_that_is_renamed_back_ends_it_under_its_name(site, switch):  # noqa: F811
    send(site, OLD)
    begin(site.desk, switch, OLD)
    renamed(site)
    enroll_nodes(site.desk)
    pending_effect_runner.run_effects(site.desk)
    assert switch.runs() == 1
    assert read_node_states(site.ledger)[OLD].unsettled_effects == ()
