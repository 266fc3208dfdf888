"""Entries about trends: warnings that something gets worse, what came of them, and rules that lost their stage."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from assay.model.entries.entry_content import EntryContent, stored_as, stored_list

TrendStage = Literal["observe", "record"]
"""`observe`: a warning is kept and judged. `record`: also, it is a fault, and idle tests begin with its node."""
WarningOutcome = Literal["right", "wrong", "overtaken", "cannot tell"]
"""`overtaken`: somebody repaired, moved or exchanged the part first. `cannot tell`: it was not measured long enough."""


@dataclass(frozen=True, slots=True)
class TrendWarnedEntry(EntryContent):
    """A part gets worse among its peers. `warning` is its id, `rule` the rule of TrendRules, in that `revision` of it.

    `place` is the part's place in the node ("" for the node), `serial` its number. `name` in `unit` went from `before`
    to `now`, with the score `z` among `peers`; None for a `limit` or `rate_days` that nobody knows. `rate_days`: days
    to the limit in a straight line. `days`: low, middle and high of the calibrated range, empty where nothing is
    calibrated. `group`: who shares it. `p`: the chance that it is right, as known then.
    """

    kind = "trend.warned"
    warning: str
    rule: str
    revision: str
    stage: TrendStage
    place: str
    serial: str
    name: str
    unit: str
    before: float
    now: float
    z: float
    peers: int
    limit: float | None = None
    rate_days: float | None = None
    days: tuple[float, ...] = field(default=(), metadata=stored_list(missing=()))
    group: str = ""
    p: float | None = None
    reason: str = field(default="", metadata=stored_as("because", missing=""))


@dataclass(frozen=True, slots=True)
class TrendClosedEntry(EntryContent):
    """What came of a warning: its id, its rule, the outcome and the reason.

    `fault` is the id of the fault that proved it right, `lead_days` how long before that it came.
    """

    kind = "trend.closed"
    warning: str
    rule: str
    outcome: WarningOutcome
    reason: str = field(metadata=stored_as("because"))
    fault: str = field(default="", metadata=stored_as(missing="", omit_empty=True))
    lead_days: float | None = None


@dataclass(frozen=True, slots=True)
class TrendDemotedEntry(EntryContent):
    """A rule lost its stage in this `revision` of it, and why: its warnings are only kept from now on."""

    kind = "trend.demoted"
    rule: str
    revision: str
    reason: str = field(metadata=stored_as("because"))
