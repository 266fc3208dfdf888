"""Incidents that turn out to be one have one ticket; what a proof leaves has its own. Both ticket systems say so."""

from __future__ import annotations

import shutil
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from assay.act.tickets import desired_tickets
from assay.act.tickets.ticket_diff import TICKET_RECORD_KINDS, TICKET_STATUSES, TicketMoves, diff_tickets, list_tickets
from assay.act.tickets.ticket_moves import TicketMoveFinder
from assay.fabric.compare.compare import FabricComparison
from assay.model.ticket import Ticket, TicketPlace, TicketRecord
from tests.decide.conftest import Paper, catalog, paper, policy, profiles  # noqa: F401 — the policy is the real one
from tests.decide.moves.test_harm_that_is_held_back import tickets_of
from tests.support.places import SMALLEST
from tests.support.ticket_room import Clock, Room, ticket
from tests.support.ticket_sinks import GitHub

CAUSE, FOLLOWS = (
    replace(ticket(f"incident/n1/{name}"), verify="suites/test_heat.py::test_heat[a/n1]")
    for name in ("cause", "follows")
)


@pytest.fixture
def room(tmp_path: Path) -> Room:
    shutil.copytree(SMALLEST, tmp_path / "fleet")
    return Room(tmp_path / "fleet", Clock())


def bring(room: Room, wanted: list[Ticket], moves: TicketMoves, proof: str = "") -> dict[str, TicketRecord]:
    """Bring the ledger to these tickets, where the work of all others went so, and return all by key."""
    room.clock.sleep(60)
    desk = room.desk
    known = TICKET_STATUSES.fold(desk.ledger.entries()).by_key
    made = diff_tickets(known, wanted, lambda *_: proof, desk.now, timedelta(days=30), lambda _: moves)
    desk.ledger.append(*made)
    records = list_tickets(desk.ledger.entries(kinds=TICKET_RECORD_KINDS))
    return {record.ticket.key: record for record in records}


def test_a_merged_ticket_names_the_other_and_the_other_names_it(room: Room) -> None:
    bring(room, [CAUSE, FOLLOWS], TicketMoves())
    records = bring(room, [CAUSE], TicketMoves(into=CAUSE.key))
    assert records[FOLLOWS.key].by == f"ticket {CAUSE.id}, which explains it too"
    event = records[CAUSE.key].history[-1]
    assert (event.what, event.why) == ("merged", f"it has the work of ticket {FOLLOWS.id[:8]}, {FOLLOWS.title}")


def test_nothing_merges_into_a_ticket_that_is_not_there(room: Room) -> None:
    bring(room, [FOLLOWS], TicketMoves())
    assert not bring(room, [], TicketMoves(into=CAUSE.key))[FOLLOWS.key].closed_at


def test_what_a_proof_leaves_has_a_ticket_that_names_the_old_one(room: Room) -> None:
    bring(room, [CAUSE], TicketMoves())
    records = bring(room, [FOLLOWS], TicketMoves(left=(FOLLOWS.key,)), "run 7")
    assert records[CAUSE.key].by == f"run 7; the rest has ticket {FOLLOWS.id}"
    assert [event.what for event in records[FOLLOWS.key].history] == ["opened", "split"]
    assert records[FOLLOWS.key].history[-1].why == f"from ticket {CAUSE.id[:8]}, {CAUSE.title}"


