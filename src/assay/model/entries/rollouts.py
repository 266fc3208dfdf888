"""Entries about rollouts: a merged change that takes nodes out of service, wave by wave, from its start to its end."""

from __future__ import annotations

from typing import Literal

from assay.model.entries.entry_content import EntryContent
from assay.model.facts import fact, shown

EarlierOrder = Literal["", "kept", "replaced"]
PauseRule = Literal["", "failures", "hold", "breaker", "plan", "age"]
"""The rule that paused a rollout, "" for a person."""


@fact
class RolloutGroup:
    """Nodes that go to the state `to` for the same reason. `base` is the commit that they were brought to before.

    `earlier`: the rollout that this one replaces had taken them out of service. Its order is `kept` if it brings all
    that they need, and `replaced` by a new one at once if it does not; "" without such an order.
    """

    to: str
    reason: str
    base: str
    nodes: tuple[str, ...]
    earlier: EarlierOrder = shown(omit_stored=True, default="")


@fact
class CommitAdoptedEntry(EntryContent):
    """The controller brings the fleet to this commit from now on. `base` is the one before, "" for the first.

    `uncompared` says why both could not be compared, "" if they were: then no rollout started for what differs.
    """

    kind = "commit.adopted"
    commit: str
    base: str = shown(omit_stored=True, default="")
    uncompared: str = shown(omit_stored=True, default="")


@fact
class RolloutStartedEntry(EntryContent):
    """A rollout began: its id, both commits, and the nodes that must leave service.

    `plan` is the digest (`sha256:…`) of the plan as it was reviewed, "" if nobody recorded it. `takes_back`: the nodes
    go back to what they had before the last rollout.
    """

    kind = "rollout.started"
    rollout: str
    base: str
    commit: str
    groups: tuple[RolloutGroup, ...]
    plan: str = shown(omit_stored=True, default="")
    takes_back: bool = shown(omit_stored=True, default=False)


@fact
class RolloutPausedEntry(EntryContent):
    """No more nodes leave service for this rollout, until it is resumed. `nodes` are those because of which."""

    kind = "rollout.paused"
    rollout: str
    who: str
    reason: str
    rule: PauseRule = shown(omit_stored=True, default="")
    nodes: tuple[str, ...] = ()


@fact
class RolloutResumedEntry(EntryContent):
    """A paused rollout goes on: by a person, or by the rule that paused it."""

    kind = "rollout.resumed"
    rollout: str
    who: str
    reason: str


@fact
class RolloutAbortedEntry(EntryContent):
    """A person ended a rollout. The nodes that are out of service finish their way; the others stay as they are."""

    kind = "rollout.aborted"
    rollout: str
    who: str
    reason: str


@fact
class RolloutSupersededEntry(EntryContent):
    """A later merge took this rollout over. `by` is the rollout that has its nodes now, "" if no node is left to do."""

    kind = "rollout.superseded"
    rollout: str
    by: str
    reason: str


@fact
class NodeProvenEntry(EntryContent):
    """A node is back in service with what the rollout brings; `reason` says what proves it."""

    kind = "rollout.proven"
    rollout: str
    reason: str


@fact
class RolloutFinishedEntry(EntryContent):
    """Nothing is left to do for a rollout; `reason` says how it ended."""

    kind = "rollout.finished"
    rollout: str
    reason: str
