"""A drain by somebody else stops what would disturb him, also between the decision and the effect."""

from __future__ import annotations

import pytest

from assay.act.loop.reconcile_pass import record_decisions, run_outstanding_effects
from assay.act.loop.snapshot import FleetSnapshotCache
from assay.act.tickets.ticket_updates import update_tickets
from assay.adapters.scheduler import SchedulerNodeStatus
from tests.act.quiet_site import NODES, Site

ONE = NODES[0]
FANS = "bob: fans"


def actions(site: Site) -> list[str]:
    return [entry.body["action"] for entry in site.ledger.entries(ONE, kinds=["effect.intent"])]


def test_a_node_that_a_person_drained_is_not_touched_and_a_ticket_says_so(site: Site, memory: FleetSnapshotCache):
    site.far.cordons[ONE] = FANS
    site.fault(ONE)
    record_decisions(memory)
    run_outstanding_effects(memory, NODES)
    update_tickets(site.desk, memory)
    assert memory.node_states()[ONE].state == "production"
    assert actions(site) == []
    tickets = [entry.body for entry in site.ledger.entries(kinds=["ticket.opened"])]
    (ticket,) = [one for one in tickets if one["title"] == f"{ONE} is broken, and somebody keeps it closed"]
    assert FANS in ticket["seen"]
    site.far.cordons[ONE] = ""
    site.later(hours=1)
    record_decisions(memory)
    update_tickets(site.desk, memory)
    assert [entry.body["ticket"] for entry in site.ledger.entries(kinds=["ticket.closed"])] == [ticket["ticket"]]


def test_a_person_who_comes_between_the_decision_and_the_reboot_is_left_alone(site: Site, memory: FleetSnapshotCache):
    site.fault(ONE)
    record_decisions(memory)
    assert memory.node_states()[ONE].state == "production-reboot"
    site.settle(ONE, only="cordon")
    site.far.cordons[ONE] = FANS
    run_outstanding_effects(memory, NODES)
    assert actions(site) == ["cordon"], "no drain, no reboot"
    assert f"{ONE}: closed by others ({FANS}), so assay waits" in site.said


@pytest.mark.parametrize(
    ("status", "foreign"),
    [
        (SchedulerNodeStatus(cordon="assay: gpu.missing"), ""),
        (
            SchedulerNodeStatus(cordon="set or changed by bob: assay: gpu.missing"),
            "set or changed by bob: assay: gpu.missing",
        ),
        (
            SchedulerNodeStatus(cordon="assay: x; also made unschedulable by kubectl", others_cordon="kubectl"),
            "kubectl",
        ),
        (SchedulerNodeStatus(cordon="Not responding", is_self_clearing=True), ""),
        (SchedulerNodeStatus(), ""),
    ],
)
def test_whose_a_cordon_is(status: SchedulerNodeStatus, foreign: str):
    assert status.foreign_cordon == foreign
