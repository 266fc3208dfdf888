"""One incident is decided once: what follows from its cause asks for nothing of its own, unless it says more."""

from __future__ import annotations

from dataclasses import replace

from assay.act.tickets.desired_tickets import TechnicianNotes, list_desired_tickets
from assay.act.tickets.part_names import PartNames
from assay.act.tickets.ticket_moves import TicketMoveFinder
from assay.decide.moves.held_answers import list_open_breakers
from assay.declare.loader import load_fleet
from assay.fabric.compare.compare import compare_cabling
from assay.observe.evidence_store import EvidenceStore
from tests.decide.moves.test_harm_that_is_held_back import tickets_of
from tests.support.fabrics.fat_trees import as_built, fat_tree, in_reach, renamed
from tests.support.places import ROOT


def moves_of(made):
    return [decision for decision in made if decision.timing != "record"]


def test_a_supply_its_event_and_the_rollup_ask_for_one_ticket(paper):
    paper.add("n1")
    for name, part in (("bmc.event.power-supply", ""), ("psu.failed", "psu3"), ("bmc.unhealthy", "")):
        paper.fault("n1", name, part)
    made = [decision for decision in paper.step() if decision.remedy == "ticket"]
    assert [cause.text.split(" ")[0] for decision in made for cause in decision.causes] == ["psu.failed"]


def test_a_symptom_that_comes_while_the_node_waits_changes_nothing(paper):
    paper.add("n1")
    paper.jobs["n1"] = ("job 7",)
    paper.fault("n1", "gpu.pcie.degraded", "gpu3")
    (pending,) = moves_of(paper.step())
    paper.fault("n1", "gpu.copy.slow", "gpu3")
    assert moves_of(paper.step()) == []
    assert paper.story("n1").pending.decision == pending.id


def test_a_worse_symptom_says_something_new(paper):
    paper.add("n1")
    paper.jobs["n1"] = ("job 7",)
    paper.fault("n1", "gpu.pcie.degraded", "gpu3")
    paper.step()
    paper.fault("n1", "gpu.xid.79", "gpu3")
    (move,) = moves_of(paper.step())
    assert move.timing == "immediate"


def test_another_incident_on_the_node_is_decided_for_itself(paper):
    paper.add("n1")
    paper.fault("n1", "psu.failed", "psu3")
    assert moves_of(paper.step()) == []
    paper.fault("n1", "gpu.pcie.degraded", "gpu3")
    assert [move.causes[0].text for move in moves_of(paper.step())] == [
        "gpu.pcie.degraded on a/n1/gpu3: as planted",
    ]


def test_what_follows_may_ask_for_more_than_its_cause(paper):
    """A supply alone is a ticket. GPUs that it slows down are none to serve with."""
    paper.add("n1")
    paper.fault("n1", "psu.failed", "psu3")
    paper.fault("n1", "gpu.power-brake", "gpu3")
    assert [move.to_state for move in moves_of(paper.step())] != []


def test_what_is_left_when_the_cause_is_over_decides(paper):
    paper.add("n1")
    cause = paper.fault("n1", "psu.failed", "psu3")
    paper.fault("n1", "bmc.unhealthy")
    paper.step()
    assert len(tickets_of(paper, "n1")) == 1
    paper.later(minutes=1)
    paper.say("fault.cleared", "n1", fault=cause, because="it passes again")
    paper.later(minutes=1)
    paper.step()
    (ticket,) = tickets_of(paper, "n1")
    assert ticket.title == "Check the BMC's event log and the chassis' LEDs: n1 (bmc.unhealthy)"


def test_a_cause_that_is_found_later_keeps_the_ticket(paper):
    paper.add("n1")
    paper.fault("n1", "bmc.event.power-supply")
    paper.step()
    (first,) = tickets_of(paper, "n1")
    paper.later(minutes=20)
    paper.fault("n1", "psu.failed", "psu3")
    paper.step()
    (then,) = tickets_of(paper, "n1")
    assert then.id == first.id
    assert then.title == "Check feed and cord of the power supply: psu3 of n1 (psu.failed)"


def test_the_ticket_of_an_incident_that_belongs_to_another_says_so(paper):
    paper.add("n1")
    paper.fault("n1", "bmc.event.power-supply")
    paper.step()
    paper.later(minutes=90)
    paper.fault("n1", "bmc.event.power")
    paper.step()
    first, second = tickets_of(paper, "n1")
    paper.later(minutes=5)
    paper.fault("n1", "psu.failed", "psu3")
    paper.step()
    assert [ticket.id for ticket in tickets_of(paper, "n1")] == [first.id]
    assert TicketMoveFinder(paper.situation()).find(second).into == first.key


def test_power_of_a_rack_is_one_ticket_with_its_nodes(paper):
    for number in range(100):
        paper.add(f"n{number}", rack="r1" if number < 4 else f"r{number}")
    for number in range(3):
        paper.fault(f"n{number}", "psu.failed", "psu1")
    paper.fault("n5", "psu.failed", "psu1")
    paper.step()
    (rack,) = tickets_of(paper, "n0")
    assert rack.title == "Look at the rack's feeds, PDUs and breakers before any supply: rack lab1/r1"
    assert [line.partition(" on ")[2][:4] for line in rack.seen.splitlines()] == ["a/n0", "a/n1", "a/n2"]
    assert [tickets_of(paper, f"n{number}") for number in range(1, 3)] == [[], []]
    assert len(tickets_of(paper, "n5")) == 1


