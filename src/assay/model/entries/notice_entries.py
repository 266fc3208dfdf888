"""Entries about notices to customers: shown on a node by its scheduler, or sent to a webhook."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from assay.model.entries.entry_content import EntryContent, stored_list


@dataclass(frozen=True, slots=True)
class NoticeIntentEntry(EntryContent):
    """Customers are about to be told `text` on the node. `move` is the way out of service or back that it announces."""

    kind = "notice.intent"
    notice: str
    in_service: bool
    text: str
    move: str = ""


@dataclass(frozen=True, slots=True)
class NoticeVerifiedEntry(EntryContent):
    """A reading of the scheduler shows the notice."""

    kind = "notice.verified"
    notice: str


@dataclass(frozen=True, slots=True)
class NoticeFailedEntry(EntryContent):
    """A reading of the scheduler does not show the notice, for this `reason`."""

    kind = "notice.failed"
    notice: str
    reason: str


@dataclass(frozen=True, slots=True)
class NoticesStartedEntry(EntryContent):
    """A customer's webhook is about to get a message, and gets the same one again after a crash.

    `destination` stands for its address and its pools. `items` are the nodes that the message tells of, as it has them.
    """

    kind = "notices.started"
    message: str
    webhook: str
    destination: str
    items: tuple[Mapping[str, Any], ...] = field(metadata=stored_list())


@dataclass(frozen=True, slots=True)
class NoticesSentEntry(EntryContent):
    """A customer's webhook took a message about so many nodes."""

    kind = "notices.sent"
    message: str
    webhook: str
    count: int
