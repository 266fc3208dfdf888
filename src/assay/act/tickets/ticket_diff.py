"""Opens, updates, closes and reopens tickets: compares the tickets in the ledger with those that are needed. Pure.

Every problem has a key, and every key one ticket. A problem that comes back within a window after its ticket was
closed reopens that ticket; later it is a new ticket with an id of its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field, replace
from datetime import timedelta

from assay.model.entries.registry import decode_entry
from assay.model.entries.tickets import (
    TicketClosedEntry,
    TicketDoneEntry,
    TicketOpenedEntry,
    TicketReopenedEntry,
    TicketUpdatedEntry,
)
from assay.model.facts import frozen
from assay.model.ledger_entry import LedgerEntry, Projection, derive_id
from assay.model.ticket import Ticket, TicketEvent, TicketRecord, WorkReport
from assay.model.timestamps import format_duration, parse_time

ProofFinder = Callable[[Ticket, str], str]
"""Returns what proved a ticket's problem fixed since a time (ISO 8601), "" if nothing did."""
_NAMED = re.compile(r"(?:^|has )ticket ([0-9a-f]{16})\b")
"""How the reason of a closing names the ticket that took its work over (at its begin), or that has what is left."""
OPENING_KINDS = ("ticket.opened", "ticket.updated", "ticket.reopened")
TicketEvents = TicketClosedEntry | TicketDoneEntry
TICKET_KINDS = (*OPENING_KINDS, "ticket.closed")
TICKET_RECORD_KINDS = (*TICKET_KINDS, TicketDoneEntry.kind)
"""All kinds that `list_tickets` reads: also what technicians said."""


@frozen
class TicketMoves:
    """Where the work of a ticket went: the key of the ticket that took it over, and of those that have what is left."""

    into: str = ""
    left: tuple[str, ...] = ()


MoveFinder = Callable[[Ticket], TicketMoves]


@frozen
class TicketStatus:
    """The last ticket of a key: when it was last opened, updated or closed (ISO 8601), and how often it was closed.

    `closed_by` is what proved the problem fixed, "" while the ticket is open.
    """

    ticket: Ticket
    changed_at: str
    closed_by: str = ""
    times_closed: int = 0


@frozen
class TicketStatuses:
    """The last ticket of every key, and the key of every ticket by its id."""

    by_key: dict[str, TicketStatus] = field(default_factory=dict)
    keys: dict[str, str] = field(default_factory=dict)

    def copy(self) -> TicketStatuses:
        """Return one that changes for itself."""
        return TicketStatuses(dict(self.by_key), dict(self.keys))

    def apply(self, entry: LedgerEntry) -> TicketStatuses:
        """Apply the next entry of `TICKET_KINDS`, and return this object."""
        if entry.kind in OPENING_KINDS:
            ticket = parse_ticket(entry)
            known = self.by_key.get(ticket.key)
            self.keys[ticket.id] = ticket.key
            times = known.times_closed if known and known.ticket.id == ticket.id else 0
            self.by_key[ticket.key] = TicketStatus(ticket, entry.at, times_closed=times)
        else:
            closed = TicketClosedEntry.read(entry)
            if key := self.keys.get(closed.ticket):
                known, times = self.by_key[key], self.by_key[key].times_closed + 1
                self.by_key[key] = replace(known, changed_at=entry.at, closed_by=closed.by, times_closed=times)
        return self


TICKET_STATUSES = Projection(TICKET_KINDS, TicketStatuses, TicketStatuses.apply, TicketStatuses.copy)


def diff_tickets(
    known: Mapping[str, TicketStatus],
    wanted: Iterable[Ticket],
    proof: ProofFinder,
    at: str,
    window: timedelta,
    find_moves: MoveFinder = lambda _: TicketMoves(),
) -> list[LedgerEntry]:
    """Return the entries, at time `at`, that bring the known tickets (by key) to the wanted ones.

    A ticket that is no longer wanted closes only with a proof, or when another one has its work; its entry then names
    that one, and also those that have what is left of it. The other's history has the same.
    """
    wanted_by_key = {ticket.key: ticket for ticket in wanted}
    entries: list[LedgerEntry] = []
    for key, ticket in wanted_by_key.items():
        entries += _make_wanted_entries(known.get(key), ticket, at, window)
    present = [parse_ticket(entry) for entry in entries]
    present += [status.ticket for key, status in known.items() if key in wanted_by_key]
    for key, status in known.items():
        if key in wanted_by_key or status.closed_by:
            continue
        moves, by = find_moves(status.ticket), proof(status.ticket, status.changed_at)
        cause = next(
            (each for each in present if each.key == moves.into or (by and _includes(each, status.ticket))), None
        )
        left = "".join(f"; the rest has ticket {each.id}" for each in present if each.key in moves.left)
        if reason := f"ticket {cause.id}, which explains it too" if cause else f"{by}{left}" if by else "":
            closed = TicketClosedEntry(status.ticket.id, status.ticket.title, reason)
            entries.append(closed.make_entry(derive_id("closed", status.ticket.id, at), at, status.ticket.node))
    return entries


