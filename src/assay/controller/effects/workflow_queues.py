"""The queues of effects: one for each pool, in which each rack is a partition, paced by the policy's limits.

The engine counts over all controllers of a ledger. A rack that two pools share is counted in each.

Whether what takes time to start is kept running for the next pass, as a controller that goes on wants it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from assay.model.fleet import Fleet, Node
from assay.model.specs.lifecycle_policy import LifecyclePolicy

_engine_stacks: list[ExitStack] = []


@contextmanager
def keep_engine_running() -> Iterator[None]:
    """While this lasts, what enters `kept()` stays; it is left in the end."""
    with ExitStack() as stack:
        _engine_stacks.append(stack)
        try:
            yield
        finally:
            _engine_stacks.remove(stack)


def find_engine_stack() -> ExitStack | None:
    """Return where to enter what shall stay, None where nobody wants that."""
    return _engine_stacks[-1] if _engine_stacks else None


QUEUE_POLL_S = 0.2
"""How often a queue is looked into; each look costs about a millisecond of a processor."""


@dataclass(frozen=True, slots=True)
class QueueLimits:
    """A pool's queue: how many effects at once in the pool and in each rack, and how many may begin in a minute."""

    queue: str
    pool_at_once: int
    rack_at_once: int
    per_minute: int


def list_queue_limits(fleet: Fleet, policy: LifecyclePolicy) -> list[QueueLimits]:
    """Return the queue of every pool."""
    limits = policy.limits
    at_once = limits.effects_at_once
    pools = sorted({node.pool for node in fleet.nodes.values()})
    return [
        QueueLimits(format_queue_name(pool), at_once.pool, min(at_once.rack, at_once.pool), limits.per_minute)
        for pool in pools
    ]


def format_queue_name(pool: str) -> str:
    """Return the name of a pool's queue."""
    return f"effects {pool}"


def format_partition_key(node: Node) -> str:
    """Return a node's partition in its pool's queue."""
    return f"{node.site}/{node.rack}"
