"""The shapes of what `assay tickets` prints with `--format json`."""

from __future__ import annotations

from typing import NotRequired

from typing_extensions import TypedDict

from assay.model.ticket import TicketEvent, TicketPlace, WorkReport


class TicketInAnswer(TypedDict):
    """A ticket: work for a technician. Times are ISO 8601 with the offset of UTC."""

    id: str
    """The id of the ticket."""
    key: str
    """What the ticket is about, as a key: there is one ticket of each key."""
    title: str
    """The work in one line."""
    node: str
    """The node that it is about; "" for work on something else, such as a switch."""
    places: list[TicketPlace]
    """Where the technician must go: both ends of a cable, for example."""
    expected: str
    """What should be there."""
    seen: str
    """What was read."""
    verify: str
    """The check or scan that closes the ticket when it passes."""
    severity: str
    """How serious it is; "" if nothing says it."""
    cause: str
    """The likely cause; "" if none is known."""
    steps: str
    """What to do, one step a line."""
    beside: str
    """What else the work interrupts; "" for nothing."""
    files: NotRequired[str]
    """Files to take along or to deliver, one a line: path below the fleet's root, two spaces, description."""
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
    history: list[TicketEvent]
    """What happened to it, oldest first."""
    done: WorkReport | None
    """The last word of a technician that the work is done; null without one since it was opened again."""
    photos: int
    """How many photos of the work there are."""


class TicketsAnswer(TypedDict):
    """The tickets, oldest first; with `--all`, closed ones too."""

    tickets: list[TicketInAnswer]
    """The tickets."""


class UnknownTicketsAnswer(TypedDict):
    """The tickets as they were last written to files, open or closed."""

    tickets: None
    """Always null: only the ledger knows which tickets are open."""
    files: dict[str, str]
    """The first line of each file of a ticket, by the path of the file."""
    problem: str
    """Why the ledger cannot be read."""


class WorkDoneAnswer(TypedDict):
    """What became of a technician's word that the work is done."""

    recorded: bool
    """Whether it was recorded now; false if it was recorded before."""
    message: str
    """What comes next."""


class TicketDeliveryInAnswer(TypedDict):
    """A version of a ticket that a sink has now."""

    ticket: str
    """The id of the ticket."""
    title: str
    """The work in one line."""
    sink: str
    """The name of the TicketRoute."""
    to: str
    """The place in the sink, such as a repository."""
    version: str
    """The digest of the version of the ticket."""
    external: str
    """What the sink calls the ticket, such as the number of an issue."""


class SentDigest(TypedDict):
    """One message about several tickets that a sink took."""

    digest: str
    """The id of the message."""
    route: str
    """The name of the TicketRoute."""
    count: int
    """Of how many tickets it tells."""


class UndeliveredAnswer(TypedDict):
    """A ticket that a sink still lacks."""

    sink: str
    """The name of the TicketRoute."""
    ticket: str
    """The id of the ticket; "" if the sink as a whole failed."""
    why: str
    """What the sink, or the way to it, said."""


class DeliveryAnswer(TypedDict):
    """What was delivered to the ticket systems, and what was not."""

    delivered: list[TicketDeliveryInAnswer]
    """The tickets that sinks have now."""
    digests: list[SentDigest]
    """The messages about several tickets that were sent."""
    undelivered: list[UndeliveredAnswer]
    """What failed; the exit code is then 2."""
