"""A technician says that the work is done: what is looked at then, and how the ticket stands meanwhile."""

from __future__ import annotations

import json
import shutil
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from assay.act.orders.orders import OperatorIdentity, find_ticket, report_done
from assay.act.tickets.ticket_diff import TICKET_RECORD_KINDS, list_tickets
from assay.act.tickets.ticket_updates import list_fabrics_to_prove
from assay.cli.app import app
from assay.fabric.scan import format_fabric_subject
from assay.model.evidence import EvidenceDocument
from assay.model.outcome import Outcome, SuiteRun
from assay.model.ticket import Ticket, TicketRecord
from assay.tell.pages.fleet_pages import TicketProof, find_ticket_proof
from assay.tell.views.records import LiveRecords
from tests.support.places import SMALLEST
from tests.support.ticket_room import Clock, Room, ticket

CHECK = "suites/test_heat.py::test_heat"


@pytest.fixture
def room(tmp_path: Path) -> Room:
    shutil.copytree(SMALLEST, tmp_path / "fleet")
    design = "\nkind: FabricDesign\nname: compute\nnodes: [n1, n2]\nrails: 1\nrate: 4xNDR\n"
    design += "switch: {product: S, ports: 8}\n"
    design += 'leaves: {name: leaf, down: 1..2, up: 3..4, at: [{guid: "0x0000000000000001", rack: r1, u: 1}]}\n'
    design += 'spines: {name: spine, per_pair: 2, at: [{guid: "0x0000000000000002", rack: r1, u: 2}]}\n'
    (tmp_path / "fleet/specs/fabric.yaml").write_text(design)
    return Room(tmp_path / "fleet", Clock())


def say_done(room: Room, who: str = "tom", note: str = "reseated it") -> TicketRecord:
    room.clock.sleep(60)
    desk = room.desk
    order = report_done(find_ticket(read(room), ticket().id[:6]), OperatorIdentity(who, note, desk.now))
    desk.ledger.append(*filter(None, [order.entry]))
    return read(room)[0]


def read(room: Room) -> list[TicketRecord]:
    return list_tickets(room.desk.ledger.entries(kinds=TICKET_RECORD_KINDS))


def judge(room: Room, verdict: Any, reason: str = "") -> None:
    """Record the outcome of the check of the ticket, measured now."""
    room.clock.sleep(60)
    at = room.desk.now
    outcome = Outcome(CHECK, "pool-a/n1", "n1", verdict, reason=reason, evidence="0" * 64, evidence_at=at)
    room.desk.ledger.record(SuiteRun(f"run {at}", at, ("test",), ("n1",), who="test"), [outcome], room.clock.now())


def test_the_word_is_kept_once_and_closes_nothing(room: Room) -> None:
    room.wants(ticket())
    record = say_done(room)
    assert record.done
    assert (record.done.who, record.done.note, record.closed_at) == ("tom", "reseated it", "")
    say_done(room)
    assert [event.what for event in read(room)[0].history] == ["opened", "done"]
    say_done(room, "ann")
    assert [event.what for event in read(room)[0].history] == ["opened", "done", "done"]


def test_a_ticket_that_is_reopened_waits_for_a_new_word(room: Room) -> None:
    room.wants(ticket())
    say_done(room)
    room.wants()
    assert read(room)[0].closed_at
    room.wants(ticket())
    assert read(room)[0].done is None


def test_the_fabric_is_scanned_until_a_scan_is_later_than_the_word(room: Room) -> None:
    room.wants(ticket())
    assert list_fabrics_to_prove(room.desk) == set()
    say_done(room)
    assert list_fabrics_to_prove(room.desk) == {"compute"}
    subject = format_fabric_subject(room.desk.fleet.designs["compute"])
    early, late = (room.clock.now() + timedelta(minutes=minutes) for minutes in (-30, 1))
    room.desk.evidence.store_latest(EvidenceDocument(subject, early, {}))
    assert list_fabrics_to_prove(room.desk) == {"compute"}
    room.desk.evidence.store_latest(EvidenceDocument(subject, late, {}))
    assert list_fabrics_to_prove(room.desk) == set()


def test_a_check_that_failed_after_the_word_says_why(room: Room) -> None:
    wanted = Ticket(ticket().id, "heat/n1", "n1 is hot", "n1", verify=f"{CHECK}[pool-a/n1]")
    room.wants(wanted)
    judge(room, "fail", "91 Cel, at most 85")
    records = LiveRecords(lambda: room.desk)
    assert find_ticket_proof(records, read(room)[0]) == TicketProof("open")
    record = say_done(room)
    assert find_ticket_proof(records, record) == TicketProof("waits")
    judge(room, "fail", "90 Cel, at most 85")
    lines = ("pool-a/n1 still fails: 90 Cel, at most 85",)
    assert find_ticket_proof(records, record) == TicketProof("refuted", lines)
    judge(room, "pass")
    assert find_ticket_proof(records, record) == TicketProof("waits")
    room.wants()
    assert find_ticket_proof(records, read(room)[0]) == TicketProof("closed")


def test_the_command_says_it_too(room: Room) -> None:
    room.wants(ticket())
    words = ["tickets", "done", ticket().id[:6], "--reason", "reseated it", "--who", "tom", "--fleet", str(room.root)]
    said = CliRunner().invoke(app, [*words, "--format", "json"])
    assert (said.exit_code, json.loads(said.stdout)["recorded"]) == (0, True), said.output
    listed = CliRunner().invoke(app, ["tickets", "--fleet", str(room.root)])
    assert "tom" in listed.stdout
    unknown = CliRunner().invoke(app, ["tickets", "done", "ffff", *words[3:]])
    assert "there is no ticket ffff" in str(unknown.exception)
