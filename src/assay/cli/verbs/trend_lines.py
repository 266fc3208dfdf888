"""The answer of `assay trends` in lines for people."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from assay.decide.trends.trend_answer import TrendAnswer
    from assay.decide.trends.warning_advice import AdvisedWarning


def format_trends(answer: TrendAnswer, advised: Sequence[AdvisedWarning]) -> Iterator[str]:
    """Yield the lines for people: one for each group, then one for each part; what follows stands below."""
    found = answer.findings
    known = f"{found.series.judged} series compared; cannot tell: {found.series.cannot_tell} with fewer than 20 peers"
    if not advised:
        yield f"Nothing gets worse: {known}"
        return
    yield f"Getting worse: {len(advised)} parts; {known}"
    groups: dict[str, list[AdvisedWarning]] = defaultdict(list)
    for one in advised:
        groups[one.warning.group].append(one)
    for group, some in sorted(groups.items(), reverse=True):
        if group:
            yield f"{group}: {some[0].warning.score.name}. Look there first"
        for one in some:
            yield _format_part(one, "  " if group else "")
            if not group:
                yield f"  {_format_advice(one)}"
        if group:
            yield f"  {_format_advice(some[0])}"
    told = "of the fleet's own history" if found.is_learned else "by default, as the history is short"
    yield f"A part is named above z {found.threshold:.1f}, {told}"


def _format_part(one: AdvisedWarning, indent: str) -> str:
    score = one.warning.score
    part = f"{score.node} {score.subject}".rstrip()
    return f"{indent}{part}  {one.warning.because} (z {score.worse:.1f})"


def _format_advice(one: AdvisedWarning) -> str:
    test, drain = one.payoff.acts
    costs = f"in vain a test costs {test.node_hours:g} node-hours and a drain {drain.node_hours:g}"
    return f"{one.rule}: {one.payoff.answer}; {costs}, a failure {one.payoff.failure_hours:g}"
