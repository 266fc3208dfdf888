"""How far automation goes at each step, per fleet, pool and action; a yes and a no; and orders that are too old."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.decide.moves import decide as deciding
from assay.decide.trust.gate import find_effect_obstacle, find_outlived, list_trust_waits
from assay.decide.trust.record import RECORD_KINDS, make_watch_record
from assay.model.specs.trust_rules import STEPS, Trust, TrustRules

PAUSED, AWAKE = timedelta(days=3), timedelta(seconds=30)
ACTIONS = ("cordon", "drain-now", "reboot", "zap")


def trusted(paper, **rules):
    """Let the fleet on paper have these rules; return what decides by them."""
    trust = Trust(TrustRules(**rules), policy="default", lines={("LifecyclePolicy/default", "trust.fleet"): "p.yaml:7"})
    paper.trust = trust
    plain = type(paper).situation
    paper.situation = lambda *views, **more: replace(plain(paper, *views, **more), trust=trust)
    return trust


def waits(paper, name):
    return list_trust_waits(paper.policy, paper.trust, paper.story(name))


@pytest.fixture
def broken(paper):
    """A node in production with a catastrophic fault."""
    paper.add("n1")
    paper.fault("n1", "gpu.xid.79", "gpu0")
    return paper


@pytest.mark.parametrize(
    ("rules", "pool", "action", "step"),
    [
        ({}, "a", "cordon", "watch"),
        ({"fleet": "act"}, "a", "zap", "act"),
        ({"fleet": "watch", "actions": {"cordon": "act"}}, "a", "cordon", "act"),
        ({"fleet": "watch", "actions": {"cordon": "act"}}, "a", "reboot", "watch"),
        ({"pools": {"a": "act"}, "actions": {"zap": "suggest"}}, "a", "zap", "suggest"),
        ({"pools": {"a": "act"}, "actions": {"zap": "suggest"}}, "a", "reboot", "act"),
        ({"pools": {"a": "act"}}, "b", "reboot", "watch"),
        ({"pools": {"a": "watch"}, "actions": {"cordon": "act"}}, "a", "cordon", "watch"),
    ],
)
def test_the_step_of_an_action_in_a_pool(rules, pool, action, step):
    assert Trust(TrustRules(**rules)).find(pool, [action]).step == step


@given(
    st.builds(
        dict,
        fleet=st.sampled_from(STEPS),
        pools=st.dictionaries(st.sampled_from("ab"), st.sampled_from(STEPS)),
        actions=st.dictionaries(st.sampled_from(ACTIONS), st.sampled_from(STEPS)),
    ),
    st.lists(st.sampled_from(ACTIONS), min_size=1),
)
def test_a_decision_never_goes_further_than_the_least_trusted_of_its_actions(rules, actions):
    trust = Trust(TrustRules(**rules))
    whole = STEPS.index(trust.find("a", actions).step)
    assert whole == min(STEPS.index(trust.find("a", [one]).step) for one in actions)
    if "a" in rules["pools"]:
        assert whole <= STEPS.index(rules["pools"]["a"])


def test_in_the_lab_one_line_says_it_all():
    rules = TrustRules(fleet="watch", pools={"a": "watch"}, lab="act")
    assert Trust(rules, is_lab=True).find("a", ["zap"]).step == "act"


def test_at_watch_the_decision_is_recorded_once_and_nothing_moves(broken):
    trusted(broken, fleet="watch")
    [record] = broken.step()
    assert (record.timing, record.remedy, record.causes[0].kind) == ("record", "wait", "trust")
    assert record.to_state == "production-reboot" or record.to_state in broken.policy.states
    assert "p.yaml:7" in record.causes[0].text
    assert "reboot" in record.causes[0].text
    assert broken.step() == [] == broken.step()
    story = broken.story("n1")
    assert (story.state, story.pending, story.effects) == ("production", None, ())
    assert [one.kind for one in waits(broken, "n1")] == ["would"]


def test_bookkeeping_goes_on_at_watch(paper):
    trusted(paper, fleet="watch")
    paper.add("n1", "draining")
    paper.say("certified", "n1")
    assert [one.to_state for one in paper.step()] == ["triage"]
    assert paper.story("n1").state == "triage"


def test_cordon_first_flash_last(broken):
    trusted(broken, fleet="act", actions={"reboot": "suggest", "powercycle": "suggest", "drain-now": "suggest"})
    held, cordon = broken.step()
    assert held.causes[0].kind == "trust"
    assert (cordon.timing, cordon.remedy) == ("pending", "cordon")
    assert broken.settle("n1") == ["cordon"]
    assert broken.story("n1").state == "production"
    [wait] = waits(broken, "n1")
    broken.say("approved", "n1", decision=wait.id)
    [move] = broken.step()
    assert (move.timing, move.to_state) == ("immediate", held.to_state)
    assert waits(broken, "n1") == []


def test_at_suggest_a_yes_lets_it_go_and_a_no_keeps_it(broken):
    trusted(broken, fleet="suggest")
    [record] = broken.step()
    [wait] = waits(broken, "n1")
    assert (wait.id, wait.kind) == (record.id, "decision")
    broken.say("declined", "n1", decision=wait.id, reason="let it run")
    assert broken.step() == []
    assert "said no" in waits(broken, "n1")[0].said
    broken.say("approved", "n1", decision=wait.id, reason="go")
    [move] = broken.step()
    assert (move.timing, move.to_state) == ("immediate", record.to_state)
    assert ("approved", "ann said yes: go") in [(one.kind, one.text) for one in move.causes]
    story = broken.story("n1")
    for action in broken.policy.states[story.state].entry:
        assert find_effect_obstacle(broken.trust, story, story.decision, action) == ("", "")


def test_a_yes_grows_old_and_another_one_counts(broken):
    trusted(broken, fleet="suggest", order_hours=1)
    [record] = broken.step()
    broken.say("approved", "n1", decision=record.id)
    broken.later(hours=2)
    assert broken.step() == []
    broken.say("approved", "n1", decision=record.id)
    assert [one.timing for one in broken.step()] == ["immediate"]


def test_a_yes_from_the_future_does_not_count(broken):
    trusted(broken, fleet="suggest")
    [record] = broken.step()
    broken.later(days=2)
    broken.say("approved", "n1", decision=record.id)
    broken.later(days=-2)
    assert broken.step() == []


def test_a_yes_to_one_fault_is_none_to_another(broken):
    trusted(broken, fleet="suggest")
    [record] = broken.step()
    broken.fault("n1", "gpu.xid.79", "gpu1")
    broken.say("approved", "n1", decision=record.id)
    [other] = broken.step()
    assert (other.timing, other.causes[0].kind) == ("record", "trust")


def test_a_yes_is_kept_while_a_job_runs(paper):
    trusted(paper, fleet="suggest", order_hours=1)
    paper.add("n1")
    paper.jobs["n1"] = ("job 7",)
    paper.fault("n1", "gpu.nvlink.errors")
    [record] = paper.step()
    paper.say("approved", "n1", decision=record.id)
    [move] = paper.step()
    assert move.timing == "pending"
    paper.later(hours=9)
    assert [one for one in paper.step() if one.timing != "record"] == []
    paper.jobs["n1"] = ()
    assert [one.timing for one in paper.step() if one.timing != "record"] == ["immediate"]


def test_a_persons_order_is_a_yes_at_suggest_and_nothing_at_watch(paper):
    trusted(paper, fleet="suggest")
    paper.add("n1")
    paper.say("move", "n1", to="triage")
    assert [one.to_state for one in paper.step()] == ["draining"]
    story = paper.story("n1")
    assert find_effect_obstacle(paper.trust, story, story.decision, "drain-now") == ("", "")
    trusted(paper, fleet="watch")
    assert "only watches" in find_effect_obstacle(paper.trust, story, story.decision, "drain-now")[0]


def test_a_persons_order_is_not_carried_out_at_watch(paper):
    trusted(paper, fleet="watch")
    paper.add("n1")
    paper.say("move", "n1", to="triage")
    [record] = paper.step()
    assert (record.timing, record.causes[0].kind) == ("record", "trust")


def test_an_effect_that_was_decided_before_waits_after_the_step_was_lowered(broken):
    trusted(broken, fleet="act")
    broken.step()
    story = broken.story("n1")
    trusted(broken, fleet="suggest")
    why, ident = find_effect_obstacle(broken.trust, story, story.decision, "cordon")
    assert "person's yes" in why
    assert ident == story.decision
    [wait] = waits(broken, "n1")
    assert (wait.kind, wait.id) == ("effect", story.decision)
    broken.say("approved", "n1", decision=wait.id)
    assert find_effect_obstacle(broken.trust, broken.story("n1"), story.decision, "cordon") == ("", "")


def test_an_order_that_has_not_begun_in_its_hour_waits_for_a_person(paper):
    trusted(paper, fleet="act")
    paper.add("n1")
    paper.say("hold", "n1")
    paper.say("move", "n1", to="triage")
    assert list(find_outlived(paper.policy, paper.story("n1"), paper.now + timedelta(minutes=50), AWAKE)) == []
    paper.later(hours=2)
    late = list(find_outlived(paper.policy, paper.story("n1"), paper.now, AWAKE))
    assert len(late) == 1
    assert "meant for 60 min" in late[0].body["reason"]
    paper.write(*late)
    assert list(find_outlived(paper.policy, paper.story("n1"), paper.now, AWAKE)) == []
    paper.say("release", "n1")
    assert [one.timing for one in paper.step()] == ["record"]
    [wait] = waits(paper, "n1")
    assert wait.kind == "order"
    paper.say("approved", "n1", decision=wait.id)
    assert [one.to_state for one in paper.step()] == ["draining"]


def test_an_order_may_be_meant_for_longer(paper):
    paper.add("n1")
    paper.say("move", "n1", to="triage", within_hours=4)
    assert list(find_outlived(paper.policy, paper.story("n1"), paper.now + timedelta(hours=3), PAUSED)) == []
    assert list(find_outlived(paper.policy, paper.story("n1"), paper.now + timedelta(hours=5), PAUSED))


def test_a_drain_that_waits_for_a_job_is_not_old_while_a_controller_looks(paper):
    paper.add("n1")
    paper.jobs["n1"] = ("job 7",)
    paper.say("move", "n1", to="triage")
    assert [one.timing for one in paper.step()] == ["pending"]
    paper.later(hours=30)
    assert list(find_outlived(paper.policy, paper.story("n1"), paper.now, AWAKE)) == []
    late = list(find_outlived(paper.policy, paper.story("n1"), paper.now, PAUSED))
    assert [one.kind for one in late] == ["order.outlived"]
    paper.write(*late)
    paper.jobs["n1"] = ()
    made = paper.step()
    assert [(one.rule, one.timing, one.to_state) for one in made if one.timing != "record"] == []
    assert paper.story("n1").state == "production"


def test_what_an_order_has_left_to_begin_waits_after_a_pause(paper):
    paper.add("n1", "zapfail")
    paper.say("zap.asked", "n1", to="zap")
    paper.step()
    story = paper.story("n1")
    assert story.state == "zap"
    late = list(find_outlived(paper.policy, story, paper.now + timedelta(days=3), PAUSED))
    paper.write(*late)
    why, ident = find_effect_obstacle(Trust(TrustRules(fleet="act")), paper.story("n1"), story.decision, "zap")
    assert "did not go on" in why
    assert ident == late[0].body["order"]
    paper.say("approved", "n1", decision=ident)
    assert find_effect_obstacle(Trust(TrustRules(fleet="act")), paper.story("n1"), story.decision, "zap") == ("", "")


def test_an_order_from_the_future_waits(paper):
    paper.add("n1")
    paper.say("move", "n1", to="triage")
    [late] = find_outlived(paper.policy, paper.story("n1"), paper.now - timedelta(days=1), AWAKE)
    assert "a clock was changed" in late.body["reason"]


def test_what_automation_decided_by_itself_does_not_grow_old(broken):
    broken.step()
    assert list(find_outlived(broken.policy, broken.story("n1"), broken.now + timedelta(days=9), PAUSED)) == []


def test_the_record_counts_hours_and_people(broken):
    trusted(broken, fleet="watch")
    broken.add("n2")
    broken.fault("n2", "gpu.xid.79", "gpu0")
    broken.step()
    to = broken.story("n1").trust.held[0].to
    broken.later(hours=5)
    broken.say("move", "n1", to=to)
    broken.later(hours=5)
    told = [entry for entry in broken.log.values() if entry.kind in RECORD_KINDS]
    record = make_watch_record(broken.policy, told, broken.now)
    assert (record.nodes, sum(record.decisions.values()), record.done_by_people) == (2, 2, 1)
    assert record.node_hours == pytest.approx(20, abs=0.1)
    broken.later(days=40)
    assert make_watch_record(broken.policy, told, broken.now).nodes == 0


def test_without_rules_a_snapshot_acts(broken):
    assert [one.timing for one in deciding.decide(broken.situation())] == ["immediate"]
