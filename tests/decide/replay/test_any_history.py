"""What no history can make a replay do, and that its short cuts change no answer."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from assay.decide.moves import decide as deciding
from assay.decide.replay import simulator as playing
from assay.decide.replay.simulated_fleet import SimulatedFleet
from assay.model.timestamps import parse_time
from tests.decide.replay.replay_world import HOUR, pool

QUICK = settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
FAULTS = ["gpu.xid.79", "gpu.xid.13", "gpu.thermal", "gpu.missing", "psu.failed", "ib.link.flap", "telemetry.lost"]
NODES = [f"n{number}" for number in range(6)]

events = st.builds(
    lambda time, node, kind, name, in_use: {"time": time, "node": node, "event": kind, "fault": name, "in_use": in_use},
    time=st.integers(0, 60 * HOUR).map(lambda time: time // 300 * 300),
    node=st.sampled_from([*NODES, "u1", "stranger"]),
    kind=st.sampled_from(["fault", "fault", "clear"]),
    name=st.sampled_from(FAULTS),
    in_use=st.sampled_from([True, False, None]),
)
histories = st.lists(events, min_size=1, max_size=40)


@pytest.fixture(scope="module")
def narrow(rules):
    limits = rules.policy.limits.model_copy(update={"pool_percent": 40, "reboots_per_hour": 2})
    return replace(rules, policy=rules.policy.model_copy(update={"limits": limits}), lines={})


def listed():
    return pool(*NODES[:3]) | pool(*NODES[3:], rack="r2") | pool("u1", rack="r3", profile="unmanaged")


@QUICK
@given(history=histories)
def test_no_limit_is_exceeded_no_foreign_node_moved_and_nobody_let_in_before_a_pass(narrow, played, history):
    done = played(history, listed(), narrow)
    states, out, restarts = narrow.policy.states, set(), []
    for one in done.decisions:
        if one.decision.timing == "record":
            continue
        assert one.decision.node != "u1"
        assert narrow.policy.has_edge(one.decision.from_state, one.decision.to_state)
        if one.decision.timing == "pending" or not states[one.decision.to_state].in_service:
            out.add(one.decision.node)
        else:
            out.discard(one.decision.node)
        assert len(out & set(NODES[:3])) <= 2
        assert len(out & set(NODES[3:])) <= 2
        assert len(out & set(NODES)) <= 2, "40 % of seven"
        if one.decision.timing == "immediate" and "reboot" in states[one.decision.to_state].entry:
            restarts.append(one.at)
            assert sum(one.at - at < timedelta(hours=1) for at in restarts) <= 2
    for story in done.node_states.values():
        for number, move in enumerate(story.transitions):
            if states[move.target].in_service:
                repairs = [parse_time(repair.at) for repair in story.repairs if repair.at <= move.at]
                assert repairs, "nobody comes back without a repair"
                assert parse_time(move.at) - max(repairs) >= timedelta(hours=0.5), "nor without suites after it"
                assert number > 0


@QUICK
@given(history=histories)
def test_every_node_ends_where_there_is_a_way_out_and_the_answer_is_the_same_again(narrow, replayed, history):
    document = replayed(history, by=narrow)
    assert replayed(history, by=narrow) == document
    last = {}
    for one in document["decisions"]:
        if one["timing"] == "immediate":
            last[one["node"]] = one["to"]
    assert all(narrow.policy.edges.get(state) for state in last.values())
    whole = document["until"] - document["from"]
    assert all(0 <= seconds <= whole for seconds in document["nodes"].values())
    assert sum(document["nodes"].values()) == document["totals"]["seconds_out"]


PARTS = (
    "serving_without_fault",
    "serving_with_informational_fault",
    "serving_with_degraded_fault",
    "serving_with_catastrophic_fault",
    "cordoned_idle",
    "out",
    "not_yet_in_service",
)


@QUICK
@given(history=histories)
def test_the_hours_of_all_nodes_add_up(narrow, replayed, history):
    story = replayed(history, listed(), narrow)
    hours = story["node_hours"]
    whole = len(story["nodes"]) * (story["until"] - story["from"]) / HOUR
    assert sum(hours[part] for part in PARTS) == pytest.approx(hours["all"], abs=0.01)
    assert hours["all"] == pytest.approx(whole, abs=0.01)
    assert hours["out"] == pytest.approx(story["totals"]["seconds_out"] / HOUR, abs=0.01)
    assert hours["cordoned_in_use"] <= sum(hours[part] for part in PARTS[:4]) + 0.01
    assert all(cost >= 0 for cost in story["costs"].values())


@QUICK
@given(history=histories)
def test_asking_everybody_about_everything_all_the_time_gives_the_same_answer(narrow, replayed, history):
    short = replayed(history, listed(), narrow)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SimulatedFleet, "_is_quiet", lambda *_: False)
        patch.setattr(playing, "decide", lambda situation, _: deciding.decide(situation))
        long = replayed(history, listed(), narrow)
    assert short == long
