"""Renders the page of a node, rack or fabric: every check on it that does not pass, and counts by area."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from markupsafe import Markup

from assay.model.node import Node
from assay.model.outcome import read_part
from assay.model.outcome_labels import format_measurement
from assay.pages.formatting import format_quantity
from assay.pages.rendering import render_page
from assay.results.report import overview_phrases
from assay.results.report.latest_outcomes_database import (
    FAILING,
    KNOWN,
    ON_TRIAL,
    ON_TRIAL_PASSING,
    PASSING,
    SKIPPED,
    UNKNOWN,
)
from assay.results.report.latest_outcomes_reader import AbnormalOutcome, AreaCounts, HolderStatus
from assay.results.report.pages.page_folder import STYLESHEET
from assay.results.report.pages.page_links import PageLinks

MAX_OUTCOMES_SHOWN = 200
STATUS_TITLES = {
    FAILING: "Failed",
    UNKNOWN: "Could not be judged",
    KNOWN: "Known issues",
    ON_TRIAL: "On trial",
    SKIPPED: "Skipped",
}
_COLUMNS = ((PASSING, ON_TRIAL_PASSING), (FAILING,), (UNKNOWN,), (KNOWN, ON_TRIAL, SKIPPED))


def render_holder(holder: HolderStatus, node: Node | None, links: PageLinks) -> str:
    """Return the HTML of the page of a holder. `node` is its entry in the inventory, None for racks and fabrics."""
    groups = [(title, _select(holder.abnormal, status)) for status, title in STATUS_TITLES.items()]
    return render_page(
        __package__,
        "holder.html.j2",
        in_lab=links.in_lab,
        stylesheet=STYLESHEET,
        holder=holder,
        node=node,
        link=links,
        words=overview_phrases,
        read_part=read_part,
        verdict=_describe_verdict(holder),
        ill=holder.count(FAILING, UNKNOWN),
        groups=[(title, outcomes) for title, outcomes in groups if outcomes],
        most=MAX_OUTCOMES_SHOWN,
        areas_table=_render_areas(holder.shape.areas),
        format_measurement=format_measurement,
    )


def _select(outcomes: Iterable[AbnormalOutcome], status: int) -> list[AbnormalOutcome]:
    return [outcome for outcome in outcomes if outcome.status == status]


def _describe_verdict(holder: HolderStatus) -> str:
    parts = [f"{holder.count(FAILING):,} failed"] if holder.count(FAILING) else []
    parts += [f"{holder.count(UNKNOWN):,} could not be judged"] if holder.count(UNKNOWN) else []
    parts += [f"{holder.stale:,} passed on evidence older than the policy allows"] if holder.stale else []
    passed = holder.count(PASSING, ON_TRIAL_PASSING)
    checked = format_quantity(holder.count(), "check")
    if not parts:
        return f"{passed:,} of {checked} passed" if passed else f"nothing judged: {checked} skipped or excused"
    return f"{' and '.join(parts)}, of {checked}"


@lru_cache(maxsize=1024)
def _render_areas(areas: tuple[AreaCounts, ...]) -> Markup:
    """Return the table of areas as HTML: it is the same on most nodes, and most of a page."""
    rows = [
        (area, [sum(count for status, count in counts if status in column) for column in _COLUMNS])
        for area, counts in areas
    ]
    return Markup(render_page(__package__, "areas.html.j2", areas=rows))  # noqa: S704 — the template escapes
