"""What the open tickets must become: a pure comparison of what is open with what is wanted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from assay.model.entry import Entry, derived_id
from assay.model.ticket import Ticket

Proof = Callable[[Ticket, str], str]


@dataclass(frozen=True, slots=True)
class OpenTicket:
    """A ticket as the ledger has it, and when it was last opened or updated (ISO 8601 UTC)."""

    ticket: Ticket
    at: str


def open_tickets(entries: Iterable[Entry]) -> dict[str, OpenTicket]:
    """Return the open tickets by key."""
    found: dict[str, OpenTicket] = {}
    keys: dict[str, str] = {}
    for entry in entries:
        if entry.kind in ("ticket.opened", "ticket.updated"):
            ticket = from_body(entry.body)
            keys[ticket.id] = ticket.key
            found[ticket.key] = OpenTicket(ticket, entry.at)
        elif entry.kind == "ticket.closed":
            found.pop(keys.get(entry.body["ticket"], ""), None)
    return found


def changes(
    opened: Mapping[str, OpenTicket], wanted: Iterable[Ticket], used: Iterable[str], proof: Proof, at: str
) -> list[Entry]:
    """Return the entries that bring the open tickets to what is wanted, at time `at`.

    A ticket that is no longer wanted closes only with a proof: `proof(ticket, since)` says what proved it fixed since
    then, "" where nothing did. `used` are the ids of all tickets ever; one that is wanted again gets a new id.
    """
    news = {ticket.key: ticket for ticket in wanted}
    ids = set(used)
    found: list[Entry] = []
    for key, ticket in news.items():
        known = opened.get(key)
        if known is None:
            fresh = replace(ticket, id=derived_id(ticket.id, at)) if ticket.id in ids else ticket
            found.append(_entry("opened", fresh, at))
        elif replace(ticket, id=known.ticket.id) != known.ticket:
            found.append(_entry("updated", replace(ticket, id=known.ticket.id), at))
    for key, known in opened.items():
        if key not in news and (by := proof(known.ticket, known.at)):
            body = {"ticket": known.ticket.id, "by": by}
            found.append(Entry(derived_id("closed", known.ticket.id), at, "ticket.closed", known.ticket.node, body))
    return found


def from_body(body: Mapping[str, object]) -> Ticket:
    """Read the ticket of a ledger entry back."""
    return Ticket.from_json({name: body[name] for name in Ticket.__slots__})


def _entry(what: str, ticket: Ticket, at: str) -> Entry:
    body = {"ticket": ticket.id, **ticket.as_json()}
    return Entry(derived_id(what, ticket.id, at), at, f"ticket.{what}", ticket.node, body)
