"""The shapes of what `assay observe` and `assay lab status` print with `--format json`."""

from __future__ import annotations

from typing import Any

from assay.model.facts import fact, shown


@fact
class LocalEvidenceAnswer:
    """The evidence of this machine, with all readings."""

    schema: str
    """The version of the form of the evidence."""
    node: str
    """The name of this machine."""
    at: str
    """When it was collected: ISO 8601 with the offset of UTC."""
    channels: dict[str, Any]
    """The readings as a tree, by channel."""
    after_entry: int | None = shown(omit=True, default=None)
    """The number of the last ledger entry before it was collected; missing where nothing says it."""
