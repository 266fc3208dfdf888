"""The failures that a running rollout will remove: drift of nodes whose wave has not come, or that are on their way."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from assay.tell.report.latest_outcomes_database import FAILING
from assay.tell.report.status_changes import StatusChange


@dataclass(frozen=True, slots=True)
class RolloutWaits:
    """The rollout's id, "" without one; its nodes that are not done; the checks whose failure is drift."""

    rollout: str = ""
    nodes: frozenset[str] = frozenset()
    checks: frozenset[str] = frozenset()

    def explains(self, one: StatusChange) -> bool:
        """Whether the rollout explains this failure. Any other failure on the same node is a real one."""
        return one.now == FAILING and one.holder in self.nodes and one.check in self.checks

    def select_rest(self, changes: Iterable[StatusChange]) -> Iterator[StatusChange]:
        """Yield the changes that the rollout does not explain."""
        return (one for one in changes if not self.explains(one))


NO_ROLLOUT = RolloutWaits()
