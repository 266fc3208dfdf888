"""The shapes of what `assay observe` and `assay lab status` print with `--format json`."""

from __future__ import annotations

from typing import Any

from assay.model.facts import fact, shown


@fact
class CollectedNode:
    """What was collected of a node, without the evidence itself."""

    node: str
    """The name of the node."""
    pool: str
    """The pool that it is in."""
    at: str
    """When the evidence was collected: ISO 8601 with the offset of UTC."""
    evidence: str
    """The digest of the evidence."""
    channels: dict[str, str]
    """Each channel, such as host or bmc, with value if it answered, else absent, unsupported or failed."""
    unanswered: dict[str, dict[str, str]]
    """What did not answer, by channel: the branch ("" for all of the channel) with the reason."""
    readings: dict[str, int]
    """How many readings there are of each kind: value, absent, unsupported or failed."""
    failed: dict[str, str]
    """The readings that failed: the path of each, which begins with the channel, with the reason."""


@fact
class RecordingAnswer(CollectedNode):
    """What files of a node hold, without the evidence itself."""

    foreign_hosts: list[str]
    """The hosts with other names that the files name."""


@fact
class ObserveAnswer:
    """What was collected of each node; the evidence itself is stored."""

    nodes: list[CollectedNode]
    """The nodes, in the order of the inventory."""
    took_s: float
    """How many seconds it took."""


@fact
class LocalEvidenceAnswer:
    """The evidence of this machine, with all readings."""

    schema: str
    """The version of the form of the evidence."""
    node: str
    """The name of this machine."""
    at: str
    """When it was collected: ISO 8601 with the offset of UTC."""
    channels: dict[str, Any]
    """The readings as a tree, by channel."""
    after_entry: int | None = shown(omit=True, default=None)
    """The number of the last ledger entry before it was collected; missing where nothing says it."""


@fact
class LabNode:
    """A node of the lab."""

    node: str
    """The name of the node."""
    power: str
    """Whether it is on, such as On or Off."""
    boots: int
    """How often it has started."""
    flashes: int
    """How often firmware was written."""
    fails: Any
    """The faults that are planted on it."""


@fact
class LabStatusAnswer:
    """Whether the lab is up, which of its parts are real tools, and how its nodes are."""

    up: bool
    """Whether it is up; else the exit code is 1."""
    pid: int
    """The id of its process; 0 if it is down."""
    parts: str
    """Which parts are real tools and which are stand-ins, in words."""
    nodes: list[LabNode]
    """Its nodes."""
