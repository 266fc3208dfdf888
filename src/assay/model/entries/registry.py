"""The content class of each entry kind, and the content of any entry."""

from __future__ import annotations

from typing import Any

from assay.model.entries import assets, boot, effects, faults, node_entries, rollouts, schedule_entries, tickets
from assay.model.entries.entry_content import EntryBody, EntryContent
from assay.model.facts import frozen
from assay.model.ledger_entry import LedgerEntry

CONTENT_CLASSES: dict[str, type[EntryContent]] = {
    content.kind: content
    for module in (node_entries, faults, effects, assets, rollouts, schedule_entries, tickets, boot)
    for content in vars(module).values()
    if isinstance(content, type) and issubclass(content, EntryContent) and content.kind
}
"""By kind; a class without a kind is only the base of others."""


@frozen
class UnknownEntry(EntryContent):
    """The content of a kind that this assay does not know: its body, untouched."""

    body: EntryBody

    def to_body(self) -> dict[str, Any]:
        """Return the body as it was read."""
        return dict(self.body)


def decode_entry(entry: LedgerEntry) -> EntryContent:
    """Return the content of an entry of any kind. Raises AssayError where its class cannot read it."""
    content = CONTENT_CLASSES.get(entry.kind)
    return content.read(entry) if content else UnknownEntry(entry.body)
