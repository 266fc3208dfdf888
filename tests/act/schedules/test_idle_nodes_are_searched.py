"""Idle nodes run collectives by the clock: who is named gets a fault, customers come first, and doubt names nobody."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import pytest

from assay.act.loop.context import ControllerContext
from assay.act.schedules import collectives_search
from assay.act.schedules.collectives_search import CustomerWatch, search_collectives
from assay.act.schedules.due_slots import ScheduleHistory, ScheduleLine, SlotTask
from assay.act.schedules.slot_runner import SlotResult, read_schedule_history
from assay.act.tickets.collective_link_tickets import NamedLink, find_links, make_link_tickets
from assay.act.tickets.ticket_diff import TICKET_KINDS
from assay.act.tickets.ticket_updates import update_tickets
from assay.adapters.scheduler import CustomerJob, NoScheduler, SchedulerNodeStatus
from assay.fabric.scan import format_fabric_subject
from assay.model.entries.effects import BurnInOverEntry, BurnInStartedEntry
from assay.model.entries.node_entries import TransitionEntry
from assay.model.entries.schedule_entries import ScheduleRanEntry
from assay.model.errors import AssayError
from assay.model.evidence import EvidenceDocument
from assay.model.ledger_entry import LedgerEntry
from assay.model.specs.fabric.fabric_design import FabricDesign
from assay.model.specs.schedules import FleetSchedule, find_previous_slot
from assay.model.specs.workload import CollectiveWorkload
from assay.validate.collectives import cpu_workload
from assay.validate.collectives.judging import SpeedRule
from assay.validate.collectives.result_file import ResultFile, SearchHeader
from assay.validate.collectives.search import StageSettings
from tests.act.schedules.by_hand import in_production
from tests.act.tickets.test_suspect_trays import TRAY, lead_to, make_evidence
from tests.fabric.nvlink_racks import DESIGN, dump

NODES = [f"n{at:04}" for at in range(1, 9)]
JOB = CustomerJob("17", "llama", "ada", "2026-11-20T00:00:00+00:00")


class Scheduler(NoScheduler):
    """A scheduler whose nodes are idle, but for those of `jobs`: after so many readings, a customer has them."""

    jobs: ClassVar[dict[str, int]] = {}
    readings = 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Scheduler)

    def __hash__(self) -> int:
        return 1

    def read_statuses(self, nodes):
        Scheduler.readings += 1
        free = super().read_statuses(nodes)
        taken = {name for name, after in self.jobs.items() if Scheduler.readings > after}
        return {name: SchedulerNodeStatus((JOB,)) if name in taken else status for name, status in free.items()}


@pytest.fixture
def idle_desk(desk: ControllerContext) -> ControllerContext:
    """Return a desk of eight idle nodes that serve; no scheduler fills the others."""
    nodes = dict(desk.fleet.nodes)
    for name in NODES:
        nodes[name] = replace(nodes[name], settings=nodes[name].settings.model_copy(update={"workloads": "slurm"}))
    Scheduler.jobs, Scheduler.readings = {}, 0
    context = replace(desk, fleet=replace(desk.fleet, nodes=nodes), workloads=lambda node: Scheduler(node.settings))
    in_production(context)
    return context


def planted(context: ControllerContext, *plants: str, deadline_s: float = 30) -> ControllerContext:
    """Return the desk with a workload of this machine in which these faults are planted."""
    program = [
        sys.executable,
        "-I",
        "-S",
        cpu_workload.__file__,
        "--round={round}",
        *(f"--plant={one}" for one in plants),
    ]
    words = {"pair": ["{a}", "{b}"], "alone": ["{node}"], "together": ["{nodes}"]}
    commands = {name: {"command": [*program, *more], "deadline_seconds": deadline_s} for name, more in words.items()}
    made = {"kind": "CollectiveWorkload", "name": "ours", "sources": ["us"], **commands}
    workload = CollectiveWorkload.model_validate(made)
    return replace(context, fleet=replace(context.fleet, collective_workloads={"ours": workload}))


def make_schedule(whole: str = "no", min_nodes: int = 4) -> FleetSchedule:
    search = {"workload": "ours", "min_nodes": min_nodes, "at_once": 4, "whole": whole}
    return FleetSchedule(does="collectives-search", cron="0 * * * *", search=search)


def searched(context: ControllerContext, min_nodes: int = 4, whole: str = "no") -> SlotResult:
    schedule = make_schedule(whole, min_nodes)
    slot = find_previous_slot(schedule, "UTC", context.clock.now())
    result = search_collectives(context, SlotTask(ScheduleLine("weekly", "compute", schedule, "UTC"), slot))
    context.clock.sleep(3600)
    return result


def faults(context: ControllerContext) -> list[tuple[str, str, str]]:
    found = context.ledger.entries(kinds=["fault", "fault.cleared"])
    return [(entry.kind, entry.node, entry.body.get("class", "")) for entry in found]


def test_a_named_node_gets_a_fault_with_its_evidence_and_the_next_search_ends_it(idle_desk: ControllerContext) -> None:
    result = searched(planted(idle_desk, "n0003=slow"))
    assert "1 named: node n0003 (slow)" in result.reason
    assert faults(idle_desk) == [("fault", "n0003", "collective.node.slow")]
    [fault] = idle_desk.ledger.entries(kinds=["fault"])
    assert "of the median" in fault.body["detail"]
    results = idle_desk.home.parent / fault.body["detail"].rpartition("; ")[2]
    assert results.is_file(), "the results are there"
    for day in range(1, 31):
        (results.parent / f"202001{day:02}T030000.jsonl").touch()
    searched(planted(idle_desk))
    assert len(list(results.parent.glob("*.jsonl"))) == 20
    assert results.is_file(), "the oldest went"
    assert faults(idle_desk)[-1][:2] == ("fault.cleared", "n0003")


def test_too_few_idle_nodes_are_told_and_nothing_runs(idle_desk: ControllerContext) -> None:
    Scheduler.jobs = dict.fromkeys(NODES[:6], 0)
    result = searched(planted(idle_desk))
    assert result.reason == "nothing was searched: 2 nodes of 8 idle, 4 needed (job 17 (llama, ada))"
    assert result.facts["too_few"] == 2
    assert not (idle_desk.home / "collectives").exists()


def test_a_workload_runs_on_no_node_that_lacks_what_it_needs(idle_desk: ControllerContext) -> None:
    context = planted(idle_desk)
    ours = context.fleet.collective_workloads["ours"].model_copy(update={"needs": ["amd"]})
    of_amd = replace(context, fleet=replace(context.fleet, collective_workloads={"ours": ours}))
    assert searched(of_amd).reason.startswith("nothing was searched: 0 nodes of 0 idle, 4 needed")


@pytest.mark.slow
def test_a_customer_in_the_middle_ends_runs_and_that_is_never_a_fault(
    idle_desk: ControllerContext,
) -> None:
    """From the third reading on, a customer has n0003, which dies in each run that still finds it free."""
    Scheduler.jobs = {"n0003": 2}
    result = searched(planted(idle_desk, "n0003:alone=dead"))
    assert faults(idle_desk) == []
    assert "nobody named" in result.reason
    assert "gave way to customers" in result.reason


@pytest.mark.slow
def test_what_cannot_be_told_and_what_was_bad_once_is_no_fault(idle_desk: ControllerContext) -> None:
    everywhere = [f"{name}=dead" for name in NODES]
    result = searched(planted(idle_desk, *everywhere))
    assert faults(idle_desk) == []
    assert "could not be told" in result.reason


def search_new(context: ControllerContext, *new: str, whole: str = "no") -> SlotResult:
    """Let the burn-ins of these nodes be over but for collectives, and run the search that they wait for."""
    at, idents = context.clock.now(), {name: f"day-{name}" for name in new}
    for name, ident in idents.items():
        contents = (
            TransitionEntry("production", "test", "d"),
            BurnInStartedEntry(ident, "day", 24),
            BurnInOverEntry(ident),
        )
        context.ledger.append(*(one.make_entry(f"{one.kind}-{name}", at.isoformat(), name) for one in contents))
    line = ScheduleLine("weekly-new-nodes", "compute", make_schedule(whole), "UTC")
    return search_collectives(context, SlotTask(line, at, burn_ins=tuple(idents.values())))


def test_new_nodes_run_collectives_with_idle_ones_before_they_serve(idle_desk: ControllerContext) -> None:
    context = planted(idle_desk, "n0009=wrong")
    found = search_new(context, "n0009", "n0010")
    assert found.reason == "4 nodes ran collectives: 1 named", "two new ones, and two that serve"
    assert found.facts == {"named_nodes": {"n0009": "n0009 (wrong)"}, "suspected_nodes": {}}
    assert faults(context) == [("fault", "n0009", "collective.node.wrong")]


RACKED = {f"n{at:04}": f"lab1 r{(at + 2) // 3}" for at in range(1, 13)}


def test_a_rack_that_is_bad_over_nvlink_is_named_as_a_link_until_a_search_sees_it_good(
    idle_desk: ControllerContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collectives_search, "find_nvlink_domains", lambda _: RACKED)
    monkeypatch.setattr(collectives_search, "find_domain_designs", lambda _: {"lab1 r1": "rack-01"})
    nodes, slurm = dict(idle_desk.fleet.nodes), idle_desk.fleet.nodes["n0001"].settings
    nodes |= {name: replace(nodes[name], settings=slurm) for name in RACKED}
    context = replace(idle_desk, fleet=replace(idle_desk.fleet, nodes=nodes))
    ill = planted(context, "n0001+n0002=slow")
    found = searched(ill, whole="last").facts
    assert found["named"] == [{"kind": "nvlink", "name": "lab1 r1", "symptom": "slow over NVLink"}]
    assert found["links"]["lab1 r1"]["design"] == "rack-01"
    assert faults(context) == [], "it belongs to no node"
    [ticket] = make_link_tickets(find_links_of(SlotResult("done", "", found), context))
    assert ticket.title == "nvlink lab1 r1 makes collectives bad"
    assert "which switch tray cannot be told: no FabricDesign describes its NVLinks" in ticket.seen
    assert "a switch tray" in ticket.cause
    assert "assay fabric scan rack-01" in ticket.steps
    assert searched(planted(context), whole="last").facts["links_good"] == ["lab1 r1"]
    new = search_new(planted(context, "n0001+n0002=wrong"), *sorted(RACKED)[:6], whole="last")
    assert new.facts["suspected_nodes"].keys() == {"n0001", "n0002", "n0003"}, "no tray of a bad rack serves"


@pytest.mark.parametrize("is_scanned", [True, False])
def test_the_switch_tray_to_which_the_sick_nvlinks_of_a_bad_rack_lead_is_named(
    idle_desk: ControllerContext, monkeypatch: pytest.MonkeyPatch, is_scanned: bool
) -> None:
    monkeypatch.setattr(collectives_search, "find_nvlink_domains", lambda _: RACKED)
    monkeypatch.setattr(collectives_search, "find_domain_designs", lambda _: {"lab1 r1": "rack-07"})
    nodes, slurm = dict(idle_desk.fleet.nodes), idle_desk.fleet.nodes["n0001"].settings
    nodes |= {name: replace(nodes[name], settings=slurm) for name in RACKED}
    designs = {**idle_desk.fleet.designs, "rack-07": FabricDesign.model_validate(DESIGN)}
    context = replace(idle_desk, fleet=replace(idle_desk.fleet, nodes=nodes, designs=designs))
    for name in NODES[:3]:
        context.evidence.store_latest(make_evidence(name, lead_to(*TRAY, first=1)))
    if is_scanned:
        printed = {"discovery": {"text": {"value": dump()}, "stderr": {"value": ""}}}
        context.evidence.store_latest(
            EvidenceDocument(format_fabric_subject(designs["rack-07"]), context.clock.now(), printed)
        )
    found = searched(planted(context, "n0001+n0002=slow"), whole="last")
    links = find_links_of(found, context)
    [ticket] = make_link_tickets(links)
    words = "NVLinks of 12 GPUs on 3 of 3 nodes are down or count errors"
    if is_scanned:
        assert f"lab1 r1: nvswitch-5 is suspect: {words}" in found.reason
        assert ticket.title == "nvlink lab1 r1 makes collectives bad: nvswitch-5"
        assert [place.device for place in ticket.places] == ["lab1 r1", "nvswitch-5"]
    else:
        assert f"lab1 r1: which switch tray cannot be told: {words}, and no scan says" in found.reason
        assert ticket.title == "nvlink lab1 r1 makes collectives bad"
        new = search_new(planted(context, "n0001+n0002=wrong"), *sorted(RACKED)[:6], whole="last")
        assert all(words in reason for reason in new.facts["suspected_nodes"].values())
    assert words in ticket.seen


def find_links_of(found: SlotResult, context: ControllerContext) -> Sequence[NamedLink]:
    """Return the links that a result names, read from the ledger."""
    entry = ScheduleRanEntry("weekly", "compute", "collectives-search", context.now, 1, "done", "", found.facts)
    context.ledger.append(entry.make_entry("ran", context.now))
    line = ScheduleLine("weekly", "compute", make_schedule("last"), "UTC")
    return find_links([line], read_schedule_history(context.ledger)).named


def test_a_new_node_without_a_free_partner_is_told(idle_desk: ControllerContext) -> None:
    Scheduler.jobs = dict.fromkeys(NODES, 0)
    found = search_new(planted(idle_desk), "n0009")
    assert found.reason == "no other node of its fabric was free for collectives"
    assert Scheduler.readings


def test_without_a_workload_or_with_one_that_stands_in_nothing_runs_on_real_machines(
    idle_desk: ControllerContext,
) -> None:
    workloads = {"ours": idle_desk.fleet.collective_workloads["virtual"]}
    real = replace(idle_desk, fleet=replace(idle_desk.fleet, is_lab=False, collective_workloads=workloads))
    with pytest.raises(AssayError, match="is refused on a real machine: CollectiveWorkload virtual stands in"):
        search_new(real, "n0009", "n0010")
    with pytest.raises(AssayError, match="there is no CollectiveWorkload ours"):
        search_new(idle_desk, "n0009", "n0010")


def test_the_watch_reads_all_nodes_at_once_and_again_only_where_the_answer_is_too_old(
    idle_desk: ControllerContext,
) -> None:
    watch = CustomerWatch(idle_desk, list(idle_desk.fleet.nodes.values()))
    Scheduler.jobs = {"n0001": 1}
    assert watch.find_taker(["n0001", "n0002"], 0) == ""
    assert watch.find_taker(["n0001"], 0) == ""
    assert Scheduler.readings == 1
    assert watch.find_taker(["n0001"], float("inf")) == "n0001: job 17 (llama, ada)"
    assert watch.find_taker(["n0002"], 0) == ""


def test_a_named_link_is_a_ticket_until_a_search_sees_it_good() -> None:
    schedule = FleetSchedule(does="collectives-search", cron="0 * * * *", search={"workload": "ours"})
    line, history = ScheduleLine("weekly", "compute", schedule, "UTC"), ScheduleHistory()
    link = {"links": {"leaf-1[33]": {"kind": "uplink", "seen": "slow; bad in 3 of 3 runs"}}}

    def ended(number: int, **facts: object) -> LedgerEntry:
        slot = f"2026-11-2{number}T03:00:00+00:00"
        ran = ScheduleRanEntry("weekly", "compute", "collectives-search", slot, 1, "done", "", facts)
        return replace(ran.make_entry(f"e{number}", slot), seq=number)

    history.add_entry(ended(1, **link)).add_entry(ended(2))
    found = find_links([line], history)
    [ticket] = make_link_tickets(found.named)
    assert (ticket.places[0].device, ticket.places[0].port) == ("leaf-1", "33")
    assert "slow; bad in 3 of 3 runs" in ticket.seen
    assert found.proofs == {}
    history.add_entry(ended(3, links_good=["leaf-1[33]"]))
    mended = find_links([line], history)
    assert mended.named == []
    assert mended.proofs == {ticket.key: "weekly of compute, slot 2026-11-23 03:00 UTC, saw it good"}
    history.add_entry(ended(4, **link))
    assert len(find_links([line], history).named) == 1


def test_a_link_in_the_ledger_opens_a_ticket_and_a_search_that_sees_it_good_closes_it(
    idle_desk: ControllerContext,
) -> None:
    def ran(number: int, **facts: object) -> None:
        slot = f"2026-11-2{number}T03:23:00+00:00"
        entry = ScheduleRanEntry("collectives", "compute", "collectives-search", slot, 1, "done", "", facts)
        idle_desk.ledger.append(entry.make_entry(f"e{number}", slot))
        update_tickets(idle_desk)

    def told() -> list[str]:
        return [entry.kind for entry in idle_desk.ledger.entries(kinds=TICKET_KINDS)]

    ran(1, links={"leaf-su01-r0[33]": {"kind": "uplink", "seen": "slow; bad in 3 of 3 runs"}})
    assert told() == ["ticket.opened"]
    ran(2)
    assert told() == ["ticket.opened"], "a search that did not use it says nothing"
    ran(3, links_good=["leaf-su01-r0[33]"])
    assert told() == ["ticket.opened", "ticket.closed"]


def test_a_search_that_continues_asks_about_all_its_nodes_not_only_those_that_are_free_now(
    idle_desk: ControllerContext,
) -> None:
    context = planted(idle_desk, "n0003=dead")
    search = {"workload": "ours", "min_nodes": 4, "at_once": 4}
    schedule = FleetSchedule(does="collectives-search", cron="0 * * * *", search=search)
    slot = find_previous_slot(schedule, "UTC", context.clock.now())
    task = SlotTask(ScheduleLine("weekly", "compute", schedule, "UTC"), slot, attempt=2)
    path = collectives_search.locate_results(context.home, task)
    header = SearchHeader(tuple(NODES), 0, "compute", (), SpeedRule(), StageSettings())
    ResultFile(path).continue_or_start(header)
    Scheduler.jobs = {"n0003": 0}
    search_collectives(context, task)
    own = [one for one in ResultFile(path).read()[1].pairs if "n0003" in one.pair]
    assert own
    assert {one.ended for one in own} == {"preempted"}
    assert faults(context) == []


def test_a_workload_that_is_not_declared_fails_the_slot_with_its_name(idle_desk: ControllerContext) -> None:
    from assay.model.errors import AssayError

    with pytest.raises(AssayError, match="no CollectiveWorkload ours"):
        searched(replace(idle_desk, fleet=replace(idle_desk.fleet, collective_workloads={})))


def test_results_stay_where_the_fault_says(tmp_path: Path) -> None:
    schedule = FleetSchedule(does="collectives-search", cron="0 * * * *", search={"workload": "ours"})
    line = ScheduleLine("weekly", "compute", schedule, "UTC")
    slots = [find_previous_slot(schedule, "UTC", at) for at in (line_at(3), line_at(4))]
    first, second = (collectives_search.locate_results(tmp_path, SlotTask(line, slot)) for slot in slots)
    assert first.parent == second.parent
    assert first < second


def line_at(hour: int):
    from datetime import UTC, datetime

    return datetime(2026, 11, 21, hour, 30, tzinfo=UTC)
