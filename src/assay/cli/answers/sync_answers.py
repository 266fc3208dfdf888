"""The shapes of what `assay sync` prints with `--format json`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.model.facts import fact

if TYPE_CHECKING:
    from assay.tell.views.node_sync import NodeSyncStatus


@fact
class PoolSyncCounts:
    """How the nodes of a pool compare, in numbers."""

    pool: str
    """The name of the pool."""
    nodes: int
    """How many nodes were compared."""
    in_sync: int
    """How many of them are what the repository says."""
    rolling: int
    """How many are on their way in a rollout."""
    drifted: int
    """How many differ."""
    held: int
    """How many are on their way or differ, and are held."""
    unknown: int
    """How many cannot be told, since a check lacks fresh evidence."""
    revision: str
    """The commit that they were compared with, with `-dirty` and a digest if files differ from it; "" without one."""


@fact
class SyncAnswer:
    """How far the nodes are what git says, by pool and by node."""

    pools: list[PoolSyncCounts]
    """The pools, in the order of the inventory."""
    nodes: list[NodeSyncStatus]
    """The nodes that were asked for."""
