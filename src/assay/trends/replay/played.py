"""What came of a replay: the decisions in their order, where every node was when, and when a breaker opened."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from assay.lifecycle.story import Story
from assay.model.decision import Decision
from assay.model.policy import LifecyclePolicy


@dataclass(frozen=True, slots=True)
class Made:
    """A decision, and when it was made."""

    at: datetime
    decision: Decision


@dataclass(frozen=True, slots=True)
class Trip:
    """A breaker that opened: whose, when, why, and the nodes that it held back until it closed again."""

    at: datetime
    pool: str
    because: str
    nodes: tuple[str, ...]


@dataclass(frozen=True)
class Played:
    """One policy's answer to a history, from its first event to the last thing that followed."""

    policy: LifecyclePolicy
    start: datetime
    until: datetime
    made: tuple[Made, ...]
    trips: tuple[Trip, ...]
    stories: Mapping[str, Story]
    tickets: int
