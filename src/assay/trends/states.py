"""Where each node was at any time."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime

from assay.lifecycle.when import moment
from assay.model.entry import Entry


class States:
    """The stays of every node, out of the ledger's entries."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self._since: dict[str, list[datetime]] = defaultdict(list)
        self._state: dict[str, list[str]] = defaultdict(list)
        for entry in entries:
            if entry.kind in ("node.enrolled", "transition"):
                self._since[entry.node].append(moment(entry.at))
                self._state[entry.node].append(entry.body.get("to") or entry.body.get("state", ""))

    def at(self, node: str, when: str) -> str:
        """Return the state of a node at a time, before its first entry the one that it began in; "" for a stranger."""
        stays = self._state.get(node)
        if not stays:
            return ""
        return stays[max(0, bisect_right(self._since[node], moment(when)) - 1)]

    def last(self, node: str) -> str:
        """Return the state that a node is in."""
        return self._state[node][-1] if node in self._state else ""
