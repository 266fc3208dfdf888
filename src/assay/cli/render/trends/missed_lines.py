"""The report of failures that nothing foresaw, in lines for people."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING

from assay.model.text_lists import format_count, format_list

if TYPE_CHECKING:
    from assay.trends.missed.early_signs import EarlySign
    from assay.trends.missed.missed_failures import JudgedFailure, MissedReport, MissingCheck

MOST_LINES = 40


def format_missed(report: MissedReport) -> Iterator[str]:
    """Yield the lines: the counts, the failures by node-hours, and the checks worth writing."""
    from assay.trends.missed.missed_failures import FORESIGHTS, sum_hours

    counted = format_count(len(report.judged), "failure")
    yield f"{counted} of hardware took nodes out of service in {report.days} days; other absences: {report.others}"
    for foresight, words in FORESIGHTS.items():
        if some := report.select(foresight):
            yield f"  {words}: {len(some)}, {sum_hours(some):.0f} node-hours{_format_median(report, foresight)}"
    yield from map(_format_failure, report.judged[:MOST_LINES])
    if len(report.judged) > MOST_LINES:
        yield f"and {len(report.judged) - MOST_LINES} more, each with fewer node-hours (`--format json` has them all)"
    if report.missing_checks:
        yield "Checks worth writing:"
        yield from map(_format_missing, report.missing_checks[:MOST_LINES])
    if report.common:
        shares = (f"{shorten_check(check)} ({share:.0%})" for check, share in sorted(report.common.items()))
        yield f"No sign, as they fail so often elsewhere: {format_list(shares)}"


def shorten_check(check: str) -> str:
    """Return the function's name of a check."""
    return check.rpartition("::")[2]


def _format_median(report: MissedReport, foresight: str) -> str:
    lead = report.median_lead
    return f", lead {_format_span(lead)} (median)" if foresight == "before" and lead else ""


def _format_failure(one: JudgedFailure) -> str:
    from assay.trends.missed.missed_failures import FORESIGHTS

    failure, said = one.failure, FORESIGHTS[one.foresight]
    if one.foresight == "cannot tell":
        said = "cannot tell: no check judged the node before"
    elif one.sign:
        lead = f"seen {_format_span(one.lead)} before" if one.lead else said
        said = f"{lead}, {_format_sign(one.sign)}"
    part = f"{failure.node} {failure.place}".rstrip()
    return f"{part}  {failure.fault} {failure.seen_at:%Y-%m-%d}, {failure.node_hours:.0f} node-hours: {said}"


def _format_sign(sign: EarlySign) -> str:
    what = f"{sign.what}, " if sign.what else ""
    return f"by {what}{shorten_check(sign.name)}{' (decided nothing)' if sign.excused else ''}"


def _format_missing(one: MissingCheck) -> str:
    named = format_list(map(shorten_check, one.checks), 3)
    meant = f"{named} saw nothing" if one.checks else "no check means this fault"
    cost = f"{format_count(one.failures, 'failure')}, {one.node_hours:.0f} node-hours"
    return f"  {one.fault} of {one.part}: {cost}; {meant}"


def _format_span(span: timedelta | None) -> str:
    days = (span or timedelta()) / timedelta(days=1)
    return f"{days:.1f} d" if days >= 1 else f"{days * 24:.0f} h"
