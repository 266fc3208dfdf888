"""The answer of `assay trends` in lines for people."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from assay.trends.peers.change_warnings import ChangeWarning
    from assay.trends.peers.trend_answer import TrendAnswer


def format_answer(answer: TrendAnswer) -> Iterator[str]:
    """Yield the lines for people: one for each group, then one for each part."""
    found = answer.findings
    known = f"{found.series.judged} series compared; cannot tell: {found.series.cannot_tell} with fewer than 20 peers"
    if not answer.warnings:
        yield f"Nothing gets worse: {known}"
        return
    yield f"Getting worse: {len(answer.warnings)} parts; {known}"
    groups: dict[str, list[ChangeWarning]] = defaultdict(list)
    for warning in answer.warnings:
        groups[warning.group].append(warning)
    for group, warnings in sorted(groups.items(), reverse=True):
        if group:
            yield f"{group}: {warnings[0].score.name}. Look there first"
        for warning in warnings:
            one = warning.score
            part = f"{one.node} {one.subject}".rstrip()
            yield f"{'  ' if group else ''}{part}  {warning.because} (z {one.worse:.1f})"
    told = "of the fleet's own history" if found.is_learned else "by default, as the history is short"
    yield f"A part is named above z {found.threshold:.1f}, {told}"
