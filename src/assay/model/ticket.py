"""Work for a technician: the exact place, what was expected and seen, and how to verify the repair."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class TicketPlace:
    """Where a technician must go. `port` and `label` are as printed on the hardware; `u` counts from the bottom."""

    device: str
    site: str = ""
    rack: str = ""
    u: int = 0
    port: str = ""
    label: str = ""


@dataclass(frozen=True, slots=True)
class Ticket:
    """Work for a technician. There is one ticket per `key`; the check or scan in `verify` closes it when it passes.

    - `expected`, `seen`: what should be there, and what was read. `cause`: the likely cause.
    - `steps`: what to do, one step a line. `beside`: what else the work interrupts.
    - `files`: files to take along or to deliver, one a line: path below the fleet's root, two spaces, description.
    """

    id: str
    key: str
    title: str
    node: str = ""
    places: tuple[TicketPlace, ...] = ()
    expected: str = ""
    seen: str = ""
    verify: str = ""
    severity: str = ""
    cause: str = ""
    steps: str = ""
    beside: str = ""
    files: str = ""

    def as_json(self) -> dict[str, Any]:
        """Return plain JSON data; `from_json` reads it back. An empty `files` is left out."""
        plain = {name: getattr(self, name) for name in self.__slots__ if name != "files" or self.files}
        plain["places"] = [{k: getattr(p, k) for k in p.__slots__} for p in self.places]
        return plain

    @classmethod
    def from_json(cls, plain: dict[str, Any]) -> Ticket:
        """Return the ticket that `as_json` gave."""
        return cls(**{**plain, "places": tuple(TicketPlace(**p) for p in plain["places"])})


@dataclass(frozen=True, slots=True)
class TicketEvent:
    """One line of a ticket's history. `what` is opened, updated, closed or reopened; `why` gives the reason."""

    at: str
    what: str
    why: str = ""


@dataclass(frozen=True, slots=True)
class TicketRecord:
    """One ticket and its history. Times are ISO 8601 UTC, "" for an event that has not happened since it (re)opened."""

    ticket: Ticket
    opened_at: str
    updated_at: str = ""
    closed_at: str = ""
    by: str = ""
    history: tuple[TicketEvent, ...] = ()

    @property
    def reopen_count(self) -> int:
        """How often the ticket was reopened."""
        return sum(event.what == "reopened" for event in self.history)
