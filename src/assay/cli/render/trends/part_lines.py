"""Probation, soak, positions and survival of parts, in lines for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from assay.model.text_lists import format_count

if TYPE_CHECKING:
    from assay.trends.parts.acceptance_ranks import AcceptanceReport
    from assay.trends.parts.part_risks import PartRisks, ReturnHistory
    from assay.trends.parts.part_survival import GroupSurvival, KindSurvival
    from assay.trends.parts.service_returns import HazardBand
    from assay.trends.parts.soak_costs import SoakCosts
    from assay.trends.parts.survival_curves import SurvivalPoint

MOST_LINES = 20
MOST_POSITIONS = 5
LEAST_RETURNS = 20
YEAR_DAYS = 365.25


def format_risks(risks: PartRisks) -> Iterator[str]:
    """Yield the nodes on probation, in the order of their tests, and the positions that fail more often."""
    if risks.probation:
        yield f"On probation after a repair: {format_count(len(risks.probation), 'node')}"
    for one in risks.probation[:MOST_LINES]:
        yield f"{f'{one.returned.node} {one.returned.subject}'.rstrip()}  {one.because}"
    if len(risks.probation) > MOST_LINES:
        yield f"and {len(risks.probation) - MOST_LINES} more (`--format json` has them all)"
    if risks.positions:
        yield "Fails more often here; for people who plan, and the order of idle tests:"
        yield from (f"  {one.because}" for one in risks.positions[:MOST_POSITIONS])


def format_soaks(history: ReturnHistory, soaks: Sequence[SoakCosts]) -> Iterator[str]:
    """Yield the hazard after returns, then what each hour of soak catches and costs, by class of repair."""
    if not soaks:
        yield "No node has come back from a repair yet"
        return
    yield f"Usual: {1000 * history.hazard.usual:.2f} failures per 1,000 nodes and day. After a return:"
    for band in history.hazard.bands:
        if band.days:
            seen = f"{band.failures} failures in {band.days:.0f} node-days"
            yield f"  {_format_span(band):>12}  {band.times or 0:6.1f} × usual  {seen}"
    shown = [one for one in soaks if one.returns >= LEAST_RETURNS] or list(soaks[:1])
    for one in shown:
        yield from _format_soak(one)
    if len(shown) < len(soaks):
        rare = format_count(len(soaks) - len(shown), "class")
        yield f"and {rare} of repairs with fewer than {LEAST_RETURNS} returns (`--format json` has them all)"
    yield "A longer soak catches what would have failed in service, if it loads the node as customers do"


def _format_span(band: HazardBand) -> str:
    return f"{band.low:g}–{band.high:g} d" if band.high < float("inf") else f"> {band.low:g} d"


def _format_soak(one: SoakCosts) -> Iterator[str]:
    share = one.share
    held = f"; {share[0]:.0%} ({share[1]:.0%}–{share[2]:.0%}) failed within 14 d" if share else ""
    yield f"{one.repair}: {format_count(one.returns, 'return')}{held}"
    for step in one.steps:
        each = f"{step.hours_each:.0f} each" if step.hours_each is not None else "none caught"
        yield f"  {step.low:4g} to {step.high:4g} h  caught {step.caught:4}  {step.node_hours:8.0f} node-hours, {each}"


def format_survival(found: Sequence[KindSurvival]) -> Iterator[str]:
    """Yield a table for each kind of part: the groups of each trait, what still works, and whether they differ."""
    if not found:
        yield "No part is known yet"
    for kind in found:
        everybody = kind.everybody
        years = everybody.curve.days / YEAR_DAYS
        failed = format_count(everybody.curve.failures, "failure")
        yield f"{kind.kind}: {format_count(everybody.parts, 'part')}, {failed} in {years:,.1f} part-years"
        yield f"  {'':24}{'parts':>7}{'failed':>8}" + "".join(f"{f'after {age:g} d':>24}" for age in kind.ages)
        yield _format_group(everybody, kind.ages)
        for comparison in kind.comparisons:
            left = f"; left out: {format_count(comparison.small, 'group')}" if comparison.small else ""
            yield f"  by {comparison.trait}: {comparison.difference}{left}"
            yield from (_format_group(group, kind.ages) for group in comparison.groups)


def _format_group(group: GroupSurvival, ages: Sequence[float]) -> str:
    points = "".join(f"{_format_point(point):>24}" for _, point in group.list_points(ages))
    return f"  {group.name[:24]:24}{group.parts:7}{group.curve.failures:8}{points}  {_describe_shape(group)}".rstrip()


def _format_point(point: SurvivalPoint | None) -> str:
    return f"{point.share:.3f} ({point.low:.3f}–{point.high:.3f})" if point else "not seen"


def format_acceptances(report: AcceptanceReport) -> Iterator[str]:
    """Yield what an odd rank in a burn-in means by now, the quarters of each measure, and the parts to test first."""
    from assay.trends.parts.acceptance_readings import MEASURES

    parts, deliveries = format_count(report.parts, "part"), format_count(report.deliveries, "group")
    failed = format_count(report.failures, "failure")
    yield f"{parts} in {deliveries} of one delivery and kind, {failed} within 90 days of the burn-in"
    for one in report.comparisons:
        p = "nothing failed" if one.p is None else f"p {one.p:.2g}"
        counts = (f"{failures} of {parts}" for failures, parts in zip(one.failures, one.parts, strict=True))
        yield f"  {MEASURES[one.measure]:48} failed, best to worst quarter: {', '.join(counts)}; {p}"
    yield report.verdict
    if report.tested_first:
        yield "Tested first, as accepted within 90 days and odd in their delivery:"
    for part in report.tested_first[:MOST_LINES]:
        odd = ", ".join(MEASURES[name] for name in part.odd)
        yield f"  {part.acceptance.node} {part.acceptance.subject}  {odd}"


def _describe_shape(group: GroupSurvival) -> str:
    shape = group.shape
    return f"Weibull {shape.shape:.2f} ({shape.low:.2f}–{shape.high:.2f}): {shape.describe()}" if shape else ""
