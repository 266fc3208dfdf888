"""The shapes of what `assay status` prints with `--format json`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.model.facts import fact

if TYPE_CHECKING:
    from assay.tell.views.listings import NodeSummary


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
