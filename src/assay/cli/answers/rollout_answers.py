"""The shapes of what `assay rollout` prints with `--format json`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.model.facts import fact

if TYPE_CHECKING:
    pass


@fact
class UncomparedCommit:
    """A commit that was adopted without a rollout, because it could not be compared with the one before."""

    commit: str
    """The adopted commit."""
    base: str
    """The commit that was adopted before it."""
    at: str
    """When it was adopted: ISO 8601 with the offset of UTC."""
    reason: str
    """Why the two cannot be compared."""
