"""What the tickets must become: a pure comparison of what is open, or was, with what is wanted.

What is wrong has a key, and a key has one ticket. Seen again within the window after it was closed, it is that ticket
again, reopened; later than that it is a new one, with an id of its own.

Every ticket as history tells it: when it was opened, updated, closed and reopened, and by what.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta

from assay.model.ledger_entry import LedgerEntry, derive_id
from assay.model.ticket import Ticket, TicketEvent, TicketPlace, TicketRecord
from assay.model.timestamps import format_duration, parse_time

ProofFinder = Callable[[Ticket, str], str]


OPENING_KINDS = ("ticket.opened", "ticket.updated", "ticket.reopened")


@dataclass(frozen=True, slots=True)
class TicketStatus:
    """The last ticket of a key: when it was last opened, updated or closed (ISO 8601 UTC), by what, how often closed.

    `by` is "" while it is open.
    """

    ticket: Ticket
    changed_at: str
    closed_by: str = ""
    times_closed: int = 0


def read_ticket_statuses(entries: Iterable[LedgerEntry]) -> dict[str, TicketStatus]:
    """Return the last ticket of every key that there ever was."""
    found: dict[str, TicketStatus] = {}
    keys: dict[str, str] = {}
    for entry in entries:
        if entry.kind in OPENING_KINDS:
            ticket = parse_ticket(entry.body)
            known = found.get(ticket.key)
            keys[ticket.id] = ticket.key
            same = known is not None and known.ticket.id == ticket.id
            found[ticket.key] = TicketStatus(ticket, entry.at, times_closed=known.times_closed if known and same else 0)
        elif entry.kind == "ticket.closed" and (key := keys.get(entry.body["ticket"])):
            found[key] = replace(
                found[key], changed_at=entry.at, closed_by=entry.body["by"], times_closed=found[key].times_closed + 1
            )
    return found


def diff_tickets(
    known: Mapping[str, TicketStatus], wanted: Iterable[Ticket], proof: ProofFinder, at: str, window: timedelta
) -> list[LedgerEntry]:
    """Return the entries that bring the tickets to what is wanted, at time `at`.

    A ticket that is no longer wanted closes only with a proof: `proof(ticket, since)` says what proved it fixed since
    then, "" where nothing did. Where the same proof found a greater cause that explains it, that ticket is named.
    """
    news = {ticket.key: ticket for ticket in wanted}
    found = [
        entry for key, ticket in news.items() for entry in _make_wanted_entries(known.get(key), ticket, at, window)
    ]
    now = [parse_ticket(entry.body) for entry in found] + [one.ticket for key, one in known.items() if key in news]
    for key, one in known.items():
        if key not in news and not one.closed_by and (by := proof(one.ticket, one.changed_at)):
            cause = next((each for each in now if _is_cause_of(each, one.ticket)), None)
            why = f"ticket {cause.id}, which explains it too" if cause else by
            body = {"ticket": one.ticket.id, "title": one.ticket.title, "by": why}
            ident = derive_id("closed", one.ticket.id, at)
            found.append(LedgerEntry(ident, at, "ticket.closed", one.ticket.node, body))
    return found


def _is_cause_of(great: Ticket, small: Ticket) -> bool:
    """Whether what is wrong with one ticket is a part of what is wrong with another, as one scan found it."""
    one_scan = great.verify == small.verify and small.verify.startswith("fabric scan ")
    inside = all(any(_covers(wide, place) for wide in great.places) for place in small.places)
    return one_scan and bool(small.places) and inside


def _covers(wide: TicketPlace, place: TicketPlace) -> bool:
    """Whether a place is the same as another, or a port of the whole device that the other names."""
    return wide == place or (not wide.port and f"{place.device} ".startswith(f"{wide.device} "))


def _make_wanted_entries(last: TicketStatus | None, ticket: Ticket, at: str, window: timedelta) -> list[LedgerEntry]:
    """Return what must be said of a wanted ticket, given the last one of its key."""
    if last is None:
        return [_make_entry("opened", ticket, at)]
    same = replace(ticket, id=last.ticket.id)
    if not last.closed_by:
        return [_make_entry("updated", same, at)] if same != last.ticket else []
    since = parse_time(at) - parse_time(last.changed_at)
    if since > window:
        return [_make_entry("opened", replace(ticket, id=derive_id(ticket.id, at)), at)]
    reason = f"seen again {format_duration(since)} after it was closed by {last.closed_by}"
    return [_make_entry("reopened", same, at, reason=reason, before=last.times_closed)]


def parse_ticket(body: Mapping[str, object]) -> Ticket:
    """Read the ticket of a ledger entry back."""
    return Ticket.from_json({name: body[name] for name in Ticket.__slots__ if name in body})


def _make_entry(what: str, ticket: Ticket, at: str, **more: object) -> LedgerEntry:
    body = {"ticket": ticket.id, **ticket.as_json(), **more}
    return LedgerEntry(derive_id(what, ticket.id, at), at, f"ticket.{what}", ticket.node, body)


TICKET_KINDS = ("ticket.opened", "ticket.updated", "ticket.closed", "ticket.reopened")


def list_tickets(entries: Iterable[LedgerEntry]) -> list[TicketRecord]:
    """Return every ticket, in the order in which they were first opened."""
    found: dict[str, TicketRecord] = {}
    for entry in entries:
        if entry.kind in TICKET_KINDS:
            ident = entry.body["ticket"]
            found[ident] = _advance(found.get(ident), entry)
    return list(found.values())


def _advance(known: TicketRecord | None, entry: LedgerEntry) -> TicketRecord:
    """Return a ticket one line of history further."""
    history = (*(known.history if known else ()), _parse_event(entry))
    if known is None:
        return TicketRecord(parse_ticket(entry.body), entry.at, history=history)
    match entry.kind:
        case "ticket.closed":
            return replace(known, closed_at=entry.at, by=entry.body["by"], history=history)
        case "ticket.updated":
            return replace(known, ticket=parse_ticket(entry.body), updated_at=entry.at, history=history)
    return replace(known, ticket=parse_ticket(entry.body), closed_at="", by="", history=history)


def _parse_event(entry: LedgerEntry) -> TicketEvent:
    body = entry.body
    why = {"ticket.closed": "by", "ticket.reopened": "reason"}.get(entry.kind, "seen")
    return TicketEvent(entry.at, entry.kind.removeprefix("ticket."), body.get(why, ""))
