"""The shapes of distributions as JSON."""

from __future__ import annotations

from typing_extensions import TypedDict


class NodeKindAnswer(TypedDict):
    """What like nodes share."""

    sku: str
    """The node spec."""
    firmware: str
    """The firmware bundle."""
    driver: str
    """The driver that the spec declares; "" if none."""


class LimitAnswer(TypedDict):
    """The limit of a measurement."""

    at_least: float | None
    """The lower limit; null for none."""
    at_most: float | None
    """The upper limit; null for none."""
    source: str
    """The file and line of the limit; "" for none."""


class OutlierAnswer(TypedDict):
    """A part that is unlike its peers. Values are in the unit of the measurement."""

    subject: str
    """The part."""
    node: str
    """Its node."""
    at: str
    """When it was measured last: ISO 8601."""
    value: float
    """The newest value."""
    limit: LimitAnswer
    """The limit of the value."""
    before: float | None
    """The mean before the last change of specs; null if the part was not measured then."""
    after: float | None
    """The mean after the last change of specs; null if the part was not measured since."""
    score: float
    """How many deviations it is away from the median of its peers: the modified z-score of Iglewicz and Hoaglin."""
    reason: str
    """The same in words."""


class RunMedianAnswer(TypedDict):
    """The median over like nodes in a run."""

    run: str
    """The id of the run."""
    at: str
    """When it was measured: ISO 8601."""
    value: float
    """The median, in the unit of the measurement."""


class SpecChangeAnswer(TypedDict):
    """What the last change of specs did to the measurement."""

    was: str
    """The specs before the change."""
    now: str
    """The specs after the change."""
    before: float
    """The median before the change, of the parts that were measured before and after it."""
    after: float
    """Their median after the change."""
    parts: int
    """How many parts these are."""


class DistributionAnswer(TypedDict):
    """A measurement over the parts of like nodes."""

    check: str
    """The id of the check that measures it."""
    name: str
    """The name of the measurement."""
    unit: str
    """The unit of all values; "" for a count or a ratio."""
    kind: NodeKindAnswer
    """What the nodes share."""
    parts: int
    """How many parts were measured."""
    nodes: int
    """On how many nodes they are."""
    levels: list[float]
    """Minimum, three quartiles and maximum of the newest values."""
    bars: list[int]
    """How many parts have a value in each of 24 equal intervals from the minimum to the maximum."""
    limit: LimitAnswer
    """The limit of the newest value."""
    outliers: list[OutlierAnswer]
    """The parts that are unlike their peers, the farthest first."""
    course: list[RunMedianAnswer]
    """The medians of the last runs, oldest first."""
    change: SpecChangeAnswer | None
    """What the last change of specs did; null if there was none."""
