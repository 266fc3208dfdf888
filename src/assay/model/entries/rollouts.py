"""Entries about rollouts: a merged change that takes nodes out of service, wave by wave, from its start to its end."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from assay.model.entries.entry_content import EntryContent, stored_as, stored_list

EarlierOrder = Literal["", "kept", "replaced"]
PauseRule = Literal["", "failures", "hold", "breaker", "plan", "age"]
"""The rule that paused a rollout, "" for a person."""


@dataclass(frozen=True, slots=True)
class RolloutGroup:
    """Nodes that go to the state `to` for the same reason. `base` is the commit that they were brought to before.

    `earlier`: the rollout that this one replaces had taken them out of service. Its order is `kept` if it brings all
    that they need, and `replaced` by a new one at once if it does not; "" without such an order.
    """

    to: str
    reason: str
    base: str
    nodes: tuple[str, ...]
    earlier: EarlierOrder = ""

    def as_json(self) -> dict[str, Any]:
        """Return plain JSON data."""
        plain: dict[str, Any] = {"to": self.to, "reason": self.reason, "base": self.base, "nodes": list(self.nodes)}
        return {**plain, "earlier": self.earlier} if self.earlier else plain


def _parse_groups(groups: Iterable[Mapping[str, Any]]) -> tuple[RolloutGroup, ...]:
    return tuple(
        RolloutGroup(one["to"], one["reason"], one["base"], tuple(one["nodes"]), one.get("earlier", ""))
        for one in groups
    )


def _encode_groups(groups: Iterable[RolloutGroup]) -> list[dict[str, Any]]:
    return [one.as_json() for one in groups]


@dataclass(frozen=True, slots=True)
class CommitAdoptedEntry(EntryContent):
    """The controller brings the fleet to this commit from now on. `base` is the one before, "" for the first.

    `uncompared` says why both could not be compared, "" if they were: then no rollout started for what differs.
    """

    kind = "commit.adopted"
    commit: str
    base: str = field(default="", metadata=stored_as(missing="", omit_empty=True))
    uncompared: str = field(default="", metadata=stored_as(missing="", omit_empty=True))


@dataclass(frozen=True, slots=True)
class RolloutStartedEntry(EntryContent):
    """A rollout began: its id, both commits, and the nodes that must leave service.

    `plan` is the digest (`sha256:…`) of the plan as it was reviewed, "" if nobody recorded it.
    """

    kind = "rollout.started"
    rollout: str
    base: str
    commit: str
    groups: tuple[RolloutGroup, ...] = field(metadata=stored_as(parse=_parse_groups, encode=_encode_groups))
    plan: str = field(default="", metadata=stored_as(missing="", omit_empty=True))


@dataclass(frozen=True, slots=True)
class RolloutPausedEntry(EntryContent):
    """No more nodes leave service for this rollout, until it is resumed. `nodes` are those because of which."""

    kind = "rollout.paused"
    rollout: str
    who: str
    reason: str
    rule: PauseRule = field(default="", metadata=stored_as(missing="", omit_empty=True))
    nodes: tuple[str, ...] = field(default=(), metadata=stored_list(missing=()))


@dataclass(frozen=True, slots=True)
class RolloutResumedEntry(EntryContent):
    """A paused rollout goes on: by a person, or by the rule that paused it."""

    kind = "rollout.resumed"
    rollout: str
    who: str
    reason: str


@dataclass(frozen=True, slots=True)
class RolloutAbortedEntry(EntryContent):
    """A person ended a rollout. The nodes that are out of service finish their way; the others stay as they are."""

    kind = "rollout.aborted"
    rollout: str
    who: str
    reason: str


@dataclass(frozen=True, slots=True)
class RolloutSupersededEntry(EntryContent):
    """A later merge took this rollout over. `by` is the rollout that has its nodes now, "" if no node is left to do."""

    kind = "rollout.superseded"
    rollout: str
    by: str
    reason: str


@dataclass(frozen=True, slots=True)
class NodeProvenEntry(EntryContent):
    """A node is back in service with what the rollout brings; `reason` says what proves it."""

    kind = "rollout.proven"
    rollout: str
    reason: str


@dataclass(frozen=True, slots=True)
class RolloutFinishedEntry(EntryContent):
    """Nothing is left to do for a rollout; `reason` says how it ended."""

    kind = "rollout.finished"
    rollout: str
    reason: str
