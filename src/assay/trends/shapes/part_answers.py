"""The shapes of what `assay trends parts`, `soak` and `burn-in` print with `--format json`."""

from __future__ import annotations

from typing_extensions import TypedDict


class GroupSurvivalAnswer(TypedDict):
    """How long the parts of a group last."""

    name: str
    """The name of the group."""
    parts: int
    """How many parts it has."""
    failures: int
    """How many of them failed."""
    part_days: float
    """How many days they were in use, all together."""
    shown_until_days: float
    """Until which age, in days, the curve is shown."""
    weibull_shape: list[float] | None
    """The shape of the Weibull distribution, and its 95 % band. Below 1, failures become rarer with age.

    Null below 20 failures.
    """
    curve: list[list[float]]
    """Every step of the curve (Kaplan-Meier): the age in days, the share that still works, and its 95 % band."""


class TraitComparisonAnswer(TypedDict):
    """The groups of one trait."""

    by: str
    """The trait, such as delivery or firmware."""
    log_rank_p: float | None
    """The chance of such differences between alike groups, from 0 to 1; null if nothing can be compared."""
    left_out: int
    """How many groups have too few parts, or are beyond the most that are compared."""
    groups: list[GroupSurvivalAnswer]
    """The largest groups, by name."""


class KindSurvivalAnswer(TypedDict):
    """All parts of a kind."""

    kind: str
    """The kind."""
    all: GroupSurvivalAnswer
    """All parts of it."""
    comparisons: list[TraitComparisonAnswer]
    """The same parts by trait, where they are not all of one group."""


class TrendsPartsAnswer(TypedDict):
    """How long parts last, by kind and trait."""

    as_of: str
    """The moment: ISO 8601 with the offset of UTC. Nothing after it was read."""
    kinds: list[KindSurvivalAnswer]
    """The kinds of parts, those with the most failures first."""


class HazardBandAnswer(TypedDict):
    """How often nodes fail between two days after a return."""

    from_days: float
    """From so many days after the return."""
    to_days: float | None
    """Until so many days after it; null for no end."""
    node_days: float
    """How many node-days were seen."""
    failures: int
    """How many failures were seen."""
    times_usual: float | None
    """How many times that is what is usual; null if nobody knows."""


class SoakStepAnswer(TypedDict):
    """What a soak catches that goes on for some hours more."""

    from_hours: float
    """From so many hours."""
    to_hours: float
    """To so many hours."""
    caught: int
    """How many failures it catches."""
    node_hours: float
    """How many node-hours that costs."""


class SoakAnswer(TypedDict):
    """Returns after one class of repair."""

    repair: str
    """The class of repair."""
    returns: int
    """How many nodes came back."""
    known: int
    """Of how many it is known whether they held for two weeks."""
    failed_within_14_days: int
    """How many failed again within two weeks."""
    share: list[float] | None
    """The share that did not hold for two weeks, and both ends of its 90 % interval; null if nothing is known."""
    steps: list[SoakStepAnswer]
    """What each longer soak would catch."""


class TrendsSoakAnswer(TypedDict):
    """How often nodes fail after they came back from repair, and what a soak would catch."""

    usual_per_node_day: float
    """How many failures are usual for a node and day, in the whole fleet and time."""
    after_return: list[HazardBandAnswer]
    """How often nodes fail after a return, by days since."""
    repairs: list[SoakAnswer]
    """What a soak catches and costs: after all repairs, then after each class, the most frequent first."""


class QuarterAnswer(TypedDict):
    """A quarter of the parts, by one measure."""

    parts: int
    """How many parts it has."""
    failures: int
    """How many of them failed."""
    alive: float
    """The share that still works after 90 days, from 0 to 1."""
    band: list[float]
    """Both ends of the band in which that share is with 95 % confidence."""


class MeasureAnswer(TypedDict):
    """Whether one measure of the burn-in foretells early failures."""

    measure: str
    """The measure."""
    quarters: list[QuarterAnswer]
    """The parts by quarter, the best first."""
    p: float | None
    """The chance of such a difference between alike quarters, times the number of measures; null if nothing failed."""
    foretells: bool
    """Whether the worst quarter fails sooner, beyond doubt."""


class TestedFirstAnswer(TypedDict):
    """A part that is tested first, because its burn-in was odd in its delivery."""

    node: str
    """Its node."""
    subject: str
    """The part."""
    serial: str
    """Its serial number; "" if it is not known."""
    delivery: str
    """Its delivery."""
    ranks: dict[str, float]
    """Its rank in its delivery by each measure, from 0 (best) to 1 (worst)."""


class TrendsBurnInAnswer(TypedDict):
    """Whether an odd burn-in foretells early failures, and the parts to test first."""

    parts: int
    """How many parts were accepted by a burn-in."""
    deliveries: int
    """Of how many deliveries."""
    failures: int
    """How many of them failed."""
    verdict: str
    """What an odd burn-in means by now, in a sentence."""
    measures: list[MeasureAnswer]
    """The measures."""
    tested_first: list[TestedFirstAnswer]
    """The parts to test first, the oddest first."""
