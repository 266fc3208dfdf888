"""Work for a technician: the exact place, what was expected and seen, and how to verify the repair."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class TicketPlace:
    """Where hands must go. `port` and `label` as printed on the hardware; `u` counts from the bottom."""

    device: str
    site: str = ""
    rack: str = ""
    u: int = 0
    port: str = ""
    label: str = ""


@dataclass(frozen=True, slots=True)
class Ticket:
    """Opened once per `key`, updated, closed by the check or scan named in `verify` when it passes, reopened.

    `cause` is the likely one, `steps` are what to do, one a line, `beside` is what else the work interrupts. `files`
    go along, or say where to put something: one a line, a path below the fleet's root, two spaces, what it is.
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
        """Return plain JSON data; `from_json` reads it back. Without files it is as it was before there were any."""
        plain = {name: getattr(self, name) for name in self.__slots__ if name != "files" or self.files}
        plain["places"] = [{k: getattr(p, k) for k in p.__slots__} for p in self.places]
        return plain

    @classmethod
    def from_json(cls, plain: dict[str, Any]) -> Ticket:
        """Read `as_json` back."""
        return cls(**{**plain, "places": tuple(TicketPlace(**p) for p in plain["places"])})


@dataclass(frozen=True, slots=True)
class TicketEvent:
    """One line of a ticket's history. `what`: opened, updated, closed, reopened; `why`: what was seen, or proved it."""

    at: str
    what: str
    why: str = ""


@dataclass(frozen=True, slots=True)
class TicketRecord:
    """One ticket and its history; times are ISO 8601 UTC, "" for what did not happen (or not since it reopened)."""

    ticket: Ticket
    opened_at: str
    updated_at: str = ""
    closed_at: str = ""
    by: str = ""
    history: tuple[TicketEvent, ...] = ()

    @property
    def reopen_count(self) -> int:
        """How often it was reopened."""
        return sum(one.what == "reopened" for one in self.history)
