"""Spreads real checks over workers of xdist: those of one node, rack or fabric go to one worker."""

from __future__ import annotations

import re

from xdist.scheduler import LoadGroupScheduling

SUBJECT_PATTERN = re.compile(r"\[([^/\[\]]+/[^/\[\]]+)(?:/[^\[\]]*)?\]$")
"""At the end of an item's id: `[h100-a/n0003/gpu3]`, of which the first two parts are the node."""


class NodeGroupScheduler(LoadGroupScheduling):  # type: ignore[misc]  # of a library without types
    """xdist's scheduler of groups, for which a node is one.

    Marks would do, but pytest 9.2 no longer lets xdist 3.8 write an item's group into its id.
    """

    def _split_scope(self, nodeid: str) -> str:
        """Return the group of an item."""
        found = SUBJECT_PATTERN.search(nodeid)
        return found[1] if found else str(super()._split_scope(nodeid))
