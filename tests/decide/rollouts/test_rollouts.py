"""Rollouts on paper: canary first, wave by wave inside the limits, paused by what goes wrong, always with an end."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from assay.decide.rollouts.node_progress import judge_progress
from assay.model.entries.node_entries import OperationDeferredEntry
from assay.model.ledger_entry import LedgerEntry
from assay.model.specs.schedules import RolloutHours
from assay.model.timestamps import format_minute, format_time
from tests.decide.rollout_on_paper import RolloutOnPaper, names


@pytest.fixture
def fleet(paper):
    def build(count: int = 8, **rules) -> RolloutOnPaper:
        for number, name in enumerate(names("n", count)):
            paper.add(name, rack=f"r{number // 2}")
        return RolloutOnPaper(paper, **rules)

    return build


def test_a_canary_is_proven_before_a_wave_goes_and_the_rollout_ends(fleet):
    roll = fleet()
    roll.start(names("n", 8))
    roll.turn()
    assert roll.orders() == ["n00"], "the canary goes alone"
    assert "n00 must come back and be proven first" in roll.look().waits_for
    roll.days(1)
    roll.turn()
    assert roll.kinds()["n00"] == "proven"
    assert len(roll.orders()) == 3, "a quarter of the pool of eight may be out"
    roll.days(8)
    assert roll.rollout.status == "finished"
    assert roll.rollout.end_reason == "8 of 8 nodes proven"
    assert sorted(roll.orders()) == names("n", 8), "each node was ordered once"
    assert set(roll.states().values()) == {"production"}


def test_each_spec_and_pool_has_a_canary(paper):
    for name, pool, kind in (("a0", "a", "x"), ("a1", "a", "x"), ("a2", "a", "y"), ("b0", "b", "x"), ("b1", "b", "x")):
        paper.add(name, pool=pool, kind=kind, rack=name)
    paper.policy = paper.policy.model_copy(
        update={"limits": paper.policy.limits.model_copy(update={"pool_percent": 100.0})}
    )
    roll = RolloutOnPaper(paper)
    roll.start(["a0", "a1", "a2", "b0", "b1"])
    assert [one.node for one in roll.look().orders] == ["a0", "a2", "b0"]


def test_a_policy_may_ask_for_more_canaries(fleet):
    roll = fleet(16, canaries=2)
    roll.start(names("n", 16))
    assert [one.node for one in roll.look().orders] == ["n00", "n01"]


def test_a_canary_that_fails_pauses_until_a_person_resumes(fleet):
    roll = fleet()
    roll.start(names("n", 8))
    for _ in range(4):
        roll.turn(failing=["n00"])
    assert roll.states()["n00"] == "zapfail"
    assert roll.rollout.status == "paused"
    assert roll.rollout.pause.rule == "failures"
    assert roll.rollout.pause.reason.startswith("canary n00 failed: in zapfail: ")
    assert roll.rollout.pause.reason.endswith("zap failed: the BMC refused the image")
    roll.days(1)
    assert roll.orders() == ["n00"], "nothing goes on by itself"
    roll.say("rollout.resumed")
    roll.days(1)
    assert roll.orders() == ["n00", "n01"], "and then there is another canary"
    roll.days(12)
    assert roll.rollout.end_reason == "7 of 8 nodes proven, failed: n00"


def test_failures_below_the_rate_do_not_pause(fleet):
    roll = fleet(16, failed_percent=50)
    roll.start(names("n", 16))
    roll.days(9, failing=["n15"])
    assert roll.rollout.end_reason == "15 of 16 nodes proven, failed: n15"


def test_a_held_node_of_the_wave_pauses_and_its_release_resumes(fleet):
    roll = fleet()
    roll.start(names("n", 8))
    roll.turn()
    roll.paper.say("hold", "n00", reason="look at it")
    roll.advance()
    assert (roll.rollout.status, roll.rollout.pause.rule) == ("paused", "hold")
    roll.paper.say("release", "n00")
    roll.advance()
    assert roll.rollout.status == "running"


def test_a_held_node_that_waits_is_left_out_and_the_rollout_says_what_it_waits_for(fleet):
    roll = fleet(4)
    roll.paper.say("hold", "n02", reason="a benchmark")
    roll.start(names("n", 4))
    roll.days(8)
    assert roll.rollout.status == "running"
    assert sorted(roll.orders()) == ["n00", "n01", "n03"]
    assert roll.look().waits_for == "n02: held by ann: a benchmark"


def test_a_deferred_node_is_left_out_until_its_time(fleet):
    roll = fleet(4)
    roll.start(names("n", 4))
    until = format_time(roll.paper.now + timedelta(days=30))
    deferral = OperationDeferredEntry(roll.rollout.id, "acme", "a run ends", until)
    roll.paper.write(deferral.make_entry("deferred", format_time(roll.paper.now), "n02"))
    roll.days(8)
    assert sorted(roll.orders()) == ["n00", "n01", "n03"]
    assert roll.look().waits_for == f"n02: deferred to {format_minute(until)}"
    roll.days(30)
    assert roll.rollout.end_reason == "4 of 4 nodes proven"


def test_an_open_breaker_that_it_did_not_open_pauses_and_stops_orders(fleet):
    roll = fleet(16)
    roll.start(names("n", 16))
    for name in names("n", 16)[8:12]:
        roll.paper.fault(name, "gpu.xid.79")
    roll.paper.step()
    roll.advance()
    assert (roll.rollout.status, roll.rollout.pause.rule) == ("paused", "breaker")
    assert roll.orders() == []


def test_a_node_with_a_job_is_waited_for_and_then_no_longer(fleet):
    roll = fleet(8, wait_hours=48)
    roll.paper.jobs["n00"] = ("train",)
    roll.start(names("n", 8))
    roll.turn()
    assert roll.kinds()["n00"] == "leaving"
    assert roll.look().waits_for == "n00 must leave service first: waits for train"
    roll.paper.later(hours=49)
    roll.turn()
    assert roll.orders() == ["n00", "n01"], "another canary takes its place, in what room is left"
    roll.paper.jobs["n00"] = ()
    roll.days(12)
    assert roll.rollout.end_reason == "8 of 8 nodes proven"


def test_a_pause_takes_back_what_has_not_begun_and_resuming_gives_it_again(fleet):
    roll = fleet()
    roll.paper.jobs["n00"] = ("train",)
    roll.start(names("n", 8))
    roll.turn()
    assert roll.paper.story("n00").pending is not None
    roll.say("rollout.paused")
    assert [one.remedy for one in roll.paper.step()] == ["withdraw"]
    assert roll.paper.settle("n00") == ["uncordon"]
    roll.paper.jobs["n00"] = ()
    roll.turn()
    assert roll.out() == set(), "an idle node stays in service while the rollout is paused"
    roll.say("rollout.resumed")
    roll.turn()
    assert roll.out() == {"n00"}
    assert roll.orders() == ["n00"]


def test_an_aborted_rollout_ends_orders_and_lets_those_out_finish(fleet):
    roll = fleet()
    roll.start(names("n", 8))
    roll.turn()
    roll.say("rollout.aborted")
    assert (roll.rollout.status, roll.rollout.end_reason) == ("aborted", "aborted by ann: as planted")
    roll.days(2)
    assert roll.orders() == ["n00"]
    assert roll.out() == set(), "the canary came back"


def test_hours_of_the_day_hold_the_next_wave(fleet):
    roll = fleet(hours={"from_hour": 8, "to_hour": 12, "time_zone": "Europe/Berlin"})  # the paper begins at 12 UTC
    roll.start(names("n", 8))
    roll.turn()
    assert roll.orders() == []
    assert roll.look().waits_for == "waves begin from 8:00 to 12:00 Europe/Berlin, every day"
    roll.paper.later(hours=20)
    roll.turn()
    assert roll.orders() == ["n00"]


def test_no_node_leaves_before_customers_have_heard_of_it_for_long_enough(fleet):
    roll = fleet(lead_hours=72)
    roll.start(names("n", 8))
    roll.turn()
    assert roll.orders() == []
    assert roll.look().waits_for == "customers were told: it begins at 2026-11-24 12:00 UTC"
    roll.paper.later(hours=71)
    roll.turn()
    assert roll.orders() == []
    roll.paper.later(hours=1)
    roll.turn()
    assert roll.orders() == ["n00"]


@pytest.mark.parametrize(
    ("hour", "weekday", "is_open"),
    [(21, "fri", False), (22, "fri", True), (23, "fri", True), (5, "sat", True), (6, "sat", False), (23, "sat", False)],
)
def test_hours_may_go_past_midnight(hour, weekday, is_open):
    day = {"fri": 20, "sat": 21}[weekday]
    window = RolloutHours(from_hour=22, to_hour=6, days=["fri"])
    assert window.is_open(datetime(2026, 11, day, hour, tzinfo=UTC)) is is_open


def test_nodes_that_cannot_go_are_left_alone_with_a_reason(fleet):
    roll = fleet(4)
    roll.paper.add("u0", pool="byo", rack="r9", profile="unmanaged")
    roll.paper.add("t0", "triage", rack="r8")
    roll.start([*names("n", 4), "u0", "t0", "gone"])
    said = {one.node: one.why for one in roll.look().progress if one.kind == "left alone"}
    assert said["gone"] == "the inventory no longer has it"
    assert said["u0"].startswith("profile unmanaged")
    assert said["t0"].startswith("in triage")
    roll.days(6)
    assert roll.rollout.end_reason == "4 of 7 nodes proven, 3 left alone"


def test_a_node_that_serves_again_without_the_change_is_not_proven(fleet):
    roll = fleet(4)
    roll.start(names("n", 4))
    roll.turn()
    roll.paper.judge("n00", "production", "fail")
    roll.paper.step()
    assert roll.kinds()["n00"] != "proven"


@pytest.mark.parametrize(
    ("verdict", "kind"), [("pass", "proven"), ("error", "out"), ("skip", "out"), ("fail", "failed")]
)
def test_a_node_is_proven_only_when_every_check_of_drift_has_passed(fleet, verdict, kind):
    roll = fleet(4)
    roll.start(names("n", 4))
    roll.turn()
    roll.days(1)
    assert (roll.states()["n00"], roll.rollout.members["n00"].proof) == ("production", "")
    roll.paper.judge("n00", "zap", verdict)
    hashes = {check.id: "" for check in roll.paper.checks.values()}
    snapshot = roll.paper.situation()
    views = tuple(replace(view, judging_hashes=hashes) for view in snapshot.nodes)
    progress = judge_progress(replace(snapshot, nodes=views), roll.rollout)
    assert [one.kind for one in progress if one.node == "n00"] == [kind]


def test_drift_of_a_node_that_waits_asks_nobody_for_anything(fleet):
    roll = fleet(8)
    roll.start(names("n", 8))
    for name in names("n", 8):
        roll.paper.fault(name, "firmware.drift")
    assert [one for one in roll.paper.step() if one.remedy == "ticket"] == []
    roll.say("rollout.aborted")
    assert len([one for one in roll.paper.step() if one.remedy == "ticket"]) == 8


def test_a_node_that_an_earlier_rollout_took_out_gets_the_newer_change_at_once(fleet):
    roll = fleet(8)
    roll.start(names("n", 8))
    for _ in range(2):
        roll.turn()
    assert roll.states()["n00"] == "test"
    old = roll.rollout.id
    new = roll.start(names("n", 8), under_way=["n00"])
    roll.say("rollout.superseded", rollout=old, by=new)
    assert [one.node for one in roll.look().orders] == ["n00"]
    roll.turn()
    zapped = [move for move in roll.paper.story("n00").transitions if move.target == "zap"]
    assert [move.origin for move in zapped] == ["draining", "test"]
    roll.days(12)
    assert roll.rollout.end_reason == "8 of 8 nodes proven"


def test_an_order_that_a_person_withdrew_is_not_given_again(fleet):
    roll = fleet(8)
    roll.paper.jobs["n00"] = ("train",)
    roll.start(names("n", 8))
    roll.turn()
    roll.paper.say("move", "n00", to="production", reason="not this one")
    roll.days(12)
    assert roll.orders().count("n00") == 1
    assert roll.rollout.end_reason == "7 of 8 nodes proven, 1 left alone"


def test_a_node_that_gets_another_name_keeps_its_place(fleet):
    roll = fleet(4)
    roll.start(names("n", 4))
    roll.turn()
    before = roll.rollout.members["n00"]
    roll.paper.write(LedgerEntry("r", roll.paper.now.isoformat(), "node.renamed", "m00", RENAMED))
    assert list(roll.rollout.members) == ["m00", "n01", "n02", "n03"]
    assert (roll.rollout.members["m00"].order, roll.rollout.members["m00"].node) == (before.order, "m00")


RENAMED = {"serial": "s-n00", "from": "n00", "pool": "a"}
USUAL = ["turn", "turn", "turn", "job", "idle", "fault", "fail", "hold", "release", "pause", "merge"]
EVENTS = st.sampled_from([*USUAL, "turn", "breaker", "hours", "revert", "abort"])
CLOSING = {"rollout.paused", "rollout.aborted", "rollout.superseded", "rollout.finished"}


def histories(examples: int):
    """Return what draws fleets and events."""
    strange = st.lists(st.tuples(EVENTS, st.integers(0, 8)), max_size=12)
    drawn = given(st.integers(2, 7), st.integers(1, 2), strange)
    chosen = settings(
        max_examples=examples, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
    )
    return lambda test: chosen(drawn(test))


@histories(5)
def test_whatever_happens_a_rollout_stays_inside_its_bounds_and_ends_or_says_why_not(new_paper, size, canaries, events):
    _live_through(new_paper, size, canaries, events)


@pytest.mark.slow
@histories(150)
def test_whatever_happens_for_longer(new_paper, size, canaries, events):
    _live_through(new_paper, size, canaries, events)


def _live_through(new_paper, size: int, canaries: int, events: list[tuple[str, int]]) -> None:
    paper, bad = new_paper(), set()
    for number, name in enumerate(names("n", size)):
        paper.add(name, rack=f"r{number // 3}")
    half = paper.policy.limits.model_copy(update={"pool_percent": 50.0})
    paper.policy = paper.policy.model_copy(update={"limits": half})
    roll = RolloutOnPaper(paper, canaries=canaries, wait_hours=8760)
    roll.start(names("n", size))
    for event, number in events:
        _let_happen(roll, event, f"n{number % size:02}", bad)
        _check(roll, size, canaries)
    _set_hours(roll, is_limited=False)
    seen: set[str] = set()
    while roll.rollout.is_active and (situation := str(roll.kinds())) not in seen:
        seen.add(situation)
        roll.days(1, failing=bad)
        _check(roll, size, canaries)
    assert not roll.rollout.is_active or roll.look().waits_for


def _let_happen(roll: RolloutOnPaper, event: str, name: str, bad: set[str]) -> None:
    match event:
        case "turn":
            roll.days(1, failing=bad)
        case "job" | "idle":
            roll.paper.jobs[name] = ("train",) if event == "job" else ()
        case "fault":
            roll.paper.fault(name, "gpu.xid.79")
        case "fail":
            bad.add(name)
        case "breaker":
            for other in roll.paper.nodes:
                roll.paper.fault(other, "gpu.xid.79")
        case "hours":
            _set_hours(roll, is_limited=roll.paper.policy.rollouts.hours is None)
        case "hold" | "release":
            roll.paper.say(event, name)
        case _ if roll.rollout.is_active:
            _let_people_decide(roll, event)


def _let_people_decide(roll: RolloutOnPaper, event: str) -> None:
    match event:
        case "pause":
            roll.say("rollout.resumed" if roll.rollout.status == "paused" else "rollout.paused")
        case "abort":
            roll.say("rollout.aborted")
        case "merge" | "revert":
            _merge(roll, is_revert=event == "revert")


def _merge(roll: RolloutOnPaper, *, is_revert: bool) -> None:
    """Let another rollout take over: of all nodes, or if the change is reverted, only of those that left for it."""
    old, members = roll.rollout.id, list(roll.rollout.members)
    ordered = {member.node for member in roll.rollout.members.values() if member.order}
    left = sorted(roll.out() & ordered)
    new = "" if is_revert and not left else roll.start(left if is_revert else members, under_way=left)
    roll.say("rollout.superseded", rollout=old, by=new)


def _set_hours(roll: RolloutOnPaper, *, is_limited: bool) -> None:
    hours = RolloutHours(from_hour=8, to_hour=12) if is_limited else None
    rules = roll.paper.policy.rollouts.model_copy(update={"hours": hours})
    roll.paper.policy = roll.paper.policy.model_copy(update={"rollouts": rules})


def _check(roll: RolloutOnPaper, size: int, canaries: int) -> None:
    """Hold the fleet to what must be true at any time."""
    out = roll.counted_out()
    assert len(out) <= max(1, size // 2), "more nodes are out than the pool may miss"
    assert max(Counter(roll.paper.nodes[name].rack for name in out).values(), default=0) <= 2, "or the rack"
    for rollout in roll.history.rollouts.values():
        own = [one for one in rollout.members.values() if one.order_seq > rollout.started_seq and not one.is_under_way]
        proofs = sorted(entry.seq for entry in roll.proofs(rollout.id))
        enough = proofs[canaries - 1] if len(proofs) >= canaries else len(roll.paper.log) + 1
        early = sum(one.order_seq < enough for one in own)
        assert early <= canaries + len(rollout.accepted), "a wave went before the canaries were proven"
    given = Counter((entry.body["rollout"], entry.node) for entry in roll.order_entries())
    assert max(given.values(), default=0) <= 1
    closed: set[str] = set()
    for entry in roll.paper.log.values():
        if entry.kind in CLOSING:
            closed.add(entry.body["rollout"])
        elif entry.kind == "rollout.resumed":
            closed.discard(entry.body["rollout"])
        elif entry.kind == "move" and entry.body.get("rollout"):
            assert entry.body["rollout"] not in closed, "a node was ordered out though the rollout was paused or over"