def test_a_breaker_that_holds_them_has_the_only_ticket_and_names_the_place(paper):
    for number in range(6):
        paper.add(f"n{number}", rack="r1" if number < 4 else "r2")
    for number in range(4):
        paper.fault(f"n{number}", "psu.failed", "psu1")
    paper.step()
    every = [ticket for number in range(6) for ticket in tickets_of(paper, f"n{number}")]
    assert [ticket.steps.splitlines()[0] for ticket in every] == [
        "look at the rack's feeds, PDUs and breakers before any supply: rack lab1/r1"
    ]


def test_supplies_of_a_rack_that_fail_days_apart_are_tickets_of_their_own(paper):
    for number in range(4):
        paper.add(f"n{number}", rack="r1")
    for number in range(3):
        paper.fault(f"n{number}", "psu.failed", "psu1")
        paper.step()
        paper.later(days=1)
    assert [len(tickets_of(paper, f"n{number}")) for number in range(3)] == [1, 1, 1]


def test_a_hot_room_has_one_breaker_and_one_ticket(paper):
    names = [f"n{number:02}" for number in range(16)]
    for name in names:
        paper.add(name, rack="r1" if name in names[:4] else "r2")
    for name in names[:4]:
        paper.fault(name, "inlet.out-of-range")
        paper.fault(name, "bmc.unhealthy")
    paper.step()
    (breaker,) = list_open_breakers(paper.stories().values())
    assert breaker.series == "a/inlet.out-of-range"
    assert len([ticket for name in names for ticket in tickets_of(paper, name)]) == 1


def test_the_new_adapters_of_another_machine_are_no_work_of_their_own(paper):
    plan = fat_tree()
    new = {device.guid: f"0xe{device.guid[3:]}" for device in plan.devices.values() if device.node == "n001"}
    seen = {"f": compare_cabling(plan, in_reach(plan, renamed(as_built(plan), new)))}
    paper.add("n001")
    assert [ticket.key.split("/")[2] for ticket in list_desired_tickets(paper.situation(), (), seen)] == [
        "device-replaced"
    ]
    paper.fault("n001", "identity.changed")
    for rail in range(3):
        paper.fault("n001", "ib.cabling", f"mlx5_{rail}")
    assert [ticket.key.split("/")[0] for ticket in list_desired_tickets(paper.situation(), (), seen)] == ["incident"]


def test_a_ticket_of_several_parts_names_all_of_them(paper):
    paper.add("n1")
    for psu in (1, 3, 4):
        paper.fault("n1", "psu.failed", f"psu{psu}")
    paper.step()
    (ticket,) = tickets_of(paper, "n1")
    assert ": psu1, psu3, psu4 of n1 (psu.failed)" in ticket.title
    paper.add("n2")
    for psu in (1, 3):
        paper.fault("n2", "psu.failed", f"psu{psu}")
    paper.step()
    titles = [ticket.title for ticket in tickets_of(paper, "n2")]
    assert [next(part for part in ("psu1", "psu3") if part in title) for title in titles] == ["psu1", "psu3"]


def test_the_place_on_a_ticket_has_what_a_technician_reads_on_the_hardware(paper, tmp_path):
    paper.add("n1")
    paper.fault("n1", "gpu.pcie.degraded", "gpu3")
    paper.fault("n1", "psu.failed", "psu3")
    known = replace(paper.story("n1"), gpus={"gpu3": ("1654", "")})
    notes = TechnicianNotes(catalog=paper.catalog, names=PartNames(load_fleet(ROOT), EvidenceStore(tmp_path)))
    causes = {fault.id for fault in paper.story("n1").faults}
    tickets = list_desired_tickets(paper.situation(paper.view("n1", known)), causes, {}, notes)
    places = [(place.port, place.label) for ticket in tickets for place in ticket.places]
    assert sorted(places) == [("gpu3", "serial 1654"), ("psu3", "")]


def test_the_ticket_of_a_node_that_fails_again_is_about_what_failed_and_not_about_what_was_mended(paper):
    paper.add("n1", "test")
    paper.fault("n1", "gpu.memory.remap", "gpu4")
    titles = []
    for _ in range(2):
        for _ in range(8):
            paper.later(hours=1)
            paper.pass_all("n1")
            if paper.story("n1").state == "test":
                paper.judge("n1", "test", "fail")
            paper.step()
            paper.settle("n1")
        assert paper.story("n1").state == "triage"
        (ticket,) = tickets_of(paper, "n1")
        titles.append(ticket.title)
        paper.say("certified", "n1")
    assert "gpu4 of n1 (gpu.memory.remap)" in titles[0]
    assert "n1 (gpu.burn.failed)" in titles[1], "its check failed, and people have certified the GPU"
    assert "ROW_REMAPPER" not in ticket.steps
    assert "gpu.memory.remap" in ticket.seen, "it is not proven yet"