def test_both_issues_on_github_get_a_comment_once(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_TOKEN_OF_TEST", "token-1")
    room.route("files", markdown={})
    github = GitHub("token-1")
    with github.up():
        credentials = {"env": "GITHUB_TOKEN_OF_TEST"}
        room.route("issues", github={"repository": "acme/fabric", "api": github.url, "credentials": credentials})
        bring(room, [CAUSE, FOLLOWS], TicketMoves())
        assert room.deliver() == []
        assert github.comments == {}
        bring(room, [CAUSE], TicketMoves(into=CAUSE.key))
        for _ in range(2):
            assert room.deliver(immediately=True) == []
        told = {number: [text.splitlines()[0] for text in texts] for number, texts in github.comments.items()}
        at = room.desk.now[:16].replace("T", " ")
        assert told == {
            1: [f"{at} UTC merged: it has the work of ticket {FOLLOWS.id[:8]}, {FOLLOWS.title}"],
            2: [f"{at} UTC closed: ticket {CAUSE.id}, which explains it too"],
        }
        assert [issue["state"] for issue in github.issues] == ["open", "closed"]
    for record, words in ((CAUSE, "merged: it has the work"), (FOLLOWS, f"closed: ticket {CAUSE.id}")):
        assert words in (room.root / f".assay/tickets/{record.id}.md").read_text()


def test_what_nodes_of_a_rack_share_takes_in_their_tickets_and_gives_them_back(paper: Paper) -> None:  # noqa: F811
    for number in range(100):
        paper.add(f"n{number}", rack="r1" if number < 4 else f"r{number}")
    faults = [paper.fault(f"n{number}", "psu.failed", "psu1") for number in range(2)]
    paper.step()
    (alone,) = tickets_of(paper, "n0")
    faults.append(paper.fault("n2", "psu.failed", "psu1"))
    paper.step()
    (rack,) = tickets_of(paper, "n0")
    assert TicketMoveFinder(paper.situation()).find(alone) == TicketMoves(into=rack.key)
    paper.say("fault.cleared", "n2", fault=faults[2], because="it passes again")
    assert alone.key in TicketMoveFinder(paper.situation()).find(rack).left


def test_a_failed_check_joins_the_incident_that_explains_it(paper: Paper) -> None:  # noqa: F811
    paper.add("n1", "seatrial")
    paper.judge("n1", "seatrial", "fail", "7 of 8 GPUs answer")
    (trial,) = tickets_of(paper, "n1")
    assert trial.key.startswith("trial/n1/")
    assert "7 of 8 GPUs answer" in trial.seen
    paper.fault("n1", "gpu.memory.remapping-failed", "gpu2")
    assert trial.key in {ticket.key for ticket in tickets_of(paper, "n1")}, "what is no cause of it explains nothing"
    paper.fault("n1", "gpu.xid.79", "gpu4")
    (dead,) = (ticket for ticket in tickets_of(paper, "n1") if "gpu.xid.79" in ticket.title)
    assert "test_inventory on a/n1: 7 of 8 GPUs answer" in dead.seen
    assert trial.key not in {ticket.key for ticket in tickets_of(paper, "n1")}
    assert TicketMoveFinder(paper.situation()).find(trial) == TicketMoves(into=dead.key)
    paper.judge("n1", "seatrial")
    assert "test_inventory" not in next(each.seen for each in tickets_of(paper, "n1") if each.key == dead.key)


def test_the_ticket_of_a_state_takes_in_that_of_the_same_cable(paper: Paper, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    paper.add("n1")
    ends = (TicketPlace("n1 mlx5_5", "lab1", "r01", 1, "1"), TicketPlace("leaf5", "lab1", "r07", 32, "3"))
    scan = {
        "verify": "fabric scan compute",
        "node": "n1",
        "steps": "reseat port 3\nthen scan: this ticket closes",
    }
    cable = replace(ticket("fabric/compute/missing/x"), places=ends, **scan)
    other = replace(cable, key="fabric/compute/missing/y", places=(TicketPlace("n1 mlx5_6"),))
    nothing = FabricComparison("compute", "partial", 0, 0, 0)
    monkeypatch.setattr(desired_tickets, "make_cabling_tickets", lambda _: [cable, other])
    paper.fault("n1", "ib.cabling", "mlx5_5")

    def list_tickets_now() -> dict[str, Ticket]:
        wanted = desired_tickets.list_desired_tickets(paper.situation(), (), {"compute": nothing})
        return {each.key: each for each in wanted}

    assert cable.key in list_tickets_now(), "while it serves, the fabric's ticket is the only one"
    paper.fault("n1", "ib.link.down", "mlx5_5")
    while paper.story("n1").state != "triage":
        paper.step()
        paper.settle("n1")
    wanted = list_tickets_now()
    (stay,) = (each for each in wanted.values() if each.key.startswith("stay/n1/"))
    assert cable.key not in wanted
    assert other.key in wanted, "another cable of the node is another event"
    assert stay.places[1:] == ends
    assert stay.steps.splitlines()[0] == "reseat port 3"
    assert "this ticket closes" not in stay.steps
    assert TicketMoveFinder(paper.situation()).find(cable) == TicketMoves(into=stay.key)
    assert TicketMoveFinder(paper.situation()).find(other) == TicketMoves()
