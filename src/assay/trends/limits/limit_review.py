"""Limits that never fire, always fire or fire in vain, and the values that history suggests.

A suggested limit is the value that healthy parts pass as seldom as the budget of alarms allows, and one noise more. It
is learnt from days whose next 30 days are known, and judged on all days of the question.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from math import ceil, exp, floor, lgamma, log, log1p, log10
from typing import TYPE_CHECKING

from assay.model.backtest_report import LimitRecord
from assay.model.errors import AssayError
from assay.results.history.damaged_files import read_without_damaged
from assay.trends.limits.known_limits import PRESENT, list_known_limits
from assay.trends.limits.limit_alarms import count_alarms, declare_bounds
from assay.trends.limits.limit_profiles import LimitBehaviour, LimitProfile, profile_limits
from assay.trends.limits.limit_tables import HORIZON_DAYS, LimitQuestion, open_limit_tables

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from assay.trends.shapes.review_answers import LimitRecordAnswer, ReviewedLimitAnswer, SuggestedLimitAnswer

NEAR_SHARE = 0.001
ALWAYS_SHARE = 0.5
"""A limit that fires on half of all days tells nobody anything."""
LEAST_ENDED = 5
"""So many alarms must have ended before "nothing ever follows" is said."""
FAR_NOISES = 10.0
"""A limit that is nearer may well be right: a part that gets worse passes it soon."""
LEAST_PARTS, LEAST_HEALTHY_DAYS = 20, 500
ALARMS_PER_1000_NODE_DAYS = 0.01
"""What one limit may cost: a tenth of what all trends may."""
MOST_CHANCE = 0.01
"""Of many limits tried, some foresee failures by chance. So the chance is multiplied by their number."""
SUGGESTED = PRESENT + 1


@dataclass(frozen=True, slots=True)
class SuggestedLimit:
    """Another value of a limit, and what it would have shown.

    `chance`: that so many of its alarms are right if the failures have nothing to do with them.
    """

    value: float
    record: LimitRecord
    chance: float
    is_better: bool

    def as_json(self) -> SuggestedLimitAnswer:
        """Return plain JSON data."""
        record = _record_as_json(self.record)
        return {"value": self.value, "record": record, "chance": self.chance, "is_better": self.is_better}


@dataclass(frozen=True, slots=True)
class ReviewedLimit:
    """A limit, how it behaves, and the suggested one; None where history gives no reason for another."""

    profile: LimitProfile
    behaviour: LimitBehaviour
    suggestion: SuggestedLimit | None = None

    @property
    def nearest(self) -> float:
        """The distance of the nearest 0.1 % of the days."""
        return self.profile.find_distance(NEAR_SHARE)

    @property
    def nearest_noises(self) -> float | None:
        """The same in multiples of the noise, None where values do not vary."""
        return self.nearest / self.profile.noise if self.profile.noise else None

    def as_json(self) -> ReviewedLimitAnswer:
        """Return plain JSON data."""
        profile, limit = self.profile, self.profile.limit
        return {
            "check": limit.check,
            "name": limit.name,
            "unit": limit.unit,
            "side": limit.side,
            "value": limit.value,
            "source": limit.source,
            "specs": list(limit.specs),
            "readings": limit.readings,
            "parts": limit.parts,
            "behaviour": self.behaviour,
            "sampled_parts": profile.parts,
            "sampled_days": profile.days,
            "sampled_days_fired": profile.fired_days,
            "noise": profile.noise,
            "nearest": round(self.nearest, 9),
            "nearest_in_noise": None if self.nearest_noises is None else round(self.nearest_noises, 1),
            "record": _record_as_json(profile.record),
            "suggestion": self.suggestion.as_json() if self.suggestion else None,
        }


def _record_as_json(record: LimitRecord) -> LimitRecordAnswer:
    return {
        "failures": record.failures,
        "alarms": record.alarms,
        "right": record.right,
        "wrong": record.wrong,
        "unclear": record.unclear,
        "foreseen": record.foreseen,
        "lead_days": record.lead_days,
    }


def review_limits(question: LimitQuestion, skipped: Callable[[AssayError], None]) -> list[ReviewedLimit]:
    """Return every limit in history: those that always fire first, then in vain, then never, the farthest first.

    `skipped` receives the error of each damaged file, which is left out.
    """
    found = read_without_damaged(lambda left_out: _review(question, left_out), skipped)
    order: Sequence[LimitBehaviour] = ("always", "in vain", "never", "works")
    return sorted(found, key=lambda one: (order.index(one.behaviour), -(one.nearest_noises or 0), one.profile.limit))


def _review(question: LimitQuestion, left_out: Collection[str]) -> list[ReviewedLimit]:
    with open_limit_tables(question, left_out) as database:
        profiles = profile_limits(database, list_known_limits(database), question.today)
        reviewed = [ReviewedLimit(one, find_behaviour(one)) for one in profiles]
        return _try_suggestions(database, question, reviewed)


def find_behaviour(profile: LimitProfile) -> LimitBehaviour:
    """Return how a limit behaves."""
    record = profile.record
    if not record.alarms:
        return "never"
    if profile.days and profile.fired_days >= ALWAYS_SHARE * profile.days:
        return "always"
    return "in vain" if record.wrong >= LEAST_ENDED and not record.right else "works"


def suggest_value(one: ReviewedLimit) -> float | None:
    """Return the value that the budget of alarms asks for; None where there is no reason, or too little is known."""
    profile, noise = one.profile, one.profile.noise
    is_known = profile.parts >= LEAST_PARTS and profile.healthy_days >= LEAST_HEALTHY_DAYS and not profile.varies
    is_far = one.behaviour != "never" or (profile.record.failures > 0 and (one.nearest_noises or 0) > FAR_NOISES)
    if noise is None or not is_known or not is_far or one.behaviour == "works" or profile.limit.side == "equals":
        return None
    node_days = profile.healthy_days * profile.nodes / profile.parts
    allowed = int(ALARMS_PER_1000_NODE_DAYS * node_days / 1000)
    room = profile.find_healthy_distance(allowed) - noise
    is_upper, grain = profile.limit.side == "at_most", 10.0 ** floor(log10(noise))
    value = profile.limit.value - room if is_upper else profile.limit.value + room
    rounded = ceil(value / grain - 1e-9) if is_upper else floor(value / grain + 1e-9)
    is_tighter = room > 0
    return float(f"{rounded * grain:.9g}") if is_tighter == (one.behaviour == "never") else None


def _try_suggestions(
    database: DuckDBPyConnection, question: LimitQuestion, reviewed: Sequence[ReviewedLimit]
) -> list[ReviewedLimit]:
    """Return the limits, those that get a suggestion with what it would have shown."""
    values = {one.profile.limit.key: value for one in reviewed if (value := suggest_value(one)) is not None}
    asked = [one.profile.limit for one in reviewed if one.profile.limit.key in values]
    if not asked:
        return list(reviewed)
    bounds = [one.bound(SUGGESTED, values[one.key]) for one in asked]
    declare_bounds(database, {key for one in asked for key in one.keys}, bounds)
    records = {(row[0], row[1]): record for row, record in count_alarms(database, question.today).items()}
    return [
        ReviewedLimit(one.profile, one.behaviour, judge_suggestion(one, values[key], records[key], len(asked)))
        if (key := one.profile.limit.key) in values
        else one
        for one in reviewed
    ]


def judge_suggestion(one: ReviewedLimit, value: float, record: LimitRecord, tried: int) -> SuggestedLimit:
    """Return the suggestion, one of so many.

    A tighter limit is better if it foresees more than before, and more than chance explains. A looser one is better if
    fewer alarms are wrong, in all and of those that have ended.
    """
    before, profile = one.profile.record, one.profile
    chance = find_chance(record, profile.limit.parts * profile.days / profile.parts)
    if one.behaviour == "never":
        is_better = record.foreseen > before.foreseen and chance * tried <= MOST_CHANCE
    else:
        is_better = record.wrong < before.wrong and record.wrong * before.right <= before.wrong * record.right
    return SuggestedLimit(value, record, chance, is_better)


def find_chance(record: LimitRecord, part_days: float) -> float:
    """Return the chance of so many right alarms among those that ended (binomial), if alarms say nothing.

    `part_days`: the days on which the parts were measured, summed.
    """
    ended, rate = record.right + record.wrong, record.failures * HORIZON_DAYS / part_days
    if not record.right or rate >= 1:
        return 1.0
    if not rate:
        return 0.0
    logs = (
        lgamma(ended + 1)
        - lgamma(hits + 1)
        - lgamma(ended - hits + 1)
        + hits * log(rate)
        + (ended - hits) * log1p(-rate)
        for hits in range(record.right, ended + 1)
    )
    return min(1.0, sum(map(exp, logs)))
