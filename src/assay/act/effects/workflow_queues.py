"""The queues of effects, and how long the engine that works on them keeps running.

Each pool has a queue in which each rack is a partition; the policy's limits pace it over all controllers of a ledger.
A rack that two pools share counts in both. This module imports nothing of DBOS, which takes 0.4 s to import.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from assay.model.fleet import Fleet
from assay.model.node import Node
from assay.model.specs.lifecycle_policy import LifecyclePolicy

DBOS_SCHEMA, DBOS_FILE = "assay_dbos", "dbos.sqlite"
"""Where DBOS keeps its tables: a schema beside a ledger on PostgreSQL, else a file in `.assay/`."""
QUEUE_POLL_S = 0.2
"""Seconds between two looks into a queue. One look costs about 1 ms of CPU time."""
_engine_stacks: list[ExitStack] = []


@contextmanager
def keep_engine_running() -> Iterator[None]:
    """Keep an engine that starts inside this block running until the block ends."""
    with ExitStack() as stack:
        _engine_stacks.append(stack)
        try:
            yield
        finally:
            _engine_stacks.remove(stack)


def find_engine_stack() -> ExitStack | None:
    """Return the stack of the innermost `keep_engine_running`, None outside of one."""
    return _engine_stacks[-1] if _engine_stacks else None


@dataclass(frozen=True, slots=True)
class QueueLimits:
    """A pool's queue: how many effects run at once in the pool and in a rack, and how many may start in a minute."""

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
