"""Every ticket as history tells it: when it was opened, updated and closed, and by what."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from assay.controller.ticket_diff import from_body
from assay.model.entry import Entry
from assay.model.ticket import Ticket


@dataclass(frozen=True, slots=True)
class Listed:
    """One ticket; times are ISO 8601 UTC, "" for what did not happen."""

    ticket: Ticket
    opened_at: str
    updated_at: str = ""
    closed_at: str = ""
    by: str = ""


def listed(entries: Iterable[Entry]) -> list[Listed]:
    """Return every ticket, in the order in which they were opened."""
    found: dict[str, Listed] = {}
    for entry in entries:
        match entry.kind:
            case "ticket.opened":
                found[entry.body["ticket"]] = Listed(from_body(entry.body), entry.at)
            case "ticket.updated":
                known = found[entry.body["ticket"]]
                found[known.ticket.id] = replace(known, ticket=from_body(entry.body), updated_at=entry.at)
            case "ticket.closed":
                known = found[entry.body["ticket"]]
                found[known.ticket.id] = replace(known, closed_at=entry.at, by=entry.body["by"])
    return list(found.values())
