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
    where: str
    """The file and line of the declared value, as `file:line`; "" where no spec says it."""
    since: str | None
    """Since when it is seen so: ISO 8601 with the offset of UTC; null if nothing says it."""

    @property
    def is_known(self) -> bool:
        """Whether it is a difference that was seen, and not one that cannot be excluded."""
        return not self.seen.startswith(UNKNOWN_PREFIX)


UNKNOWN_PREFIX = "unknown: "


@dataclass(frozen=True, slots=True)
class NodeSync:
    """One node. `revision` is the last one that it is known to have been in sync with, "" where that is not known.

    `held_by` says who holds it. `remedies` say what the policy does about the differences of a drifted node.
    """

    node: str
    pool: str
    state: SyncState
    items: tuple[SyncDifference, ...] = ()
    revision: str = ""
    held_by: str = ""
    remedies: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PoolSync:
    """The numbers of one pool: nodes by state, nodes by revision, and since when the oldest difference is seen."""

    pool: str
    nodes: int
    counts: Mapping[SyncState, int]
    revisions: Mapping[str, int]
    oldest: str = ""


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
