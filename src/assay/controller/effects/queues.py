"""The queues of effects: one for each pool, in which each rack is a partition, paced by the policy's limits.

The engine counts over all controllers of a ledger. A rack that two pools share is counted in each.
"""

from __future__ import annotations

from dataclasses import dataclass

from assay.model.fleet import Fleet, Node
from assay.model.policy import LifecyclePolicy

LOOK_S = 0.2
"""How often a queue is looked into; each look costs about a millisecond of a processor."""


@dataclass(frozen=True, slots=True)
class Pace:
    """A pool's queue: how many effects at once in the pool and in each rack, and how many may begin in a minute."""

    queue: str
    pool_at_once: int
    rack_at_once: int
    per_minute: int


def paces(fleet: Fleet, policy: LifecyclePolicy) -> list[Pace]:
    """Return the queue of every pool."""
    limits = policy.limits
    at_once = limits.effects_at_once
    pools = sorted({node.pool for node in fleet.nodes.values()})
    return [Pace(queue_of(pool), at_once.pool, min(at_once.rack, at_once.pool), limits.per_minute) for pool in pools]


def queue_of(pool: str) -> str:
    """Return the name of a pool's queue."""
    return f"effects {pool}"


def partition_of(node: Node) -> str:
    """Return a node's partition in its pool's queue."""
    return f"{node.site}/{node.rack}"
