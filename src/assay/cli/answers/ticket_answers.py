"""The shapes of what `assay tickets` prints with `--format json`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.model.facts import fact, inline

if TYPE_CHECKING:
    from assay.model.entries.tickets import DigestSentEntry, TicketDeliveredEntry
    from assay.model.ticket import Ticket, TicketEvent, WorkReport


@fact
class TicketInAnswer:
    """A ticket: work for a technician. Times are ISO 8601 with the offset of UTC."""

    ticket: Ticket = inline()
    opened_at: str
    """When the ticket was first opened."""
    updated_at: str
    """When its text changed last; "" if it never has."""
    closed_at: str
    """When it was closed; "" while it is open."""
    by: str
    """What closed it; "" while it is open."""
    reopened: int
    """How often it was opened again."""
    history: tuple[TicketEvent, ...]
    """What happened to it, oldest first."""
    done: WorkReport | None
    """The last word of a technician that the work is done; null without one since it was opened again."""
    photos: int
    """How many photos of the work there are."""


@fact
class TicketsAnswer:
    """The tickets, oldest first; with `--all`, closed ones too."""

    tickets: list[TicketInAnswer]
    """The tickets."""


@fact
class UnknownTicketsAnswer:
    """The tickets as they were last written to files, open or closed."""

    tickets: None
    """Always null: only the ledger knows which tickets are open."""
    files: dict[str, str]
    """The first line of each file of a ticket, by the path of the file."""
    problem: str
    """Why the ledger cannot be read."""


@fact
class WorkDoneAnswer:
    """What became of a technician's word that the work is done."""

    recorded: bool
    """Whether it was recorded now; false if it was recorded before."""
    message: str
    """What comes next."""


@fact
class UndeliveredAnswer:
    """A ticket that a sink still lacks."""

    sink: str
    """The name of the TicketRoute."""
    ticket: str
    """The id of the ticket; "" if the sink as a whole failed."""
    why: str
    """What the sink, or the way to it, said."""


@fact
class DeliveryAnswer:
    """What was delivered to the ticket systems, and what was not."""

    delivered: list[TicketDeliveredEntry]
    """The tickets that sinks have now."""
    digests: list[DigestSentEntry]
    """The messages about several tickets that were sent."""
    undelivered: list[UndeliveredAnswer]
    """What failed; the exit code is then 2."""
