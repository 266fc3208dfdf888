"""What a pool delivers of what it declares: the line, the swaps with both serial numbers, the ticket and the metric."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from assay.act.tickets.desired_tickets import list_desired_tickets
from assay.decide.moves.decide import decide
from assay.decide.state.service_absences import list_fleet_absences
from assay.ledger.store import Ledger
from assay.model.facts import to_json
from assay.model.specs.node_settings import PoolCapacity
from assay.model.timestamps import format_minute
from assay.observe.last_seen import CONTACTS_FILE, LastSeen
from assay.tell.views.expected_return import describe_return
from assay.tell.views.listings import summarize_node, summarize_pools
from assay.tell.views.pool_delivery import list_pool_deliveries
from tests.decide.conftest import Paper, catalog, policy, profiles  # noqa: F401


@pytest.fixture
def paper(policy, catalog, profiles) -> Paper:  # noqa: F811
    paper = Paper(policy, catalog, profiles)
    for name in ("n1", "n2"):
        paper.add(name, serial=f"S-{name}")
    paper.add("n3", "spare", serial="S-n3")
    for phase in ("test", "production"):
        paper.judge("n3", phase)
    return paper


CAPACITIES = {"a": PoolCapacity(delivered=2, spares=1)}


def leave(paper, name):
    paper.say("move", name, to="triage", now=True)
    for _ in range(4):
        paper.step(lambda snapshot: decide(replace(snapshot, capacities=CAPACITIES)))
        paper.settle(name)


def read(paper, tmp_path, silent=()):
    ledger = Ledger.open(tmp_path / "ledger.sqlite")
    ledger.append(*(replace(entry, seq=0) for entry in paper.log.values()))
    serving, policies = paper.policy.states_in_service, {"default": paper.policy}
    fleet = SimpleNamespace(
        policy=paper.policy, policies=policies, states_in_service=serving, nodes=paper.nodes, capacities=CAPACITIES
    )
    clock = SimpleNamespace(now=lambda: paper.now)
    LastSeen(tmp_path / CONTACTS_FILE).record_polls(
        {(name, "probe"): name not in silent for name in paper.nodes}, paper.now
    )
    source = SimpleNamespace(fleet=fleet, ledger_for_reading=ledger, clock=clock, data_dir=tmp_path)
    return source, list_pool_deliveries(source, list(paper.stories().values()))


def test_a_swap_is_told_with_both_serial_numbers_and_its_decision(paper, tmp_path):
    leave(paper, "n2")
    source, [delivery] = read(paper, tmp_path)
    assert delivery.describe() == "pool a: 2 of 2 nodes serve, 0 of 1 spares are left"
    [swap] = delivery.swaps
    assert (swap.node, swap.body["serial"], swap.body["by"], swap.body["by_serial"]) == ("n2", "S-n2", "n3", "S-n3")
    assert swap.body["decision"] in paper.story("n3").decisions
    assert [(away.node, away.state, away.place) for away in delivery.away] == [("n2", "triage", "replaced")]
    nodes = [summarize_node(source.fleet, state, {}, for_customer=False) for state in paper.stories().values()]
    [pool] = summarize_pools(nodes, [delivery])
    assert to_json(pool)["delivery"]["swaps"][0]["body"]["by_serial"] == "S-n3"


def test_a_node_that_nobody_has_read_is_not_counted_as_serving(paper, tmp_path):
    paper.later(hours=2)
    _, [delivery] = read(paper, tmp_path, silent=["n2"])
    assert (delivery.delivered, delivery.not_known, delivery.missing) == (1, 1, 0)
    assert delivery.describe().startswith("pool a: 1 of 2 nodes serve, 1 more are not known, ")


def test_without_a_spare_the_pool_says_what_lacks_and_until_when_and_has_one_ticket(paper, tmp_path):
    leave(paper, "n2")
    leave(paper, "n1")
    _, [delivery] = read(paper, tmp_path)
    assert (delivery.missing, delivery.lacking, delivery.spares) == (1, 1, 0)
    # by the policy's deadlines: triage 72 h, seatrial 24, zap 6, test 48
    assert delivery.describe().endswith("1 lack, without a spare: enough should be back on 2026-11-27")
    absences = list_fleet_absences([paper.policy], paper.stories().values())
    first = min(away.expected for away in delivery.away)
    told = [describe_return(paper.story(each.node), paper.policy, absences, paper.now) for each in delivery.away]
    assert any(f"by {format_minute(first)} if every step keeps to its time" in sentence for sentence in told)
    snapshot = replace(paper.situation(), capacities=CAPACITIES)
    [ticket] = [each for each in list_desired_tickets(snapshot, (), {}) if each.key.startswith("capacity/")]
    assert ticket.title == "1 of 2 nodes of pool a serve, and no spare is left"
    assert ticket.seen == "expected to be enough again on 2026-11-27\nn1 is in triage"
    assert not list_desired_tickets(replace(snapshot, capacities={}), (), {})[2:], "only the tickets of triage"
