"""Tickets: opened once, updated, closed only by what proved them fixed, and reopened when it is wrong again."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.act.tickets.ticket_diff import TICKET_STATUSES, TicketStatus, diff_tickets, list_tickets
from assay.ledger.store import Ledger
from assay.model.ledger_entry import LedgerEntry
from assay.model.ticket import Ticket, TicketPlace

KEYS = ["a", "b", "c"]
WINDOW = timedelta(days=30)


def day(number: int) -> str:
    return (datetime(2026, 11, 1, tzinfo=UTC) + timedelta(days=number)).isoformat()


def open_tickets(history: list[LedgerEntry]) -> dict[str, TicketStatus]:
    return {key: one for key, one in TICKET_STATUSES.fold(history).by_key.items() if not one.closed_by}


def ticket(key: str, seen: str = "seven of eight") -> Ticket:
    return Ticket(
        f"id-{key}",
        key,
        f"title {key}",
        "n0001",
        (TicketPlace("n0001", "lab1", "r01", 4, "gpu6"),),
        "eight",
        seen,
        "look",
    )


def proved(*keys: str):
    return lambda ticket, since: f"seen right after {since}" if ticket.key in keys else ""


def step(history: list[LedgerEntry], wanted: list[Ticket], proof, at: str) -> list[LedgerEntry]:
    return [*history, *diff_tickets(TICKET_STATUSES.fold(history).by_key, wanted, proof, at, WINDOW)]


def kinds(history: list[LedgerEntry]) -> list[str]:
    return [entry.kind for entry in history]


def test_a_ticket_is_opened_once_however_often_it_is_wanted():
    history = step([], [ticket("a")], proved(), day(1))
    history = step(history, [ticket("a")], proved(), day(2))
    assert kinds(history) == ["ticket.opened"]


def test_what_is_seen_anew_updates_the_ticket_under_its_own_id():
    history = step(step([], [ticket("a")], proved(), day(1)), [ticket("a", "six of eight")], proved(), day(2))
    assert kinds(history) == ["ticket.opened", "ticket.updated"]
    assert history[1].body["ticket"] == history[0].body["ticket"]
    assert open_tickets(history)["a"].ticket.seen == "six of eight"


def test_a_ticket_that_nothing_wants_and_nothing_proved_stays_open():
    history = step(step([], [ticket("a")], proved(), day(1)), [], proved(), day(2))
    assert set(open_tickets(history)) == {"a"}


def test_a_proof_closes_it_and_is_named():
    history = step(step([], [ticket("a")], proved(), day(1)), [], proved("a"), day(2))
    assert kinds(history) == ["ticket.opened", "ticket.closed"]
    assert history[-1].body["by"] == f"seen right after {day(1)}"


def test_a_ticket_that_is_still_wanted_is_not_closed_by_any_proof():
    history = step(step([], [ticket("a")], proved(), day(1)), [ticket("a")], proved("a"), day(2))
    assert kinds(history) == ["ticket.opened"]


def broken_again(after: int) -> list[LedgerEntry]:
    history = step(step([], [ticket("a")], proved(), day(1)), [], proved("a"), day(2))
    return step(history, [ticket("a", "six of eight")], proved(), day(2 + after))


def test_what_breaks_again_reopens_its_ticket_and_says_why():
    history = broken_again(after=30)
    assert kinds(history) == ["ticket.opened", "ticket.closed", "ticket.reopened"]
    last = history[-1].body
    assert last["ticket"] == history[0].body["ticket"]
    assert last["seen"] == "six of eight"
    assert (last["before"], last["reason"]) == (
        1,
        f"seen again 30 days after it was closed by seen right after {day(1)}",
    )


def test_what_breaks_again_after_the_window_is_a_new_ticket():
    history = broken_again(after=31)
    first, second = (entry.body["ticket"] for entry in history if entry.kind == "ticket.opened")
    assert first != second
    assert [one.closed_at for one in list_tickets(history)] == [day(2), ""]


def test_a_reopened_ticket_closes_again_and_keeps_its_whole_history(tmp_path: Path):
    history = step(broken_again(after=1), [], proved("a"), day(4))
    history = step(history, [ticket("a")], proved(), day(5))
    ledger = Ledger.open(tmp_path / "ledger.sqlite")
    assert ledger.append(*history) == [True] * 5, "each line is new to a ledger, which takes an id only once"
    (one,) = list_tickets(ledger.entries())
    assert [each.what for each in one.history] == ["opened", "closed", "reopened", "closed", "reopened"]
    assert (one.reopen_count, one.closed_at, one.opened_at) == (2, "", day(1))
    assert history[-1].body["before"] == 2


def out(key: str, *places: str, verify: str = "fabric scan compute") -> Ticket:
    ends = tuple(TicketPlace(device, port=port) for device, _, port in (place.partition(":") for place in places))
    return Ticket(f"id-{key}", key, key, places=ends, verify=verify)


TWO_ENDS = out("cable", "n1 mlx5_0:1", "leaf-1:7")


def test_what_a_greater_cause_explains_is_merged_into_its_ticket():
    cage = out("cage", "n1 mlx5_0:1", "n2 mlx5_0:1", "leaf-1:7", "leaf-1:8")
    history = step(step([], [TWO_ENDS], proved(), day(1)), [cage], proved("cable"), day(2))
    assert kinds(history) == ["ticket.opened", "ticket.opened", "ticket.closed"]
    assert history[-1].body == {"ticket": "id-cable", "title": "cable", "by": "ticket id-cage, which explains it too"}
    later = step(step(history, [cage], proved("cable"), day(3)), [TWO_ENDS], proved("cage"), day(4))
    assert kinds(later)[3:] == ["ticket.reopened", "ticket.closed"], "the cage is mended, one cable of it is not"


def test_a_device_that_is_gone_explains_what_is_plugged_into_it():
    gone = out("devices", "n1", "leaf-1")
    history = step(step([], [TWO_ENDS], proved(), day(1)), [gone], proved("cable"), day(2))
    assert history[-1].body["by"] == "ticket id-devices, which explains it too"


@pytest.mark.parametrize(
    "other",
    [
        out("o", "n1", "leaf-2"),
        out("o", "n11", "leaf-1"),
        out("o", "n1 mlx5_0:1"),
        out("o", "n1", "leaf-1", verify="x"),
    ],
)
def test_what_another_ticket_does_not_wholly_explain_was_mended_by_itself(other):
    history = step(step([], [TWO_ENDS], proved(), day(1)), [other], proved("cable"), day(2))
    assert history[-1].body["by"] == f"seen right after {day(1)}"


def test_nothing_is_merged_without_a_proof_of_its_own():
    gone = out("devices", "n1", "leaf-1")
    history = step(step([], [TWO_ENDS], proved(), day(1)), [gone], proved(), day(2))
    assert set(open_tickets(history)) == {"cable", "devices"}


passes = st.lists(
    st.tuples(st.sets(st.sampled_from(KEYS)), st.sets(st.sampled_from(KEYS)), st.sampled_from(["six", "seven"])),
    max_size=8,
)


@given(passes)
def test_through_any_history_no_ticket_is_lost_doubled_or_closed_without_proof(history_of):
    history: list[LedgerEntry] = []
    for number, (wanted, proofs, seen) in enumerate(history_of):
        before = open_tickets(history)
        asked = [ticket(key, seen) for key in sorted(wanted)]
        history = step(history, asked, proved(*proofs), day(number))
        after = open_tickets(history)

        assert wanted <= set(after), "everything that is wanted is open"
        for key in set(before) - set(after):
            assert key in proofs
            assert key not in wanted
        for key in set(before) & set(after):
            assert after[key].ticket.id == before[key].ticket.id
        assert step(history, asked, proved(*proofs), day(number)) == history, "a second look changes nothing"
    assert len({entry.id for entry in history}) == len(history)
    opened = [entry.body["ticket"] for entry in history if entry.kind == "ticket.opened"]
    assert len(set(opened)) == len(opened)
    for one in list_tickets(history):
        turns = [each.what for each in one.history if each.what != "updated"]
        assert turns == ["opened", *["closed", "reopened"] * len(turns)][: len(turns)], "exactly one open at a time"


@given(passes)
def test_the_order_of_what_is_wanted_does_not_matter(history_of):
    for wanted, _, seen in history_of:
        asked = [ticket(key, seen) for key in wanted]
        forward = diff_tickets({}, asked, proved(), day(1), WINDOW)
        backward = diff_tickets({}, asked[::-1], proved(), day(1), WINDOW)
        assert sorted(entry.id for entry in forward) == sorted(entry.id for entry in backward)


def test_a_ticket_survives_the_ledgers_json():
    (entry,) = diff_tickets({}, [ticket("a")], proved(), day(1), WINDOW)
    assert open_tickets([entry])["a"].ticket == ticket("a")
