"""Tickets for technicians: in each state that waits for them, with place, steps, files, and how to certify."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from assay.act.effects.effect_journal import derive_effect_id
from assay.act.loop.context import ControllerContext
from assay.act.loop.snapshot import FleetSnapshotCache
from assay.act.tickets.ticket_diff import list_tickets
from assay.act.tickets.ticket_updates import update_tickets
from assay.adapters.tickets.markdown import format_ticket_markdown
from assay.cli.workspace import Workspace
from assay.declare.loader import load_fleet
from assay.ledger.store import Ledger
from assay.model.clock import SystemClock
from assay.model.facts import from_json, to_json
from assay.model.ledger_entry import LedgerEntry
from assay.model.ticket import Ticket, TicketPlace, TicketRecord
from assay.model.timestamps import format_minute
from assay.observe.evidence_store import EvidenceStore
from assay.tell.views.incident_story import read_stories
from assay.tell.views.ticket_answers import answer_tickets

AT = datetime(2026, 11, 22, 9, tzinfo=UTC)
FAULT = {"fault": "f1", "class": "gpu.xid.79", "subject": "h100-a/n0004/gpu1", "severity": "catastrophic"}
SEEN = {
    "blame": "hardware",
    "count": 1,
    "first_seen": AT.isoformat(),
    "last_seen": AT.isoformat(),
    "detail": "fell off",
}
BECAUSE = [{"kind": "fault", "id": "f1", "text": "gpu.xid.79"}]


@pytest.fixture
def desk(ann):
    home = ann.root / ".assay"
    evidence = EvidenceStore(home / "evidence")
    return ControllerContext(load_fleet(ann.root), ann.ledger(), evidence, SystemClock(), home, ann.root / "reports")


def tickets(desk: ControllerContext, node: str) -> list:
    update_tickets(desk, FleetSnapshotCache(desk))
    return [one for one in list_tickets(desk.ledger.entries()) if one.ticket.node == node]


def moved(ledger: Ledger, node: str, origin: str, to: str, number: int) -> None:
    at = (AT + timedelta(minutes=number)).isoformat()
    plain = {"decision": f"d{number}", "from": origin, "to": to, "rule": "x", "because": BECAUSE, "blockers": []}
    ledger.append(
        LedgerEntry(f"d{number}", at, "decision", node, {**plain, "timing": "immediate", "remedy": ""}),
        LedgerEntry(f"t{number}", at, "transition", node, {"from": origin, "to": to, "decision": f"d{number}"}),
    )


def test_a_new_node_has_a_ticket_with_its_place_the_steps_and_how_to_certify(desk):
    (one,) = tickets(desk, "n0001")
    (lists,) = desk.fleet.checklists.values()
    node, steps = desk.fleet.nodes["n0001"], lists.states["onboard"].steps
    assert [(place.rack, place.u, place.device) for place in one.ticket.places] == [(node.rack, node.u, "n0001")]
    assert one.ticket.steps.splitlines() == steps
    assert one.ticket.verify.startswith("assay certify n0001")
    text = format_ticket_markdown(one)
    assert f"1. {steps[0]}" in text
    assert "## When you are done" in text
    assert len(tickets(desk, "n0001")) == 1, "asked again, it is the same ticket"


def test_certified_work_closes_its_ticket_and_the_history_says_by_whom(desk, ann):
    tickets(desk, "n0001")
    ann.types("certify", "n0001", "--reason", "cabled", "--who", "bob")
    moved(desk.ledger, "n0001", "onboard", "seatrial", 1)
    (one,) = tickets(desk, "n0001")
    assert one.closed_at
    assert "certified by bob: cabled" in ann.types("history", "n0001", "--moves")


def test_done_certifies_where_the_state_asks_for_a_certificate(desk, ann):
    (one,) = tickets(desk, "n0001")
    assert one.ticket.asks_for_certificate
    said = ann.types("tickets", "done", one.ticket.id[:8], "--reason", "cabled", "--who", "bob")
    assert "n0001 is certified in onboard by bob, and goes to" in said
    assert [entry.body["who"] for entry in desk.ledger.entries("n0001", kinds=["certified"])] == ["bob"]
    ann.types("tickets", "done", one.ticket.id[:8], "--reason", "cabled", "--who", "bob")
    assert len(desk.ledger.entries("n0001", kinds=["certified"])) == 1


def test_the_first_ten_lines_answer_and_the_evidence_is_folded(desk, ann):
    (one,) = tickets(desk, "n0001")
    (answered,) = answer_tickets(Workspace(ann.root), [one])
    text = format_ticket_markdown(answered)
    labels = [line.split("**")[1] for line in text.splitlines()[:10] if line.startswith("- **")]
    assert labels == ["What broke", "Since", "Why we think so", "Who acts", "Back"]
    assert "which certifies n0001" in text.splitlines()[8]
    assert text.index("## Steps") < text.index("<details><summary>Evidence</summary>") < text.index("## Observed")
    plain = format_ticket_markdown(answered, folds=False)
    assert "<details>" not in plain
    assert plain.index("## Steps") < plain.index("## Observed")


@pytest.mark.parametrize(
    ("key", "seen"),
    [
        ("fabric/compute/missing/0123", "no link"),
        ("shared/leaf/leaf-su01-r3/several", "ib.cabling on h100-a/n0002/mlx5_3: no link"),
        ("breaker/h100-a/ib.cabling", "breaker: 4 of 4 serving nodes"),
    ],
)
def test_a_ticket_of_cables_or_several_nodes_says_since_when_as_explain_does(desk, ann, key, seen):
    fault = {**FAULT, **SEEN, "subject": "h100-a/n0002/mlx5_3", "marks": {}, "times": []}
    desk.ledger.append(LedgerEntry("f1", AT.isoformat(), "fault", "n0002", {**fault, "class": "ib.cabling"}))
    ends = TicketPlace("n0002 mlx5_3" if key.startswith("fabric") else "n0002", "lab1", "r01", 14)
    ticket = Ticket(
        "t1",
        key=key,
        title="Reseat",
        node="n0002",
        places=(ends,),
        expected="a link",
        seen=seen,
        verify="fabric scan compute",
        severity="degraded",
    )
    later = (AT + timedelta(hours=7)).isoformat()
    (answered,) = answer_tickets(Workspace(ann.root), [TicketRecord(ticket, later)])
    states = Workspace(ann.root).read_node_states()
    (story,) = read_stories(Workspace(ann.root), states)["n0002"].incidents
    assert answered.answers[1].startswith(f"Since: {format_minute(story.since)}, last seen ")
    assert story.since < later


def test_a_title_is_the_act_of_its_state(desk):
    fault = {**FAULT, **SEEN, "subject": "h100-a/n0002/gpu1", "remedy": "reboot", "marks": {}, "times": []}
    desk.ledger.append(LedgerEntry("f1", AT.isoformat(), "fault", "n0002", fault))
    moved(desk.ledger, "n0002", "production", "triage", 1)
    titles = [one.ticket.title for one in tickets(desk, "n0002")]
    assert any(title.startswith("Reseat") and title.endswith("(gpu.xid.79), in triage") for title in titles), titles
    moved(desk.ledger, "n0002", "triage", "rma", 2)
    (one,) = [one for one in tickets(desk, "n0002") if not one.closed_at]
    assert one.ticket.title.startswith("Send it back: n0002 (rma), because of gpu.xid.79 on gpu1")
    assert one.ticket.steps.startswith("Photograph the label"), "nobody reseats what goes back"


def test_what_goes_back_has_its_dossier_on_the_ticket(desk, ann):
    moved(desk.ledger, "n0002", "triage", "rma", 1)
    (one,) = [one for one in tickets(desk, "n0002") if "(rma)" in one.ticket.title]
    archive = one.ticket.files.partition("  ")[0]
    assert archive.startswith("reports/rma/n0002-")
    assert archive.endswith(".zip")
    assert archive in ann.types("tickets")
    assert archive in format_ticket_markdown(one)


def test_what_was_collected_since_the_node_left_service_is_on_its_ticket(desk):
    moved(desk.ledger, "n0002", "production", "draining", 1)
    for number, minutes in ((1, 2), (2, -60)):
        path = f"reports/diagnostics/n0002-c{number}.zip"
        reason = f"{path}: 8 of 9 reports, without amd-smi.json"
        at = (AT + timedelta(minutes=minutes)).isoformat()
        body = {"effect": f"c{number}", "action": "collect", "decision": "d", "before": {}}
        desk.ledger.append(
            LedgerEntry(f"c{number}", at, "effect.intent", "n0002", body),
            LedgerEntry(f"c{number}v", at, "effect.verified", "n0002", {**body, "reason": reason, "facts": {}}),
        )
    moved(desk.ledger, "n0002", "draining", "triage", 3)
    (one,) = [one for one in tickets(desk, "n0002") if "triage" in one.ticket.title]
    (line,) = one.ticket.files.splitlines()
    assert line.startswith("reports/diagnostics/n0002-c1.zip  diagnostics of ")
    assert line.endswith("from before a restart: 8 of 9 reports, without amd-smi.json")


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        ("effect.verified", "wipe: proven wiped: nvme0"),
        ("effect.failed", "wipe: proven wiped: nvme0"),
        ("effect.unknown", "wipe: not proven yet; leave the node and its drives where they are"),
    ],
)
def test_the_ticket_of_what_goes_back_says_whether_its_drives_are_wiped(desk, kind: str, told: str):
    moved(desk.ledger, "n0002", "triage", "rma", 1)
    (decision,) = desk.ledger.entries("n0002", ["decision"])
    effect = {"effect": derive_effect_id(decision.id, "wipe"), "action": "wipe"}
    at = (AT + timedelta(minutes=2)).isoformat()
    desk.ledger.append(
        LedgerEntry("w1", at, "effect.intent", "n0002", {**effect, "decision": decision.id, "before": {}}),
        LedgerEntry("w2", at, kind, "n0002", {**effect, "reason": "proven wiped: nvme0", "facts": {}}),
    )
    (one,) = [one for one in tickets(desk, "n0002") if "(rma)" in one.ticket.title]
    assert told in one.ticket.seen


def test_a_part_that_came_back_is_on_the_ticket_of_the_node_that_it_is_in(desk):
    piece = {"kind": "gpu", "serial": "1650923001"}
    sent = {"from": "n0003", "from_place": "gpu2", "sent_at": AT.isoformat(), "faults": ["gpu.xid.79"]}
    desk.ledger.append(
        LedgerEntry("p", AT.isoformat(), "parts.seen", "n0001", {"parts": {"gpu7": piece}, "node": {}}),
        LedgerEntry("b", AT.isoformat(), "part.returned", "n0001", {**piece, "place": "gpu7", **sent}),
    )
    (one,) = tickets(desk, "n0001")
    assert "gpu7 (gpu 1650923001) was sent back from n0003 gpu2" in one.ticket.seen


def test_the_old_nodes_fault_ticket_is_closed_by_the_new_node(desk):
    desk.ledger.append(LedgerEntry("f1", AT.isoformat(), "fault", "n0004", {**FAULT, **SEEN}))
    asks = {"decision": "a1", "from": "production", "to": "production", "rule": "x", "because": BECAUSE}
    asks |= {"timing": "record", "remedy": "ticket", "blockers": []}
    desk.ledger.append(LedgerEntry("a1", AT.isoformat(), "decision", "n0004", asks))
    assert [bool(one.closed_at) for one in tickets(desk, "n0004")] == [False]
    later = (datetime.now(UTC) + timedelta(minutes=1)).isoformat()
    gone = {"old_serial": "S1", "new_serial": "S2", "who": "bmc"}
    desk.ledger.append(
        LedgerEntry("r", later, "part.replaced", "n0004", gone),
        LedgerEntry("c", later, "fault.cleared", "n0004", {"fault": "f1", "because": "gone with the node S1"}),
    )
    (one,) = tickets(desk, "n0004")
    assert "another node stands in this place" in one.by


def test_a_ticket_without_files_is_to_its_sinks_what_it_was_before_there_were_any():
    ticket = Ticket("i", "k", "t")
    assert "files" not in to_json(ticket)
    assert from_json(Ticket, to_json(ticket)) == ticket
    assert from_json(Ticket, to_json(replace(ticket, files="a  b"))).files == "a  b"
