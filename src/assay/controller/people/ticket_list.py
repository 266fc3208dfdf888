"""Every ticket as history tells it: when it was opened, updated, closed and reopened, and by what."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from assay.controller.people.ticket_diff import from_body
from assay.model.entry import Entry
from assay.model.ticket import Happening, Listed

KINDS = ("ticket.opened", "ticket.updated", "ticket.closed", "ticket.reopened")


def listed(entries: Iterable[Entry]) -> list[Listed]:
    """Return every ticket, in the order in which they were first opened."""
    found: dict[str, Listed] = {}
    for entry in entries:
        if entry.kind in KINDS:
            ident = entry.body["ticket"]
            found[ident] = _next(found.get(ident), entry)
    return list(found.values())


def _next(known: Listed | None, entry: Entry) -> Listed:
    """Return a ticket one line of history further."""
    history = (*(known.history if known else ()), _happening(entry))
    if known is None:
        return Listed(from_body(entry.body), entry.at, history=history)
    match entry.kind:
        case "ticket.closed":
            return replace(known, closed_at=entry.at, by=entry.body["by"], history=history)
        case "ticket.updated":
            return replace(known, ticket=from_body(entry.body), updated_at=entry.at, history=history)
    return replace(known, ticket=from_body(entry.body), closed_at="", by="", history=history)


def _happening(entry: Entry) -> Happening:
    body = entry.body
    why = {"ticket.closed": "by", "ticket.reopened": "reason"}.get(entry.kind, "seen")
    return Happening(entry.at, entry.kind.removeprefix("ticket."), body.get(why, ""))
