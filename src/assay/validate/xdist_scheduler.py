"""Distributes items over xdist's workers so that one worker judges all items of a node, rack or fabric.

It is loaded only where a person asks for workers: assay's own shards do without.
"""

from __future__ import annotations

import re

from xdist.scheduler import LoadGroupScheduling

SUBJECT_PATTERN = re.compile(r"\[([^/\[\]]+/[^/\[\]]+)(?:/[^\[\]]*)?\]$")
"""The end of an item's id, `[h100-a/n0003/gpu3]`: the first two parts are the node."""


class NodeGroupScheduler(LoadGroupScheduling):  # type: ignore[misc]  # xdist ships no types
    """xdist's scheduler of groups, where a node is a group.

    Its `xdist_group` marks would do, but with pytest 9.2 xdist 3.8 cannot write an item's group into its id. So this
    overrides `_split_scope`, which is private: pyproject.toml limits the version of xdist.
    """

    def _split_scope(self, nodeid: str) -> str:
        """Return the group of an item."""
        match = SUBJECT_PATTERN.search(nodeid)
        return match[1] if match else str(super()._split_scope(nodeid))
