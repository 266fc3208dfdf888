"""The newest outcomes of nodes, asked of the ledger again only after a run was recorded."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from threading import Lock

from assay.ledger.store import Ledger
from assay.model.outcome import Recorded

Found = dict[str, tuple[Recorded, ...]]


class Newest:
    """What `Ledger.latest` says, remembered for the nodes that are asked about each time. For any thread."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger, self._lock = ledger, Lock()
        self._known: Found = {}
        self._as_of = -1

    def of(self, nodes: Collection[str], keep: Collection[str] = ()) -> Mapping[str, tuple[Recorded, ...]]:
        """Return the newest outcome of each check × subject of these nodes; those of `keep` are remembered."""
        head = self._ledger.outcomes_head()
        with self._lock:
            known = self._known if head == self._as_of else {}
            missing = [name for name in nodes if name not in known]
            known = {name: known[name] for name in nodes if name in known}
        known |= outcomes_of(self._ledger, missing)
        with self._lock:
            if head >= self._as_of:
                self._as_of, self._known = head, {name: known[name] for name in keep if name in known}
        return known


def outcomes_of(ledger: Ledger, names: Collection[str]) -> Found:
    """Return the newest outcome of each check × subject of these nodes."""
    found: dict[str, list[Recorded]] = {name: [] for name in names}
    for one in ledger.latest(nodes=names) if names else ():
        found[one.outcome.node].append(one)
    return {name: tuple(outcomes) for name, outcomes in found.items()}
