"""A digest: one message about all the tickets that changed since the last one. Sinks load it, so it imports little."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from assay.model.ticket import TicketEvent, TicketRecord


@dataclass(frozen=True, slots=True)
class DigestItem:
    """One ticket, and the last change of it that people are told."""

    record: TicketRecord
    event: TicketEvent

    @property
    def is_open(self) -> bool:
        """Whether the change left the ticket open."""
        return self.event.what != "closed"


@dataclass(frozen=True, slots=True)
class Digest:
    """What one message tells. `id` is the same however often the message is sent.

    `settled` are the ids of earlier digests whose tickets are all closed now. `may_repeat` says that an earlier attempt
    broke off, so that the sink may have the message already.
    """

    id: str
    route: str
    items: tuple[DigestItem, ...]
    settled: tuple[str, ...] = ()
    may_repeat: bool = False
