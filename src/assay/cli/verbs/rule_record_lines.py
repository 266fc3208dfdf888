"""The records of trend rules in lines for people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from assay.decide.trends.rule_record import RuleRecord


def format_records(records: Iterable[RuleRecord]) -> Iterator[str]:
    """Yield two lines for each rule: its warnings by what came of them, then how good that makes it."""
    for one in records:
        counts = [f"{one.counts[outcome]} {outcome}" for outcome in one.counts]
        yield f"{one.rule:<9}{one.stage:<9}{', '.join(counts) or 'no warning yet'}"
        if one.lost_because:
            yield f"{'':9}only observes: {one.lost_because}"
        if one.judged:
            yield f"{'':9}{'; '.join(_describe(one))}"


def _describe(one: RuleRecord) -> Iterator[str]:
    if (share := one.precision) is not None and (interval := one.precision_interval):
        yield f"right {share:.2f} ({interval[0]:.2f} to {interval[1]:.2f})"
    yield f"foresaw {one.counts.get('right', 0)} of {one.failures} failures"
    if lead := one.lead_days:
        yield f"{lead[0]:.0f} d before (nine in ten: {lead[1]:.0f} d)"
    yield f"in vain {one.cost_node_hours:.1f} node-hours, if each was tested once"
