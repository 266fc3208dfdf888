"""Which nodes a verb shows: those that people name, of a pool, a rack or a state, or that changed lately."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from assay.cli.name_check import require_known
from assay.cli.recorded_node_states import pick_node_state
from assay.cli.workspace import Workspace
from assay.decide.state.node_state import NodeState
from assay.model.errors import AssayError
from assay.model.timestamps import parse_time


@dataclass(frozen=True)
class NodeFilter:
    """What a node must meet to be shown: one of each list that is not empty, and a state that is at most so old."""

    nodes: frozenset[str] = frozenset()
    pools: frozenset[str] = frozenset()
    racks: frozenset[str] = frozenset()
    states: frozenset[str] = frozenset()
    since: timedelta | None = None

    @property
    def is_empty(self) -> bool:
        """Whether every node is shown."""
        return not (self.nodes or self.pools or self.racks or self.states or self.since)

    def select(self, workspace: Workspace, recorded: Sequence[NodeState]) -> list[NodeState]:
        """Return the recorded nodes to show. Raises AssayError for a name that nothing has."""
        if self.is_empty:
            return list(recorded)
        self._require_known(workspace, recorded)
        racks = {node.name: node.rack for node in workspace.fleet.nodes.values()} if self.racks else {}
        now = workspace.clock.now()
        return [
            one
            for one in recorded
            if self.keeps(one.node, one.pool, racks.get(one.node, ""), one.state, one.since, now)
        ]

    def keeps(self, node: str, pool: str, rack: str, state: str, since: str, now: datetime) -> bool:
        """Return whether a node is shown that has been in a state since a time (ISO 8601)."""
        pairs = ((self.nodes, node), (self.pools, pool), (self.racks, rack), (self.states, state))
        if any(wanted and name not in wanted for wanted, name in pairs):
            return False
        return self.since is None or now - parse_time(since) <= self.since

    def _require_known(self, workspace: Workspace, recorded: Sequence[NodeState]) -> None:
        for name in sorted(self.nodes - {one.node for one in recorded}):
            pick_node_state(workspace, recorded, name)
        require_known(sorted(self.pools), sorted({one.pool for one in recorded}), "pool")
        if self.racks:
            require_known(sorted(self.racks), sorted({node.rack for node in workspace.fleet.nodes.values()}), "rack")
        unused = self.states - {one.state for one in recorded}
        if unused:
            require_known(sorted(unused), workspace.fleet.policy.states, "state")


def require_no_racks(wanted: NodeFilter) -> None:
    """Raise AssayError for a filter by rack, which a server's answer does not tell."""
    if wanted.racks:
        raise AssayError("a server does not tell the racks of its nodes", fix="name nodes, pools or states instead")
