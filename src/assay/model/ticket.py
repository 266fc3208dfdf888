"""Work for a technician: the exact place, what was expected and seen, and how to verify the repair."""

from __future__ import annotations

import re

from assay.model.facts import fact, frozen, inline, shown
from assay.model.ledger_entry import Context


@frozen
class TicketPlace:
    """Where a technician must go. What is not known is "" or 0."""

    device: str
    """The node, switch or other device."""
    site: str = ""
    """The building or room."""
    rack: str = ""
    """The rack."""
    u: int = 0
    """The place in the rack, in rack units from the bottom."""
    port: str = ""
    """The port, as printed on the hardware."""
    label: str = ""
    """The label, as printed on the cable or the hardware."""


@fact
class Ticket:
    """Work for a technician. There is one ticket per `key`; the check or scan in `verify` closes it when it passes."""

    id: str
    """The id of the ticket."""
    key: str
    """What the ticket is about, as a key: there is one ticket of each key."""
    title: str
    """The work in one line."""
    node: str = ""
    """The node that it is about; "" for work on something else."""
    places: tuple[TicketPlace, ...] = ()
    """Where the technician must go."""
    expected: str = ""
    """What should be there."""
    seen: str = ""
    """What was read."""
    verify: str = ""
    """The check or scan that closes the ticket when it passes."""
    severity: str = ""
    """How serious it is; "" if nothing says it."""
    cause: str = ""
    """The likely cause; "" if none is known."""
    steps: str = ""
    """What to do, one step a line."""
    beside: str = ""
    """What else the work interrupts; "" for nothing."""
    files: str = shown(omit=True, default="")
    """Files to take along or to deliver, one a line: path below the fleet's root, two spaces, description."""

    @property
    def order(self) -> str:
        """What is to be done, without the place, which its title names after a colon."""
        return self.title.partition(": ")[0]

    @property
    def asks_for_certificate(self) -> bool:
        """Whether a person's word on its node is what ends it."""
        return self.verify.startswith("assay certify")

    @property
    def commands(self) -> tuple[str, ...]:
        """The commands that a person types for this work, in order: those of its steps, and the one that ends it."""
        typed = re.findall(r"`(assay (?!explain)[^`]+)`", self.steps)
        ends = [line for line in self.verify.splitlines() if line.startswith("assay certify")]
        return tuple(dict.fromkeys([*typed, *ends]))


@frozen
class TicketEvent:
    """One line of a ticket's history."""

    at: str
    """When: ISO 8601 UTC."""
    what: str
    """What happened: opened, updated, done, closed, reopened, merged (it took another over), or split from one."""
    why: str = ""
    """Why; "" if nothing says it."""


@frozen
class WorkReport:
    """A technician's word that the work is done."""

    at: str
    """When: ISO 8601 UTC."""
    who: str
    """Who said it."""
    note: str
    """What was done, in that person's words."""


@fact
class TicketRecord:
    """A ticket, which is work for a technician, and its history. Times are ISO 8601 with the offset of UTC."""

    ticket: Ticket = inline()
    opened_at: str
    """When it was first opened."""
    updated_at: str = ""
    """When its text changed last; "" if it never has."""
    closed_at: str = ""
    """When it was closed; "" while it is open."""
    by: str = ""
    """What closed it; "" while it is open."""
    history: tuple[TicketEvent, ...] = ()
    """What happened to it, oldest first."""
    done: WorkReport | None = None
    """The last word of a technician that the work is done; null without one since it was opened again."""
    context: Context = "fleet"
    """What it is about: a real machine, or a virtual one of the lab."""
    answers: tuple[str, ...] = shown(omit=True, default=())
    """For a ticket system: what broke, since when, why, who acts, when it is back; each with its label and a colon."""

    @property
    def reopen_count(self) -> int:
        """How often the ticket was reopened."""
        return sum(event.what == "reopened" for event in self.history)
