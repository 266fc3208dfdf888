"""A pool whose breaker is open gets one ticket with what its nodes have in common, until nothing is held any more."""

from __future__ import annotations

import pytest

from assay.act.loop.reconcile_pass import record_decisions
from assay.act.loop.snapshot import FleetSnapshotCache
from assay.act.tickets.ticket_diff import TICKETS
from assay.act.tickets.ticket_updates import update_tickets
from assay.ledger.ledger_reader import read_projection
from tests.act.quiet_site import NODES, Site


def test_a_wave_is_one_ticket_with_its_cause_and_not_one_for_each_node(site: Site):
    memory = FleetSnapshotCache(site.desk)
    for name in NODES:
        site.fault(name)
    record_decisions(memory)
    update_tickets(site.desk, memory)
    tickets = [entry.body for entry in site.ledger.entries(kinds=["ticket.opened"])]
    waves = [one for one in tickets if one["title"].startswith("Find the cause, or clear the breaker: many nodes")]
    pools = {site.desk.fleet.nodes[name].pool for name in NODES}
    assert 1 <= len(waves) <= len(pools)
    assert "gpu.xid.79 on" in waves[0]["seen"]
    assert any(state.is_held_by_breaker for state in memory.list_active_states())


@pytest.mark.parametrize(
    ("classes", "severity"),
    [(["gpu.fabric"], "degraded"), (["gpu.fabric", "gpu.xid.79"], "catastrophic"), (["gpu.xid.79"], "catastrophic")],
)
def test_the_severity_of_a_wave_is_the_worst_of_its_incidents(site: Site, classes: list[str], severity: str):
    for place, name in enumerate(NODES):
        site.fault(name, classes[place % len(classes)])
    memory = FleetSnapshotCache(site.desk)
    record_decisions(memory)
    update_tickets(site.desk, memory)
    tickets = [entry.body for entry in site.ledger.entries(kinds=["ticket.opened"])]
    waves = [one for one in tickets if one["key"] == "breaker/h100-a"]
    assert [one["severity"] for one in waves] == [severity]


def test_a_series_is_one_ticket_with_its_members_until_a_person_answers(site: Site):
    """Sixteen nodes of one pool, one every three hours: the sixth begins the series, and no pass looks at a clock."""
    names = [name for name in NODES if site.desk.fleet.nodes[name].pool == "h100-a"]
    for name in names[:9]:
        site.fault(name, "bmc.unhealthy", "")
        for _ in range(2):
            memory = FleetSnapshotCache(site.desk)
            record_decisions(memory)
            update_tickets(site.desk, memory)
        site.later(hours=3)

    def tickets():
        return [one for one in read_projection(site.ledger, TICKETS).values() if not one.closed_at]

    (series,) = [one.ticket for one in tickets() if one.ticket.key.startswith("breaker/")]
    assert series.key == "breaker/h100-a/bmc.unhealthy"
    assert series.title.startswith(
        "Find the cause, or clear the breaker: 9 of 16 serving nodes of pool h100-a showed bmc.unhealthy within "
    )
    assert [place.device for place in series.places] == names[:9]
    assert series.severity == "degraded", "as its faults"
    single = [one.ticket.node for one in tickets() if one.ticket.key.startswith("fault/")]
    assert single == names[: len(single)], "those from before it was a series"
    assert len(single) <= 5
    for name in names:
        site.say("breaker.cleared", name, pool="h100-a", fault_class="bmc.unhealthy")
    memory = FleetSnapshotCache(site.desk)
    record_decisions(memory)
    update_tickets(site.desk, memory)
    assert sorted(one.ticket.key.partition("/")[0] for one in tickets()) == ["incident"] * 9
