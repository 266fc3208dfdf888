"""The answer to "is my fleet what git says?": nodes with what differs on them, and pools with their numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args

from assay.model.facts import fact

SyncState = Literal["in_sync", "rolling", "drifted", "held", "unknown"]
SYNC_STATES: tuple[SyncState, ...] = get_args(SyncState)


@fact
class SyncDifference:
    """A component or setting that differs, or that nobody knows."""

    what: str
    """The component or setting, with the part that has it."""
    wanted: str
    """The declared value; "" if it is not known how the node compares."""
    seen: str
    """The value that was seen; where it is not known, "unknown: " and why."""
    where: str = ""
    """The file and line of the declared value, as `file:line`; "" where no spec says it."""
    since: str = ""
    """When it was first seen so: ISO 8601 with the offset of UTC; for old evidence, its time. "" if nothing says it."""

    @property
    def is_known(self) -> bool:
        """Whether it is a difference that was seen, and not one that cannot be excluded."""
        return not self.seen.startswith(UNKNOWN_PREFIX)


UNKNOWN_PREFIX = "unknown: "


@fact
class NodeSync:
    """How a node compares with the fleet repository, and what the policy does about it."""

    node: str
    """The name of the node."""
    pool: str
    """The pool that the node is in."""
    state: SyncState
    """In sync, on its way in a rollout, drifted, held (while on its way or drifted), or unknown."""
    items: tuple[SyncDifference, ...] = ()
    """What differs or is not known."""
    revision: str = ""
    """The last revision that it is known to have been in sync with; "" if that is not known."""
    held_by: str = ""
    """Who holds it; "" if nobody does."""
    remedies: tuple[str, ...] = ()
    """What the policy does about the differences of a drifted node, one text for each class of differences."""


@fact
class PoolSync:
    """How the nodes of a pool compare, in numbers."""

    pool: str
    """The name of the pool."""
    nodes: int
    """How many nodes were compared."""
    counts: Mapping[SyncState, int]
    """How many nodes are in each state."""
    revisions: Mapping[str, int]
    """How many nodes were last in sync with each revision."""
    oldest: str = ""
    """Since when the oldest difference is seen: ISO 8601 with the offset of UTC; "" without one."""


@dataclass(frozen=True)
class SyncReport:
    """Every node that the inventory declares and that is not gone for good, compared with `revision`."""

    revision: str
    nodes: Sequence[NodeSync]

    @property
    def is_in_sync(self) -> bool:
        """Whether every node is what the repository says."""
        return all(node.state == "in_sync" for node in self.nodes)

    @cached_property
    def pools(self) -> tuple[PoolSync, ...]:
        """The pools in the order of the inventory."""
        by_pool: dict[str, list[NodeSync]] = {}
        for node in self.nodes:
            by_pool.setdefault(node.pool, []).append(node)
        return tuple(_count_pool(pool, nodes) for pool, nodes in by_pool.items())


def _count_pool(pool: str, nodes: Sequence[NodeSync]) -> PoolSync:
    counts = Counter(node.state for node in nodes)
    revisions = Counter(node.revision for node in nodes)
    seen = (item for node in nodes for item in node.items if item.is_known)
    oldest = min((item.since for item in seen if item.since), default="")
    return PoolSync(pool, len(nodes), {state: counts[state] for state in SYNC_STATES}, revisions, oldest)
