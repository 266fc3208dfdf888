"""Entries about faults, alerts, and observations that failed.

Entries about trends: warnings that something gets worse, what came of them, and rules that lost their stage.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from assay.model.entries.entry_content import EntryContent
from assay.model.facts import fact, shown
from assay.model.faults.fault_record import FaultBlame, FaultSeverity, Remedy


@fact
class FaultEntry(EntryContent):
    """A fault was seen, or seen again. `fault` is its id; times are ISO 8601 UTC.

    `marks` says how far each source has been read; `times` holds the last sightings. See `model.faults.fault_record`.
    """

    kind = "fault"
    fault: str
    fault_class: str = shown("class")
    subject: str
    severity: FaultSeverity
    blame: FaultBlame = shown(missing="")
    remedy: Remedy = shown(missing="none")
    count: int = shown(missing=1)
    first_seen: str = shown(missing="")
    last_seen: str = shown(missing="")
    detail: str = shown(missing="")
    marks: Mapping[str, str] = shown(missing={})
    times: tuple[str, ...] = shown(missing=())


@fact
class FaultClearedEntry(EntryContent):
    """A fault is over: its id, and the reason.

    `seen_up_to` is the number of its last entry that this knew; an entry after that keeps the fault open. 0: any.
    `name` is the fault's class and subject; "" in entries of older versions. `is_taken_back`: only a spec by which
    nothing is judged any more made it a fault.
    """

    kind = "fault.cleared"
    fault: str
    reason: str = shown("because")
    seen_up_to: int = shown(omit_stored=True, default=0)
    name: str = shown(omit_stored=True, default="")
    is_taken_back: bool = shown("taken_back", omit_stored=True, default=False)


@fact
class AlertNoteEntry(EntryContent):
    """An alert: its name and fingerprint, the fault class and part that a rule maps it to, when it began."""

    alert: str
    fault: str = shown(missing="")
    part: str = shown(missing="")
    began: str = shown(missing="")
    detail: str = shown(missing="")
    fingerprint: str = shown(missing="")


class AlertResolvedEntry(AlertNoteEntry):
    """An alert about a node of the fleet is over."""

    __slots__ = ()
    kind = "alert.resolved"


@fact
class AlertElsewhereEntry(AlertNoteEntry):
    """Alerts came in that may speak of no node: how many in an hour, and one of them."""

    kind = "alert.elsewhere"
    alerts: int = shown(missing=1, omit_stored=True, default=1)


@fact
class ObservationFailedEntry(EntryContent):
    """A channel of a node (or a channel of no node) gave no readings, and why."""

    kind = "observe.failed"
    channel: str
    reason: str


TrendStage = Literal["observe", "record"]
"""`observe`: a warning is kept and judged. `record`: also, it is a fault, and idle tests begin with its node."""
RankStanding = Literal["intent", "verified", "failed"]
WarningOutcome = Literal["right", "wrong", "overtaken", "cannot tell"]
"""`overtaken`: somebody repaired, moved or exchanged the part first. `cannot tell`: it was not measured long enough."""


@fact
class TrendWarnedEntry(EntryContent):
    """A part gets worse among its peers. `warning` is its id, `rule` the rule of TrendRules, in that `revision` of it.

    `place` is the part's place in the node ("" for the node), `serial` its number. `name` in `unit` went from `before`
    to `now`, with the score `z` among `peers`; None for a `limit` or `rate_days` that nobody knows. `rate_days`: days
    to the limit in a straight line. `days`: low, middle and high of the calibrated range, empty where nothing is
    calibrated. `group`: who shares it. `p`: the chance that it is right, as known then. `left_alone`: drawn to tell
    what comes if nobody acts.
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
    days: tuple[float, ...] = ()
    group: str = ""
    p: float | None = None
    reason: str = shown("because", default="")
    left_alone: bool = shown(omit_stored=True, default=False)


@fact
class TrendClosedEntry(EntryContent):
    """What came of a warning: its id, its rule, the outcome and the reason.

    `fault` is the id of the fault that proved it right, `lead_days` how long before that it came. `by_check`: a check
    found that fault, and no job.
    """

    kind = "trend.closed"
    warning: str
    rule: str
    outcome: WarningOutcome
    reason: str = shown("because")
    fault: str = shown(omit_stored=True, default="")
    lead_days: float | None = None
    by_check: bool = shown(omit_stored=True, default=False)


@fact
class TrendDemotedEntry(EntryContent):
    """A rule lost its stage in this `revision` of it, and why: its warnings are only kept from now on."""

    kind = "trend.demoted"
    rule: str
    revision: str
    reason: str = shown("because")


@fact
class NodeRankedEntry(EntryContent):
    """Jobs are to come last to a node, or as before: what its scheduler is told, or shows, and the reason."""

    kind = "trend.ranked"
    is_last: bool = shown("last")
    standing: RankStanding
    reason: str = shown("because")
