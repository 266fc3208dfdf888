"""Entries about tickets: opened, updated, reopened, closed, and delivered to a sink, alone or in a digest.

Entries about notices to customers: shown on a node by its scheduler, or sent to a webhook.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Self

from assay.model.entries.entry_content import EntryBody, EntryContent
from assay.model.facts import fact, from_json, shown, to_json
from assay.model.ticket import Ticket


@fact
class TicketOpenedEntry(EntryContent):
    """A ticket was opened. Its fields are stored beside its id."""

    kind = "ticket.opened"
    ticket: Ticket

    @classmethod
    def _parse_body(cls, body: EntryBody) -> Self:
        return cls(_parse_ticket(body))

    def _encode_body(self) -> dict[str, Any]:
        return {"ticket": self.ticket.id, **to_json(self.ticket)}


class TicketUpdatedEntry(TicketOpenedEntry):
    """An open ticket says something new."""

    __slots__ = ()
    kind = "ticket.updated"


@fact
class TicketReopenedEntry(EntryContent):
    """A closed ticket is open again: why, and how often it was closed before."""

    kind = "ticket.reopened"
    ticket: Ticket
    reason: str
    times_closed: int

    @classmethod
    def _parse_body(cls, body: EntryBody) -> Self:
        return cls(_parse_ticket(body), body.get("reason", ""), body.get("before", 0))

    def _encode_body(self) -> dict[str, Any]:
        plain = to_json(self.ticket)
        return {"ticket": self.ticket.id, **plain, "reason": self.reason, "before": self.times_closed}


@fact
class TicketDoneEntry(EntryContent):
    """A technician says that the work is done: the proof of the ticket is to be taken now. It closes nothing."""

    kind = "ticket.done"
    ticket: str
    title: str
    who: str
    note: str


@fact
class TicketClosedEntry(EntryContent):
    """A ticket was closed; `ticket` is its id, `by` the proof that the work is done."""

    kind = "ticket.closed"
    ticket: str
    title: str = shown(missing="")
    by: str = shown(missing="")


@fact
class TicketDeliveredEntry(EntryContent):
    """A version of a ticket that a sink has now."""

    kind = "ticket.delivered"
    ticket: str
    """The id of the ticket."""
    title: str = shown(missing="")
    """The work in one line."""
    sink: str
    """The name of the TicketRoute."""
    destination: str = shown("to", missing="")
    """The place in the sink, such as a repository."""
    ticket_version: str = shown("version", missing="")
    """The digest of the version of the ticket."""
    external: str = shown(missing="")
    """What the sink calls the ticket, such as the number of an issue."""


@fact
class DigestStartedEntry(EntryContent):
    """A digest is about to be sent. After a crash, the same digest is sent again, under the same id.

    `tickets` gives the time of the change that it tells of each ticket (ISO 8601). `settled` are the earlier digests
    whose tickets are all closed now.
    """

    kind = "digest.started"
    digest: str
    route: str
    destination: str
    tickets: Mapping[str, str]
    settled: tuple[str, ...] = shown(missing=())


@fact
class DigestSentEntry(EntryContent):
    """One message about several tickets that a sink took."""

    kind = "digest.sent"
    digest: str
    """The id of the message."""
    route: str
    """The name of the TicketRoute."""
    count: int
    """Of how many tickets it tells."""


def _parse_ticket(body: EntryBody) -> Ticket:
    plain = {name: body[name] for name in [each.name for each in fields(Ticket)] if name in body}
    return from_json(Ticket, {"id": body["ticket"], "key": "", "title": "", "places": (), **plain})


@fact
class NoticeIntentEntry(EntryContent):
    """Customers are about to be told `text` on the node. `move` is the way out of service or back that it announces."""

    kind = "notice.intent"
    notice: str
    in_service: bool
    text: str
    move: str = ""


@fact
class NoticeVerifiedEntry(EntryContent):
    """A reading of the scheduler shows the notice."""

    kind = "notice.verified"
    notice: str


@fact
class NoticeFailedEntry(EntryContent):
    """A reading of the scheduler does not show the notice, for this `reason`."""

    kind = "notice.failed"
    notice: str
    reason: str


@fact
class NoticesStartedEntry(EntryContent):
    """A customer's webhook is about to get a message, and gets the same one again after a crash.

    `destination` stands for its address and its pools. `items` are the nodes that the message tells of, as it has them.
    """

    kind = "notices.started"
    message: str
    webhook: str
    destination: str
    items: tuple[Mapping[str, Any], ...]


@fact
class NoticesSentEntry(EntryContent):
    """A customer's webhook took a message about so many nodes."""

    kind = "notices.sent"
    message: str
    webhook: str
    count: int
