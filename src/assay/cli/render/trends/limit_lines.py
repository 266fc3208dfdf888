"""The review of limits in lines for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from assay.cli.render.trends.missed_lines import shorten_check
from assay.model.backtest_report import describe_record
from assay.model.text_lists import format_count, format_list

if TYPE_CHECKING:
    from assay.controller.tuning.limit_reviews import LimitProposal
    from assay.trends.limits.limit_profiles import LimitBehaviour
    from assay.trends.limits.limit_review import ReviewedLimit

MOST_LINES = 20
SIGNS = {"at_most": "≤", "at_least": "≥", "equals": "="}


def format_limits(found: Sequence[LimitProposal], days: int) -> Iterator[str]:
    """Yield the lines: counts, the limits by what they do, and the better ones with their diffs."""
    titles: dict[LimitBehaviour, str] = {
        "always": "Fire on at least half of the days:",
        "in vain": "Fire, and nothing ever follows:",
        "never": "Never fired, the farthest first:",
    }
    yield f"{format_count(len(found), 'limit')} measured in {days} days"
    for behaviour, title in titles.items():
        some = [one.reviewed for one in found if one.reviewed.behaviour == behaviour]
        if some:
            yield f"{title} {len(some)}"
            yield from (f"  {_format_limit(one)}: {_format_behaviour(one)}" for one in some[:MOST_LINES])
        if len(some) > MOST_LINES:
            yield f"  and {len(some) - MOST_LINES} more (`--format json` has them all)"
    better = [one for one in found if one.reviewed.suggestion and one.reviewed.suggestion.is_better]
    yield from ["Better limits: as far as history tells, none"] if not better else ["Better limits:"]
    for proposal in better:
        yield from _format_proposal(proposal)


def _format_limit(one: ReviewedLimit) -> str:
    limit = one.profile.limit
    bound = f"{limit.name} {SIGNS[limit.side]} {limit.value:g} {limit.unit}".rstrip()
    return f"{bound} of {format_list(limit.specs, 2)} ({shorten_check(limit.check)})"


def _format_behaviour(one: ReviewedLimit) -> str:
    profile = one.profile
    counted = f"{profile.limit.readings} readings of {format_count(profile.limit.parts, 'part')}"
    if one.behaviour == "always":
        return f"{counted}, on {profile.fired_days / profile.days:.0%} of the days"
    if one.behaviour == "in vain":
        return f"{counted}, {profile.record.alarms} alarms, {profile.record.wrong} of them ended"
    if profile.limit.side == "equals" or not profile.days:
        return counted
    far = f"{one.nearest_noises:.0f} × noise" if one.nearest_noises is not None else "the values do not vary"
    return f"{counted}; the nearest 0.1 % stay {one.nearest:.4g} {profile.limit.unit} away ({far})"


def _format_proposal(proposal: LimitProposal) -> Iterator[str]:
    one = proposal.reviewed
    suggestion = one.suggestion
    assert suggestion is not None, "only better limits come here"
    yield f"  {_format_limit(one)} → {suggestion.value:g}"
    yield f"    now: {describe_record(one.profile.record)}"
    yield f"    then: {describe_record(suggestion.record)}"
    yield from [f"    no diff: {proposal.why_no_diff}"] if proposal.why_no_diff else proposal.diff.splitlines()
