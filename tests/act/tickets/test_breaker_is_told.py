"""A pool whose breaker is open gets one ticket with what its nodes have in common, until nothing is held any more."""

from __future__ import annotations

from assay.act.loop.reconcile_pass import record_decisions
from assay.act.loop.snapshot import FleetSnapshotCache
from assay.act.tickets.ticket_updates import update_tickets
from tests.act.quiet_site import NODES, Site


def test_a_wave_is_one_ticket_with_its_cause_and_not_one_for_each_node(site: Site):
    memory = FleetSnapshotCache(site.desk)
    for name in NODES:
        site.fault(name)
    record_decisions(memory)
    update_tickets(site.desk, memory)
    tickets = [entry.body for entry in site.ledger.entries(kinds=["ticket.opened"])]
    waves = [one for one in tickets if one["title"].startswith("many nodes of pool ")]
    pools = {site.desk.fleet.nodes[name].pool for name in NODES}
    assert 1 <= len(waves) <= len(pools)
    assert "gpu.xid.79 on" in waves[0]["seen"]
    assert any(state.is_held_by_breaker for state in memory.list_active_states())
