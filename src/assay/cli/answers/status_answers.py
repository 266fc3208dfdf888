"""The shapes of what `assay status` prints with `--format json`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.decide.moves.held_answers import OpenBreaker
from assay.model.facts import fact, inline

if TYPE_CHECKING:
    from assay.cli.answers.rollout_answers import UncomparedCommit
    from assay.tell.views.listings import NodeSummary, RolloutSummary
    from assay.tell.views.node_status import NodeStatus
    from assay.tell.views.trust_view import FleetTrust


@fact
class RolloutStatusPart:
    """What of the rollouts belongs to the state of the fleet."""

    rollout: RolloutSummary | None
    """The active rollout; null if there is none."""
    uncompared: UncomparedCommit | None
    """The commit that was adopted last, if it could not be compared with the one before; else null."""


@fact
class StatusAnswer:
    """The state of each node that was asked for, the active rollout and the open circuit breakers."""

    nodes: list[NodeStatus]
    """The nodes that were asked for, by pool and name."""
    breakers: list[OpenBreaker]
    """The circuit breakers that hold nodes back, of the whole fleet."""
    rollouts: RolloutStatusPart = inline()
    trust: FleetTrust | None
    """How far automation may go; null without an inventory and one policy."""


@fact
class ServerNodesAnswer:
    """The nodes that the server lets the visitor see."""

    nodes: list[NodeSummary]
    """The nodes that were asked for."""


@fact
class UnknownNode:
    """What is known of a node without the ledger."""

    node: str
    """The name of the node."""
    pool: str
    """The pool that the node is in."""
    state: None
    """Always null: the ledger knows the state."""
    node_spec: str
    """The node spec that says what the node must be."""
    observed: str | None
    """When evidence of it was last stored here: ISO 8601 with the offset of UTC; null if never."""


@fact
class UnknownNodesAnswer:
    """The nodes of the inventory, with unknown states."""

    nodes: list[UnknownNode]
    """The nodes of the inventory, by pool and name."""
    problem: str
    """Why the ledger cannot be read."""


@fact
class UnknownNodeAnswer(UnknownNode):
    """What is known of the node without the ledger."""

    problem: str
    """Why the ledger cannot be read."""
