"""What every sink does, and how it says that it could not."""

from __future__ import annotations

from typing import Protocol

from assay.model.errors import AssayError
from assay.model.ticket import TicketRecord


class TicketSink(Protocol):
    """One place to which tickets are delivered. Delivering the same twice leaves one ticket there, as it now is."""

    def deliver(self, listed: TicketRecord, version: str, external: str) -> str:
        """Bring the ticket there to what it is now, and return how the sink calls it (a path, a URL).

        `external` is what an earlier delivery returned, "" where none is known: then what an interrupted one may have
        left is looked for first. Raises Refused or Unavailable.
        """

    def holds(self, external: str) -> bool:
        """Whether what was delivered still seems to be there; True where asking would cost a request."""


class TicketRefusal(AssayError):
    """This ticket is not taken; others may be."""


class TicketNotFound(TicketRefusal):
    """What is known under this name is no longer there."""


class SinkUnavailable(AssayError):
    """Nothing is taken now. `soon`: it is worth trying again at once; `after_s`: what the far end asked to wait."""

    def __init__(self, what: str, *, where: str = "", fix: str = "", soon: bool = False, after_s: float = 0) -> None:
        super().__init__(what, where=where, fix=fix)
        self.soon, self.after_s = soon, after_s
