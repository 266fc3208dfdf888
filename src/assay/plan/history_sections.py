"""The sections of a plan that come from the ledger: the backtest, and failures that come to count."""

from __future__ import annotations

from collections.abc import Iterator

from assay.model.text_lists import format_count, format_nodes
from assay.plan.change_plan import ChangePlan


def format_backtest(plan: ChangePlan) -> Iterator[str]:
    """Yield on which nodes the recorded history would have been decided otherwise."""
    test = plan.backtest
    if test is None:
        return
    said = f"{test.days:.3g} days of history: {format_count(test.measurements, 'measurement')} of changed limits"
    lost = f"; of {test.unmapped} nobody can say to which limit they were held" if test.unmapped else ""
    yield f"{said}, {format_count(test.faults, 'fault')}{lost}"
    for acts, title in ((True, "would have acted, and does not now"), (False, "acts now, and would not have")):
        for one in (one for one in test.differences if one.acts == acts):
            still = "; it is still so" if one.still_holds else ""
            times = f", {one.times} times" if one.times > 1 else ""
            yield f"{title}: {one.node}: {one.reason}: {one.old_result} → {one.new_result}{times}{still}"
    if not test.differences:
        yield "on no node would anything have been decided otherwise"


def format_recounts(plan: ChangePlan) -> Iterator[str]:
    """Yield on which nodes a failure comes to count, or counts no longer."""
    for one in plan.recounts:
        where = (
            f"fails on {format_nodes(one.nodes)} by its last outcomes"
            if one.nodes
            else "fails on no node as far as known"
        )
        yield f"{one.what} {one.why}; {where}"
