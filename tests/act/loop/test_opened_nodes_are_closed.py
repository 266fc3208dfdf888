"""What a scheduler forgets, or somebody opens, is closed again by the next pass, as an effect of its own."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from assay.act.effects import effect_journal
from assay.act.loop import reconcile_pass
from assay.act.loop.rack_leases import RackAssignment
from assay.act.loop.reconcile_pass import record_decisions, run_outstanding_effects
from assay.act.loop.snapshot import FleetSnapshotCache
from assay.act.tickets.ticket_updates import update_tickets
from assay.adapters.scheduler import CustomerJob, NoScheduler, SchedulerNodeStatus
from assay.decide.state.outstanding_effects import list_outstanding_effects
from assay.model.cordon_ownership import is_our_reason, prefix_reason
from assay.tell.views.node_explanation import build_decision_chain
from assay.tell.views.node_status import make_node_status
from tests.act.quiet_site import NODES, Far, Site
from tests.support.entry_lines import format_entries

ONE = NODES[0]


class Scheduler(Far):
    """One that takes orders, and keeps whose cordon stands."""

    def cordon_many(self, reasons: Mapping[str, str]) -> None:
        for node, reason in reasons.items():
            self.cordons[node] = self.cordons.get(node) or prefix_reason(reason)

    def uncordon(self, node: str) -> None:
        if is_our_reason(self.cordons.get(node, "")):
            self.cordons[node] = ""


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path / "ledger.sqlite", tmp_path / "home")
    made.far = Scheduler()
    made.later(minutes=1)
    yield made
    made.ledger.close()


@pytest.fixture
def memory(site: Site) -> FleetSnapshotCache:
    """Let a node wait, cordoned, for a job to end."""
    memory = FleetSnapshotCache(site.desk)
    site.far.jobs[ONE] = (CustomerJob("7", "llama", "customer", ""),)
    site.fault(ONE, "gpu.thermal")
    memory.take_new_entries()
    return memory


def one_pass(site: Site, memory: FleetSnapshotCache) -> list[str]:
    """Decide and act; return what changed, in words."""
    record_decisions(memory)
    run_outstanding_effects(memory, NODES)
    site.later(minutes=1)
    return format_entries(memory.take_new_entries())


def owes(memory: FleetSnapshotCache) -> list[str]:
    return [one.action for one in list_outstanding_effects(memory.context.policy, memory.node_states()[ONE])]


def intents(site: Site) -> list[str]:
    return [
        entry.body["effect"]
        for entry in site.ledger.entries(ONE, effect_journal.EFFECT_KINDS)
        if entry.kind == "effect.intent"
    ]


def test_a_cordon_that_the_scheduler_lost_is_made_again_by_an_effect_of_its_own(site: Site, memory: FleetSnapshotCache):
    one_pass(site, memory)
    assert is_our_reason(site.far.cordons[ONE])
    assert one_pass(site, memory) == []

    site.far.cordons.clear()
    said = one_pass(site, memory)
    assert said[0].startswith(f"{ONE}: closes the node again: cordon of 2026-11-21 12:0")
    assert "with job 7 (llama, customer) on it" in said[0]
    assert f"{ONE}: cordon verified" in said[-1]
    assert is_our_reason(site.far.cordons[ONE])
    assert len(set(intents(site))) == 2
    assert one_pass(site, memory) == []


def test_a_foreign_cordon_is_honoured_never_undone_and_followed_by_ours(site: Site, memory: FleetSnapshotCache):
    site.far.cordons[ONE] = "bob: fans"
    one_pass(site, memory)
    assert site.far.cordons[ONE] == "bob: fans"
    assert one_pass(site, memory) == []

    site.far.cordons[ONE] = ""
    one_pass(site, memory)
    assert is_our_reason(site.far.cordons[ONE])


def test_a_robot_that_opens_it_each_time_is_told_of_by_a_ticket_that_ends_with_the_quarrel(
    site: Site, memory: FleetSnapshotCache
):
    for _ in range(6):
        one_pass(site, memory)
        update_tickets(site.desk, memory)
        site.far.cordons[ONE] = ""
    assert len(intents(site)) == 4
    (ticket,) = [entry.body for entry in site.ledger.entries(kinds=["ticket.opened"]) if "opens" in entry.body["title"]]
    assert ticket["title"] == f"somebody opens {ONE} while it is in production"
    assert "assay hold" in ticket["steps"]

    site.later(hours=24)
    one_pass(site, memory)
    update_tickets(site.desk, memory)
    assert is_our_reason(site.far.cordons[ONE])
    assert [entry.body["ticket"] for entry in site.ledger.entries(kinds=["ticket.closed"])] == [ticket["ticket"]]


def test_nothing_is_made_of_a_scheduler_that_is_silent_that_knows_no_such_node_or_is_none(
    site: Site, memory: FleetSnapshotCache
):
    one_pass(site, memory)
    site.far.cordons.clear()
    site.far.silent = True
    assert one_pass(site, memory) == []
    site.far.silent, site.far.strangers = False, {ONE}
    assert one_pass(site, memory) == []
    site.far = NoScheduler({})
    assert FleetSnapshotCache(site.desk).build_snapshot([ONE]).nodes[0].cordon is None


def test_a_scheduler_whose_answer_makes_no_sense_keeps_nobody_elses_node_waiting(
    site: Site, memory: FleetSnapshotCache, monkeypatch
):
    class Odd(Far):
        def read_statuses(self, nodes: Collection[str]) -> dict[str, SchedulerNodeStatus]:
            raise KeyError("status")

    odd, sane = Odd(), site.far
    site.desk = replace(site.desk, workloads=lambda node: odd if node.name == NODES[1] else sane)
    views = {view.name: view for view in FleetSnapshotCache(site.desk).build_snapshot(NODES).nodes}
    assert (views[NODES[1]].jobs, views[ONE].jobs) == (None, ("job 7 (llama, customer)",))
    assert site.said[-1] == f"{NODES[1]}: cannot tell what is in use: internal error: KeyError: 'status'"


def test_what_was_left_half_done_does_not_go_on_before_the_node_is_closed_again(
    site: Site, memory: FleetSnapshotCache, monkeypatch
):
    site.fault(ONE, "gpu.xid.79")
    record_decisions(memory)
    for action in ("cordon", "drain-now"):
        site.settle(ONE, only=action)
    site.far.cordons.clear()
    done: list[str] = []
    steps = ("accept_commit", "scan_fabrics", "observe_nodes", "record_silence", "tell_people")
    for name in steps:
        monkeypatch.setattr(reconcile_pass, name, lambda *_, **__: [])
    monkeypatch.setattr(reconcile_pass, "run_outstanding_effects", lambda memory, _: done.extend(owes(memory)))
    reconcile_pass._run_pass(memory, RackAssignment(), [ONE], scan_fabric=False)
    assert done[:4] == ["cordon", "drain-now", "collect", "reboot"]


def test_status_and_explain_say_it(site: Site, memory: FleetSnapshotCache):
    one_pass(site, memory)
    site.far.cordons.clear()
    one_pass(site, memory)
    story = memory.node_states()[ONE]
    (again,) = [link for link in build_decision_chain(site.ledger, story, 0) if link.remedy == "cordon"]
    assert [(effect.action, effect.standing) for effect in again.effects] == [("cordon", "verified")]
    assert make_node_status(story).opened[0].reason.startswith("cordon of ")
