"""The shapes of what `assay history` prints with `--format json`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from assay.model.facts import fact

if TYPE_CHECKING:
    from assay.ledger.history.flaky import FlakyCheck
    from assay.ledger.history.queries import VerdictTurn


@fact
class HistoryEntry:
    """An entry of the ledger about a node."""

    seq: int
    """Its number in the ledger."""
    at: str
    """When it was written: ISO 8601 with the offset of UTC."""
    kind: str
    """The kind of entry, such as fault, decision, transition or effect.verified."""
    text: str
    """What it says, for people."""
    body: dict[str, Any]
    """The fields of an entry of this kind."""


@fact
class ArchivedEntries:
    """Entries of the node that were moved into an archive."""

    file: str
    """The archive."""
    entries: int
    """How many entries of the node it holds."""
    until: str
    """The time of the last of them: ISO 8601 UTC."""


@fact
class NodeHistoryAnswer:
    """Everything recorded about a node, oldest first."""

    node: str
    """The name of the node."""
    pool: str
    """The pool that it is in."""
    state: str
    """The state that it is in."""
    entries: list[HistoryEntry]
    """The entries; with --moves, only transitions and people's orders."""
    archived: list[ArchivedEntries]
    """Older entries, which archives hold."""


@fact
class PartEvent:
    """What happened to a part while it was in one place."""

    at: str
    """When: ISO 8601 with the offset of UTC."""
    kind: str
    """The kind of the ledger's entry."""
    text: str
    """What it says, for people."""


@fact
class PlaceOfPart:
    """A place where a part, or a node, was."""

    node: str
    """The node."""
    place: str
    """The place in the node; "" for the node itself."""
    kind: str
    """The kind of the part; node for the node itself."""
    since: str
    """When it was first seen there: ISO 8601 with the offset of UTC."""
    until: str
    """When something else was seen there; "" if it is still there."""
    happened: list[PartEvent]
    """What happened there meanwhile."""


@fact
class PartHistoryAnswer:
    """Every place where a part was, and what happened there."""

    serial: str
    """The serial number."""
    stays: list[PlaceOfPart]
    """The places, oldest first."""


@fact
class NodeOutcomesAnswer:
    """When each check of a node failed and recovered, and which checks are flaky."""

    node: str
    """The name of the node."""
    days: int
    """How many days were looked at, besides today."""
    runs: int
    """How many runs judged the node."""
    outcomes: int
    """How many outcomes there are."""
    first: str
    """When the first of these runs began: ISO 8601; "" without one."""
    last: str
    """When the last of these runs began: ISO 8601; "" without one."""
    turns: list[VerdictTurn]
    """The verdicts that differ from the one before, oldest first."""
    flapping: list[FlakyCheck]
    """The flaky checks, those that turned most often first."""


@fact
class UsualMeasurement:
    """The newest value of a measurement, and what is usual for it."""

    check: str
    """The id of the check that measured it."""
    subject: str
    """What was measured: a node or a part of it."""
    node: str
    """The node of the subject."""
    name: str
    """The name of the measurement."""
    unit: str
    """The unit of value, median and noise; "" for a count or a ratio."""
    value: float
    """The newest value."""
    at: str
    """When it was measured: ISO 8601."""
    count: int
    """How many earlier documents `median` and `noise` are from."""
    median: float | None
    """The median of the earlier values; null if there is none."""
    noise: float | None
    """How much the earlier values vary; null if that is not known."""
    times: float | None
    """How far the newest value is from the median, in multiples of the noise; null if that is not known."""


@fact
class NodeMeasurementsAnswer:
    """The newest measurements of a node, each with its usual value."""

    node: str
    """The name of the node."""
    days: int
    """How many days were looked at, besides today."""
    measurements: list[UsualMeasurement]
    """The measurements."""


@fact
class PoolDay:
    """The outcomes of a pool on a day, without checks at stage observe."""

    day: str
    """The day in UTC, as YYYY-MM-DD."""
    pool: str
    """The pool, or rack or fabric, as the first part of a subject."""
    runs: int
    """How many runs there were."""
    passed: int
    """How many checks passed."""
    failed: int
    """How many checks failed and nothing excuses it."""
    known: int
    """How many failures a known issue excuses."""
    errors: int
    """How many checks could not be judged."""
    skipped: int
    """How many checks were skipped."""
    success: float | None
    """Passes as a share of passes, failures and errors, from 0 to 1; null if there are none."""


@fact
class PoolRatesAnswer:
    """The success rate of each pool by day, and the checks that are flakiest."""

    days: int
    """How many days were looked at, besides today."""
    pools: list[PoolDay]
    """The pools by day, oldest first."""
    flapping: list[FlakyCheck]
    """The flaky checks, those that turned most often first."""
