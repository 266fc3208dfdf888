"""Lets the fleets that one process reads share what they have in common: most are copies of the example fleet.

`assay plan` reads its two revisions in the same way.
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from assay.declare.repository.draft import RepositoryDraft

if TYPE_CHECKING:
    from collections.abc import Sequence

    from assay.declare.yaml import ParseCache


def share_what_is_read(shared: ParseCache) -> None:
    """Give `shared` to each fleet that is read without a cache from now on."""
    read = RepositoryDraft.__init__

    def read_the_rest(
        self: RepositoryDraft,
        root: Path,
        overlays: Sequence[Path] = (),
        commit: str = "",
        cache: ParseCache | None = None,
        now: datetime | None = None,
    ) -> None:
        read(self, root, overlays, commit, cache or shared, now)

    RepositoryDraft.__init__ = read_the_rest  # type: ignore[method-assign]
