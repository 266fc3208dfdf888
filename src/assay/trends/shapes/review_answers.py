"""The shapes of what `assay trends missed` and `assay trends limits` print with `--format json`."""

from __future__ import annotations

from typing_extensions import TypedDict

from assay.model.backtest_report import LimitSide
from assay.trends.limits.limit_profiles import LimitBehaviour
from assay.trends.missed.early_signs import Foresight, SignKind


class EarlySignAnswer(TypedDict):
    """What showed a failure."""

    kind: SignKind
    """What it is: a check that failed, a value beyond its limit, or a warning."""
    name: str
    """The check, or the rule of the warning."""
    at: str
    """When it was first seen: ISO 8601 UTC."""
    what: str
    """The value that crossed the limit, or the reason of the warning; "" if nothing is to be said."""
    excused: bool
    """Whether it decided nothing: a check on trial, or one that a known issue excuses."""


class MissedFailureAnswer(TypedDict):
    """A failure that took a node out of service."""

    node: str
    """The name of the node."""
    subject: str
    """The part that failed; "" for the node itself."""
    fault: str
    """The fault class."""
    seen_at: str
    """When the fault was seen: ISO 8601 UTC."""
    left_at: str
    """When the node left service: ISO 8601 UTC."""
    node_hours: float
    """How many node-hours it cost."""
    foresight: Foresight
    """Whether something showed it before, only then, never by a check; or whether nobody can tell."""
    lead_days: float | None
    """How many days before it the first sign was; null if nothing foresaw it."""
    sign: EarlySignAnswer | None
    """The first sign: before it, else since; null without one."""


class MissingCheckAnswer(TypedDict):
    """A kind of part that failed unseen: a check for it is worth writing."""

    fault: str
    """The fault class."""
    part: str
    """The kind of part."""
    failures: int
    """How often it failed."""
    node_hours: float
    """How many node-hours that cost."""
    checks: list[str]
    """The checks that mean this fault; empty if there is none."""


class TrendsMissedAnswer(TypedDict):
    """The failures of the last days, and whether anything foresaw them."""

    days: int
    """How many days were looked at."""
    counts: dict[Foresight, int]
    """How many failures were foreseen so."""
    node_hours: dict[Foresight, float]
    """How many node-hours these cost."""
    other_absences: int
    """How many times a node left service for something else than a fault of hardware."""
    failures: list[MissedFailureAnswer]
    """The failures, those that cost most first."""
    checks_worth_writing: list[MissingCheckAnswer]
    """The kinds of parts that failed unseen, those that cost most first."""
    too_common_to_be_a_sign: dict[str, float]
    """Checks that fail too often to be a sign, each with the share of parts on which it fails."""


class LimitRecordAnswer(TypedDict):
    """The alarms of a limit, and how they ended."""

    failures: int
    """How many of the measured parts failed."""
    alarms: int
    """How many alarms there were."""
    right: int
    """After how many of them the part failed within 30 days."""
    wrong: int
    """After how many of them nothing followed."""
    unclear: int
    """Of how many of them nobody can tell."""
    foreseen: int
    """How many failures an alarm came before."""
    lead_days: float | None
    """The median of the days between; null without any."""


class SuggestedLimitAnswer(TypedDict):
    """Another value of a limit, and what it would have shown."""

    value: float
    """The value."""
    record: LimitRecordAnswer
    """How its alarms would have ended."""
    chance: float
    """The chance, from 0 to 1, that so many of its alarms are right if failures have nothing to do with them."""
    is_better: bool
    """Whether it is better than the present one, beyond doubt."""


class ReviewedLimitAnswer(TypedDict):
    """A limit, how it behaves, and the value that history suggests."""

    check: str
    """The id of the check."""
    name: str
    """The measurement."""
    unit: str
    """The unit of all values; "" for a count or a ratio."""
    side: LimitSide
    """Whether values must be at least, at most or equal to the limit."""
    value: float
    """The limit."""
    source: str
    """The file and line of its value; "" if the check's code has it."""
    specs: list[str]
    """The specs of the nodes."""
    readings: int
    """How many readings there are."""
    parts: int
    """Of about how many parts."""
    behaviour: LimitBehaviour
    """Whether it always fires, fires in vain, never fires, or works."""
    sampled_parts: int
    """How many parts were looked at closely."""
    sampled_days: int
    """On how many part-days."""
    sampled_days_fired: int
    """On how many of these it fired."""
    noise: float | None
    """How much the values of a part vary; null if that is not known."""
    nearest: float
    """How far the nearest 0.1 % of the days are from the limit."""
    nearest_in_noise: float | None
    """The same in multiples of the noise; null if they do not vary."""
    record: LimitRecordAnswer
    """How its alarms ended."""
    suggestion: SuggestedLimitAnswer | None
    """Another value; null if history gives no reason for one."""


class LimitProposalAnswer(ReviewedLimitAnswer):
    """A limit, how it behaves, and a change of it for a pull request."""

    diff: str
    """The change, as a diff; "" if no other value is better, or it cannot be made."""
    why_no_diff: str
    """Why the change cannot be made; "" if there is none, or it can."""


class TrendsLimitsAnswer(TypedDict):
    """Limits that never fire, always fire or fire in vain, and the values that history suggests."""

    days: int
    """How many days were looked at."""
    limits: list[LimitProposalAnswer]
    """The limits: those that always fire first, then in vain, then never."""