def _includes(large: Ticket, small: Ticket) -> bool:
    """Say whether one scan found both problems, and every place of the small one is among those of the large one."""
    same_scan = large.verify == small.verify and small.verify.startswith("fabric scan ")
    if not same_scan or not small.places:
        return False
    # a place without a port is the whole device
    devices = tuple(f"{wide.device} " for wide in large.places if not wide.port)
    return all(place in large.places or f"{place.device} ".startswith(devices) for place in small.places)


def _make_wanted_entries(last: TicketStatus | None, ticket: Ticket, at: str, window: timedelta) -> list[LedgerEntry]:
    """Return the entry for a wanted ticket, if anything is new, given the last ticket of its key."""
    if last is None:
        return [_make_entry(TicketOpenedEntry(ticket), at)]
    same = replace(ticket, id=last.ticket.id)
    if not last.closed_by:
        return [_make_entry(TicketUpdatedEntry(same), at)] if same != last.ticket else []
    since = parse_time(at) - parse_time(last.changed_at)
    if since > window:
        return [_make_entry(TicketOpenedEntry(replace(ticket, id=derive_id(ticket.id, at))), at)]
    reason = f"seen again {format_duration(since)} after it was closed by {last.closed_by}"
    return [_make_entry(TicketReopenedEntry(same, reason, last.times_closed), at)]


def _make_entry(content: TicketOpenedEntry | TicketReopenedEntry, at: str) -> LedgerEntry:
    event, ticket = content.kind.removeprefix("ticket."), content.ticket
    return content.make_entry(derive_id(event, ticket.id, at), at, ticket.node)


def parse_ticket(entry: LedgerEntry) -> Ticket:
    """Return the ticket in an entry of one of `OPENING_KINDS`."""
    return TicketOpenedEntry.read(entry).ticket


def _apply_entry(records: dict[str, TicketRecord], entry: LedgerEntry) -> dict[str, TicketRecord]:
    content = decode_entry(entry)
    if isinstance(content, TicketOpenedEntry | TicketReopenedEntry):
        ident = content.ticket.id
        records[ident] = _apply_opening(records.get(ident), content, entry)
    elif isinstance(content, TicketEvents) and content.ticket in records:
        records[content.ticket] = _apply_event(records[content.ticket], content, entry.at)
        for match in _NAMED.finditer(content.by) if isinstance(content, TicketClosedEntry) else ():
            if other := records.get(match[1]):
                change, text = "split" if match.start() else "merged", f"ticket {content.ticket[:8]}, {content.title}"
                event = TicketEvent(entry.at, change, f"from {text}" if match.start() else f"it has the work of {text}")
                records[match[1]] = replace(other, history=(*other.history, event))
    return records


TICKETS = Projection[dict[str, TicketRecord]](TICKET_RECORD_KINDS, dict, _apply_entry, dict)
"""Every ticket with its history, by id, in the order in which they were first opened."""
TICKETS_WITHOUT_REPORTS = Projection[dict[str, TicketRecord]](TICKET_KINDS, dict, _apply_entry, dict)
"""The same without what technicians said: sinks get what changed the ticket itself."""


def list_tickets(entries: Iterable[LedgerEntry]) -> list[TicketRecord]:
    """Return every ticket with its history, in the order in which they were first opened."""
    return list(TICKETS.fold(entries).values())


def _apply_event(known: TicketRecord, content: TicketEvents, at: str) -> TicketRecord:
    """Return a ticket after it was closed, or after a technician said that it is done."""
    if isinstance(content, TicketDoneEntry):
        event = TicketEvent(at, "done", f"{content.who}: {content.note}")
        return replace(known, done=WorkReport(at, content.who, content.note), history=(*known.history, event))
    history = (*known.history, TicketEvent(at, "closed", content.by))
    return replace(known, closed_at=at, by=content.by, history=history)


def _apply_opening(
    known: TicketRecord | None, content: TicketOpenedEntry | TicketReopenedEntry, entry: LedgerEntry
) -> TicketRecord:
    """Return a ticket after it was opened, updated or reopened."""
    reason = content.reason if isinstance(content, TicketReopenedEntry) else content.ticket.seen
    event = TicketEvent(entry.at, content.kind.removeprefix("ticket."), reason)
    if known is None:
        return TicketRecord(content.ticket, entry.at, history=(event,), context=entry.context)
    history = (*known.history, event)
    if isinstance(content, TicketUpdatedEntry):
        return replace(known, ticket=content.ticket, updated_at=entry.at, history=history)
    return replace(known, ticket=content.ticket, closed_at="", by="", history=history, done=None)
