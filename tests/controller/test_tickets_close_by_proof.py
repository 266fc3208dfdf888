"""Tickets: opened once, updated, and closed only by what proved them fixed; never because data is missing."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from assay.controller.ticket_diff import changes, open_tickets
from assay.controller.ticket_list import listed
from assay.model.entry import Entry
from assay.model.ticket import Place, Ticket

KEYS = ["a", "b", "c"]


def ticket(key: str, seen: str = "seven of eight") -> Ticket:
    return Ticket(
        f"id-{key}", key, f"title {key}", "n0001", (Place("n0001", "lab1", "r01", 4, "gpu6"),), "eight", seen, "look"
    )


def proved(*keys: str):
    return lambda ticket, since: f"seen right after {since}" if ticket.key in keys else ""


def step(history: list[Entry], wanted: list[Ticket], proof, at: str) -> list[Entry]:
    used = {entry.body["ticket"] for entry in history}
    return [*history, *changes(open_tickets(history), wanted, used, proof, at)]


def kinds(history: list[Entry]) -> list[str]:
    return [entry.kind for entry in history]


def test_a_ticket_is_opened_once_however_often_it_is_wanted():
    history = step([], [ticket("a")], proved(), "1")
    history = step(history, [ticket("a")], proved(), "2")
    assert kinds(history) == ["ticket.opened"]


def test_what_is_seen_anew_updates_the_ticket_under_its_own_id():
    history = step(step([], [ticket("a")], proved(), "1"), [ticket("a", "six of eight")], proved(), "2")
    assert kinds(history) == ["ticket.opened", "ticket.updated"]
    assert history[1].body["ticket"] == history[0].body["ticket"]
    assert open_tickets(history)["a"].ticket.seen == "six of eight"


def test_a_ticket_that_nothing_wants_and_nothing_proved_stays_open():
    history = step(step([], [ticket("a")], proved(), "1"), [], proved(), "2")
    assert set(open_tickets(history)) == {"a"}


def test_a_proof_closes_it_and_is_named():
    history = step(step([], [ticket("a")], proved(), "1"), [], proved("a"), "2")
    assert kinds(history) == ["ticket.opened", "ticket.closed"]
    assert history[-1].body["by"] == "seen right after 1"


def test_a_ticket_that_is_still_wanted_is_not_closed_by_any_proof():
    history = step(step([], [ticket("a")], proved(), "1"), [ticket("a")], proved("a"), "2")
    assert kinds(history) == ["ticket.opened"]


def test_what_breaks_again_is_a_new_ticket():
    history = step(step([], [ticket("a")], proved(), "1"), [], proved("a"), "2")
    history = step(history, [ticket("a")], proved(), "3")
    first, second = (entry.body["ticket"] for entry in history if entry.kind == "ticket.opened")
    assert first != second
    assert [one.closed_at for one in listed(history)] == ["2", ""]


passes = st.lists(
    st.tuples(st.sets(st.sampled_from(KEYS)), st.sets(st.sampled_from(KEYS)), st.sampled_from(["six", "seven"])),
    max_size=8,
)


@given(passes)
def test_through_any_history_no_ticket_is_lost_doubled_or_closed_without_proof(history_of):
    history: list[Entry] = []
    for number, (wanted, proofs, seen) in enumerate(history_of):
        before = open_tickets(history)
        asked = [ticket(key, seen) for key in sorted(wanted)]
        history = step(history, asked, proved(*proofs), str(number))
        after = open_tickets(history)

        assert wanted <= set(after), "everything that is wanted is open"
        for key in set(before) - set(after):
            assert key in proofs
            assert key not in wanted
        for key in set(before) & set(after):
            assert after[key].ticket.id == before[key].ticket.id
        assert step(history, asked, proved(*proofs), str(number)) == history, "a second look changes nothing"
    assert len({entry.id for entry in history}) == len(history)
    opened = [entry.body["ticket"] for entry in history if entry.kind == "ticket.opened"]
    assert len(set(opened)) == len(opened)


@given(passes)
def test_the_order_of_what_is_wanted_does_not_matter(history_of):
    for wanted, _, seen in history_of:
        asked = [ticket(key, seen) for key in wanted]
        forward = changes({}, asked, (), proved(), "1")
        backward = changes({}, asked[::-1], (), proved(), "1")
        assert sorted(entry.id for entry in forward) == sorted(entry.id for entry in backward)


def test_a_ticket_survives_the_ledgers_json():
    (entry,) = changes({}, [ticket("a")], (), proved(), "1")
    assert open_tickets([entry])["a"].ticket == replace(ticket("a"), id=entry.body["ticket"])
