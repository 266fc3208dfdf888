"""The shapes of what `assay rollout` prints with `--format json`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from assay.model.facts import fact
from assay.tell.views.listings import RolloutSummary

if TYPE_CHECKING:
    from assay.decide.rollouts.node_progress import ProgressKind


@fact
class RolloutProgress(RolloutSummary):
    """A rollout, what it waits for, and how long it will still take."""

    waits_for: str
    """What it waits for; "" for nothing, and once it has ended."""
    hours_left: float | None
    """About how many hours it will still take; null once it has ended, or if nothing tells it."""


@fact
class RolloutNode:
    """A node that takes part in a rollout."""

    node: str
    """The name of the node."""
    progress: ProgressKind | Literal[""]
    """How far it is; "" for a node that had not come back when the rollout ended."""
    why: str
    """What it waits for, what failed, or what proves that it is back; "" if there is nothing to say."""
    to: str
    """The state that brings the change: the node is sent there."""
    change: str
    """What changes on it."""
    ordered_at: str
    """When it was sent there: ISO 8601 with the offset of UTC; "" before that."""


@fact
class ComingWave:
    """A wave: nodes that leave service together."""

    number: int
    """Its number among the waves to come, from 1."""
    canary: bool
    """Whether it is a small trial."""
    nodes: list[str]
    """Its nodes."""


@fact
class RolloutShowAnswer:
    """How far one rollout is: each node, and the waves to come."""

    rollout: RolloutProgress
    """The rollout."""
    nodes: list[RolloutNode]
    """Each node that takes part."""
    waves: list[ComingWave]
    """The waves to come, in order."""


@fact
class UncomparedCommit:
    """A commit that was adopted without a rollout, because it could not be compared with the one before."""

    commit: str
    """The adopted commit."""
    base: str
    """The commit that was adopted before it."""
    at: str
    """When it was adopted: ISO 8601 with the offset of UTC."""
    reason: str
    """Why the two cannot be compared."""


@fact
class RolloutsAnswer:
    """The rollouts of merged changes, and the commits that got none."""

    rollouts: list[RolloutSummary]
    """All rollouts, the newest first."""
    uncompared: list[UncomparedCommit]
    """The commits that were adopted without a rollout because they could not be compared, the newest first."""


@fact
class RolloutOrderAnswer:
    """What was recorded of an order about a rollout."""

    rollout: str
    """The id of the rollout."""
    new: bool
    """Whether this was recorded now; false if the same order was recorded before."""
    who: str
    """Who gave the order."""
    reason: str
    """Why, in that person's words."""
