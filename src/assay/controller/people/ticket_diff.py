"""What the tickets must become: a pure comparison of what is open, or was, with what is wanted.

What is wrong has a key, and a key has one ticket. Seen again within the window after it was closed, it is that ticket
again, reopened; later than that it is a new one, with an id of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta

from assay.lifecycle.when import moment, spoken
from assay.model.entry import Entry, derived_id
from assay.model.ticket import Place, Ticket

Proof = Callable[[Ticket, str], str]


OPENS = ("ticket.opened", "ticket.updated", "ticket.reopened")


@dataclass(frozen=True, slots=True)
class Standing:
    """The last ticket of a key: when it was last opened, updated or closed (ISO 8601 UTC), by what, how often closed.

    `by` is "" while it is open.
    """

    ticket: Ticket
    at: str
    by: str = ""
    times: int = 0


def standings(entries: Iterable[Entry]) -> dict[str, Standing]:
    """Return the last ticket of every key that there ever was."""
    found: dict[str, Standing] = {}
    keys: dict[str, str] = {}
    for entry in entries:
        if entry.kind in OPENS:
            ticket = from_body(entry.body)
            known = found.get(ticket.key)
            keys[ticket.id] = ticket.key
            same = known is not None and known.ticket.id == ticket.id
            found[ticket.key] = Standing(ticket, entry.at, times=known.times if known and same else 0)
        elif entry.kind == "ticket.closed" and (key := keys.get(entry.body["ticket"])):
            found[key] = replace(found[key], at=entry.at, by=entry.body["by"], times=found[key].times + 1)
    return found


def changes(
    known: Mapping[str, Standing], wanted: Iterable[Ticket], proof: Proof, at: str, window: timedelta
) -> list[Entry]:
    """Return the entries that bring the tickets to what is wanted, at time `at`.

    A ticket that is no longer wanted closes only with a proof: `proof(ticket, since)` says what proved it fixed since
    then, "" where nothing did. Where the same proof found a greater cause that explains it, that ticket is named.
    """
    news = {ticket.key: ticket for ticket in wanted}
    found = [entry for key, ticket in news.items() for entry in _wanted(known.get(key), ticket, at, window)]
    now = [from_body(entry.body) for entry in found] + [one.ticket for key, one in known.items() if key in news]
    for key, one in known.items():
        if key not in news and not one.by and (by := proof(one.ticket, one.at)):
            cause = next((each for each in now if _explains(each, one.ticket)), None)
            why = f"ticket {cause.id}, which explains it too" if cause else by
            body = {"ticket": one.ticket.id, "title": one.ticket.title, "by": why}
            ident = derived_id("closed", one.ticket.id, at)
            found.append(Entry(ident, at, "ticket.closed", one.ticket.node, body))
    return found


def _explains(great: Ticket, small: Ticket) -> bool:
    """Whether what is wrong with one ticket is a part of what is wrong with another, as one scan found it."""
    one_scan = great.verify == small.verify and small.verify.startswith("fabric scan ")
    inside = all(any(_covers(wide, place) for wide in great.places) for place in small.places)
    return one_scan and bool(small.places) and inside


def _covers(wide: Place, place: Place) -> bool:
    """Whether a place is the same as another, or a port of the whole device that the other names."""
    return wide == place or (not wide.port and f"{place.device} ".startswith(f"{wide.device} "))


def _wanted(last: Standing | None, ticket: Ticket, at: str, window: timedelta) -> list[Entry]:
    """Return what must be said of a wanted ticket, given the last one of its key."""
    if last is None:
        return [_entry("opened", ticket, at)]
    same = replace(ticket, id=last.ticket.id)
    if not last.by:
        return [_entry("updated", same, at)] if same != last.ticket else []
    since = moment(at) - moment(last.at)
    if since > window:
        return [_entry("opened", replace(ticket, id=derived_id(ticket.id, at)), at)]
    reason = f"seen again {spoken(since)} after it was closed by {last.by}"
    return [_entry("reopened", same, at, reason=reason, before=last.times)]


def from_body(body: Mapping[str, object]) -> Ticket:
    """Read the ticket of a ledger entry back."""
    return Ticket.from_json({name: body[name] for name in Ticket.__slots__ if name in body})


def _entry(what: str, ticket: Ticket, at: str, **more: object) -> Entry:
    body = {"ticket": ticket.id, **ticket.as_json(), **more}
    return Entry(derived_id(what, ticket.id, at), at, f"ticket.{what}", ticket.node, body)
