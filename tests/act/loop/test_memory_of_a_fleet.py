"""What a controller keeps warm says the same as all of history read anew, and asks for as little as it can."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.act.loop.reconcile_pass import find_busy_nodes, record_decisions
from assay.act.loop.snapshot import FleetSnapshotCache
from assay.adapters.scheduler import CustomerJob
from assay.decide.moves.decide import decide
from assay.decide.state import decision_and_fault_entries
from assay.ledger.store import Ledger
from assay.model.entries.faults import FaultClearedEntry
from assay.validate.runs.subjects import DeclaredOutcomes, list_declared_outcomes
from tests.act.quiet_site import FLEET, NODES, Site

FAULTS = ("gpu.xid.79", "gpu.thermal", "gpu.xid.13", "psu.failed", "ib.link.down")


@pytest.fixture(params=["sqlite", "postgresql"])
def site(request, tmp_path) -> Iterator[Site]:
    server = request.param == "postgresql"
    made = Site(request.getfixturevalue("database") if server else tmp_path / "ledger.sqlite", tmp_path / "home")
    yield made
    made.ledger.close()


STEP = st.tuples(
    st.sampled_from(["fault", "hold", "release", "certified", "move", "settle", "fail", "judge", "job", "idle"]),
    st.integers(0, len(NODES) - 1),
    st.sampled_from(FAULTS),
    st.sampled_from([0.02, 0.5, 3, 30]),
)


@settings(max_examples=4)
@given(steps=st.lists(STEP, min_size=3, max_size=14))
def test_what_is_decided_with_quiet_nodes_as_a_count_is_what_is_decided_with_everybody(steps, tmp_path_factory):
    home = tmp_path_factory.mktemp("site")
    site = Site(home / "ledger.sqlite", home)
    warm = FleetSnapshotCache(site.desk)
    for what, number, fault, hours in steps:
        name = NODES[number]
        match what:
            case "fault":
                site.fault(name, fault)
            case "settle" | "fail":
                site.settle(name, "verified" if what == "settle" else "failed")
            case "judge":
                site.judge(name)
            case "job":
                site.far.jobs[name] = (CustomerJob("7", "llama", "customer", ""),)
            case "idle":
                site.far.jobs.pop(name, None)
            case _:
                site.say(what, name, to="draining")
        site.later(hours=hours)
        everybody = FleetSnapshotCache(site.desk).build_snapshot(NODES)
        assert len(everybody.nodes) == len(NODES)
        assert decide(warm.build_snapshot()) == decide(everybody)
        record_decisions(warm)
        site.later(seconds=1)
    site.ledger.close()
    shutil.rmtree(home)


def test_a_clock_that_is_put_back_wakes_whoever_has_a_past_that_is_yet_to_come(site):
    memory = FleetSnapshotCache(site.desk)
    site.later(hours=5)
    site.fault(NODES[0], "gpu.xid.13")
    (known,) = memory.node_states()[NODES[0]].faults
    site.ledger.append(
        decision_and_fault_entries.make_cleared_entry(
            NODES[0], FaultClearedEntry(known.id, "as planted"), site.clock.at
        )
    )
    site.later(hours=2)
    assert memory.build_snapshot().nodes == ()
    site.later(hours=-4)
    assert [view.name for view in memory.build_snapshot().nodes] == [NODES[0]]


def test_quiet_nodes_come_as_a_count_and_cost_no_question(site):
    memory = FleetSnapshotCache(site.desk)
    site.later(minutes=1)
    situation = memory.build_snapshot()
    assert (situation.nodes, sum(situation.quiet_counts.values())) == ((), len(NODES))
    assert site.far.asked == []


def test_many_nodes_that_are_awake_are_one_question_to_their_scheduler(site):
    site.later(minutes=1)
    for name in NODES[:3]:
        site.fault(name)
    site.far.jobs[NODES[0]] = (CustomerJob("7", "llama", "customer", ""),)
    site.far.strangers = {NODES[2]}
    views = FleetSnapshotCache(site.desk).build_snapshot().nodes
    assert site.far.asked == [set(NODES[:3])]
    assert [view.jobs for view in views] == [("job 7 (llama, customer)",), (), None]


def test_a_scheduler_that_is_down_is_told_once_for_all_its_nodes_and_leaves_them_unknown(site):
    site.later(minutes=1)
    site.far.silent = True
    for name in NODES[:3]:
        site.fault(name)
    assert [view.jobs for view in FleetSnapshotCache(site.desk).build_snapshot().nodes] == [None] * 3
    assert site.said == [f"{NODES[0]} and 2 more: cannot tell what is in use: slurmctld does not answer"]


def test_what_another_process_stored_is_heard_and_told_as_news_once(site):
    memory = FleetSnapshotCache(site.desk)
    assert memory.take_new_entries() == [], "what was there at the beginning"
    site.later(minutes=1)
    site.fault(NODES[4])
    assert [entry.kind for entry in memory.take_new_entries()] == ["fault"]
    assert memory.take_new_entries() == []
    assert [view.name for view in memory.build_snapshot().nodes] == [NODES[4]]


def test_outcomes_are_asked_for_again_only_after_a_run_over_their_node(site, monkeypatch):
    memory, asked = FleetSnapshotCache(site.desk), list[set[str]]()
    latest = Ledger.latest
    monkeypatch.setattr(Ledger, "latest", lambda self, **some: asked.append(set(some["nodes"])) or latest(self, **some))
    site.later(minutes=1)
    site.fault(NODES[0])
    assert [memory.build_snapshot().nodes[0].latest for _ in range(3)] == [()] * 3
    site.judge(NODES[0])
    assert memory.build_snapshot().nodes[0].latest
    assert memory.build_snapshot([NODES[5]]).nodes
    site.judge(NODES[5])
    assert memory.build_snapshot().nodes[0].latest
    assert asked == [{NODES[0]}, {NODES[0]}, {NODES[5]}], "the last run judged another node"


def test_a_decision_makes_its_node_one_on_which_there_is_work(site):
    memory = FleetSnapshotCache(site.desk)
    site.later(minutes=1)
    assert find_busy_nodes(memory, NODES) == set()
    site.fault(NODES[0])
    assert record_decisions(memory) == 1
    assert find_busy_nodes(memory, NODES) == {NODES[0]}
    assert find_busy_nodes(memory, NODES[1:]) == set()
    site.settle(NODES[0], "done")
    assert find_busy_nodes(memory, NODES[1:]) == {NODES[0]}, "what was begun is finished, whoever asks"


def test_only_those_asked_about_are_decided(site):
    memory = FleetSnapshotCache(site.desk)
    site.later(minutes=1)
    site.fault(NODES[0])
    site.fault(NODES[9])
    assert record_decisions(memory, candidates=[NODES[9]]) == 1
    assert {story.node for story in memory.node_states().values() if story.state != "production"} == {NODES[9]}


@pytest.mark.parametrize("name", [NODES[0], NODES[-1]])
def test_what_is_declared_for_a_node_is_the_same_thought_through_once_for_its_kind(name):
    assert list(DeclaredOutcomes(FLEET).of_node(name)) == list_declared_outcomes(FLEET, name)
