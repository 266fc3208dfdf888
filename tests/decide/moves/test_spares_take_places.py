"""A pool that declares its size: proven spares take the places of nodes that are out for too long, and no more."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from assay.act.tickets.desired_tickets import TechnicianNotes, list_desired_tickets
from assay.decide.moves.decide import decide
from assay.decide.moves.replacements import find_swaps, judge_pools
from assay.model.entries.node_entries import NodeReplacedEntry
from assay.model.ledger_entry import LedgerEntry
from assay.model.specs.node_settings import PoolCapacity
from assay.model.specs.policy_sections import RackRule

PHASES = ("test", "production", "fabric")


def add_spare(paper, name, *, proven=True, **more):
    paper.add(name, "spare", **more)
    if proven:
        for phase in PHASES:
            paper.judge(name, phase)


def decided(paper, delivered, **more):
    """Decide once for a pool of this size, and write it down; return the moves."""
    capacities = {"a": PoolCapacity(delivered=delivered)}
    made = paper.step(lambda snapshot: decide(replace(snapshot, capacities=capacities, **more)))
    return [(one.node, one.from_state, one.to_state) for one in made if one.timing == "immediate"]


def leave(paper, name, state="triage"):
    """Let a node that serves come to a state by a decision."""
    paper.say("move", name, to=state, now=True)
    while paper.story(name).state != state:
        paper.step()
        paper.settle(name)


@pytest.fixture
def pool(paper):
    for name in ("n1", "n2"):
        paper.add(name)
    return paper


def test_a_node_that_people_must_repair_is_replaced_at_once_and_the_swap_names_both_machines(pool):
    add_spare(pool, "n3")
    leave(pool, "n2")
    assert decided(pool, 2) == [("n3", "spare", "production")]
    swap = next(entry for entry in pool.log.values() if entry.kind == NodeReplacedEntry.kind)
    content = NodeReplacedEntry.read(swap)
    assert (swap.node, content.serial, content.by, content.by_serial) == ("n2", "s-n2", "n3", "s-n3")
    assert content.decision in pool.story("n3").decisions
    assert pool.story("n3").reason.startswith("takes the place of n2 (s-n2), out since ")
    assert pool.settle("n3") == ["uncordon"]
    assert decided(pool, 2) == [], "once"


def test_a_restart_is_waited_for_until_its_hours_are_over(pool):
    add_spare(pool, "n3")
    pool.fault("n2", "gpu.xid.79")
    assert decided(pool, 2) == [("n2", "production", "production-reboot")]
    assert decided(pool, 2) == []
    pool.later(hours=5)
    for phase in PHASES:
        pool.judge("n3", phase)
    assert ("n3", "spare", "production") in decided(pool, 2)


def test_who_comes_back_to_a_full_pool_is_the_next_spare(pool):
    add_spare(pool, "n3")
    leave(pool, "n2", "production-reboot")
    pool.later(hours=5)
    for phase in PHASES:
        pool.judge("n3", phase)
    assert decided(pool, 2) == [("n3", "spare", "production")]
    pool.pass_all("n2")
    assert decided(pool, 2) == [("n2", "production-reboot", "spare")]
    assert "2 of 2 nodes of pool a serve: this one is a spare" in pool.story("n2").reason


def test_who_comes_back_before_a_spare_came_serves_again(pool):
    leave(pool, "n2", "production-reboot")
    pool.pass_all("n2")
    assert decided(pool, 2) == [("n2", "production-reboot", "production")]


@pytest.mark.parametrize("lack", ["proof", "hold", "fault", "spec", "check", "cordon", "order"])
def test_a_spare_that_is_not_free_and_proven_stays(pool, lack):
    add_spare(pool, "n3", proven=lack != "proof", kind="other" if lack == "spec" else "hgx")
    if lack == "hold":
        pool.say("hold", "n3")
    elif lack == "fault":
        pool.fault("n3", "nic.errors")
    elif lack == "check":
        pool.judge("n3", "production", "fail")
    elif lack == "cordon":
        pool.foreign["n3"] = "bob looks at it"
    elif lack == "order":
        pool.say("move", "n3", to="triage")
    leave(pool, "n2")
    assert ("n3", "spare", "production") not in decided(pool, 2)


def test_a_proof_that_has_grown_old_is_taken_again_first(pool):
    add_spare(pool, "n3")
    leave(pool, "n2")
    pool.later(hours=200)
    assert decided(pool, 2) == []
    pool.pass_all("n3")
    assert decided(pool, 2) == [("n3", "spare", "production")]


def test_a_tray_is_replaced_in_its_rack_only(pool):
    pool.policy = pool.policy.model_copy(update={"racks": {"nvl": RackRule(node_specs=["hgx"], of=4, more_than=3)}})
    add_spare(pool, "n3", rack="r02")
    leave(pool, "n2")
    assert decided(pool, 2) == []
    add_spare(pool, "n4", rack="r01")
    assert decided(pool, 2) == [("n4", "spare", "production")]


def test_the_nearest_spare_comes(pool):
    add_spare(pool, "n3")
    add_spare(pool, "n4")
    leave(pool, "n2")
    traits = {"n2": frozenset({("leaf", "l2")}), "n3": frozenset({("leaf", "l1")}), "n4": frozenset({("leaf", "l2")})}
    assert decided(pool, 2, traits=traits) == [("n4", "spare", "production")]


def test_a_pool_that_never_was_full_is_filled(paper):
    paper.add("n1")
    add_spare(paper, "n3")
    assert decided(paper, 2) == [("n3", "spare", "production")]
    assert not [entry for entry in paper.log.values() if entry.kind == NodeReplacedEntry.kind]


def test_a_pool_that_declares_nothing_moves_nothing(pool):
    add_spare(pool, "n3")
    leave(pool, "n2")
    assert pool.step() == []


def test_a_spare_that_breaks_is_repaired_and_is_a_spare_again(pool):
    add_spare(pool, "n3")
    pool.fault("n3", "gpu.xid.79")
    assert decided(pool, 2) == [("n3", "spare", "production-reboot")]
    pool.settle("n3")
    pool.pass_all("n3")
    assert decided(pool, 2) == [("n3", "production-reboot", "spare")]


def test_a_spare_takes_no_room_from_the_limits(pool):
    add_spare(pool, "n3")
    pool.fault("n3", "gpu.xid.79")
    decided(pool, 2)
    pool.fault("n2", "gpu.xid.79")
    assert decided(pool, 2) == [("n2", "production", "production-reboot")]


STATES = st.sampled_from(["production", "triage", "production-reboot", "zap", "retired"])


@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@given(
    st.lists(st.tuples(STATES, st.sampled_from(["hgx", "tray"])), min_size=1, max_size=6),
    st.lists(st.tuples(st.booleans(), st.sampled_from(["hgx", "tray"])), max_size=5),
    st.integers(1, 7),
    st.integers(0, 9),
    st.randoms(),
)
def test_any_pool_opens_only_proven_spares_of_the_same_kind_and_never_too_many(
    new_paper, members, reserve, delivered, hours, random
):
    paper = new_paper()
    for number, (_, kind) in enumerate(members):
        paper.add(f"n{number}", kind=kind)
    for number, (state, _) in enumerate(members):
        if state != "production":
            move = {"from": "production", "to": state, "decision": f"d{number}"}
            paper.write(LedgerEntry(f"t{number}", paper.now.isoformat(), "transition", f"n{number}", move))
    paper.later(hours=hours)
    for number, (proven, kind) in enumerate(reserve):
        add_spare(paper, f"s{number}", proven=proven, kind=kind)
    snapshot = replace(paper.situation(), capacities={"a": PoolCapacity(delivered=delivered)})
    standings = judge_pools(snapshot)
    swaps = find_swaps(snapshot, standings)
    standing = standings["a"]
    assert standing.delivered + len(swaps) <= max(delivered, standing.delivered)
    proven = {f"s{number}": kind for number, (is_proven, kind) in enumerate(reserve) if is_proven}
    assert swaps.keys() <= proven.keys()
    gone = [swap.absent.state.node for swap in swaps.values() if swap.absent]
    assert len(gone) == len(set(gone))
    for swap in swaps.values():
        if swap.absent:
            assert paper.nodes[swap.absent.state.node].spec == swap.spare.node.spec
            assert hours >= 4 or swap.absent.state.state in ("triage", "retired")
    left = {name: kind for name, kind in proven.items() if name not in swaps}
    unanswered = [absent for absent in standing.overdue if absent.state.node not in gone]
    if len(swaps) < standing.wanted:
        assert not {paper.nodes[absent.state.node].spec for absent in unanswered} & set(left.values())
    nodes = list(snapshot.nodes)
    random.shuffle(nodes)
    assert find_swaps(replace(snapshot, nodes=tuple(nodes)), judge_pools(snapshot)).keys() == swaps.keys()
    opened = [one.node for one in decide(snapshot) if one.to_state == "production" and one.timing == "immediate"]
    assert standing.delivered + len(opened) <= max(delivered, standing.delivered)


def prepare(paper, **traits):
    """Return the tickets of what gets worse."""
    situation = replace(paper.situation(), traits=traits)
    tickets = list_desired_tickets(situation, (), {}, TechnicianNotes(catalog=paper.catalog))
    return [ticket for ticket in tickets if ticket.key.startswith("incident/")]


def test_what_gets_worse_is_prepared_for_with_the_nearest_spare(pool):
    add_spare(pool, "n3")
    add_spare(pool, "n4")
    pool.fault("n2", "trend.heat", "gpu1")
    (ticket,) = prepare(pool, n2=frozenset({("leaf", "l2")}), n4=frozenset({("leaf", "l2")}))
    assert ticket.title == "Prepare for its failure: gpu1 of n2 (trend.heat)"
    assert ticket.severity == "informational"
    assert "have n4 ready to take the place of n2; nothing takes it out of service yet" in ticket.steps
    assert [place.device for place in ticket.places] == ["n2", "n4"]


def test_without_a_proven_spare_the_ticket_says_so(pool):
    add_spare(pool, "n3", proven=False)
    pool.fault("n2", "trend.heat", "gpu1")
    (ticket,) = prepare(pool)
    assert "no proven spare waits to take the place of n2" in ticket.steps
    assert [place.device for place in ticket.places] == ["n2"]


def test_a_node_that_does_not_serve_needs_no_preparation(pool):
    leave(pool, "n2")
    pool.fault("n2", "trend.heat", "gpu1")
    assert prepare(pool) == []
