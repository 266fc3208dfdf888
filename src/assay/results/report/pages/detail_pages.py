"""Writes all pages that the overview links to, and reads the distributions that they show."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from assay.model.errors import AssayError
from assay.model.fleet import Fleet
from assay.results.distribution.measured_values import count_values, query_distributions
from assay.results.distribution.node_kinds import list_node_kinds
from assay.results.distribution.peer_distribution import PeerDistribution, PeerOutlier
from assay.results.history.outcome_and_pool_queries import OutcomeHistory
from assay.results.history.parquet_files import history_folder
from assay.results.report.latest_outcomes_reader import LatestOutcomes
from assay.results.report.pages.check_pages import CheckStatuses, render_check
from assay.results.report.pages.holder_pages import render_holder
from assay.results.report.pages.page_folder import write_pages, write_stylesheet
from assay.results.report.pages.page_links import PAGES_FOLDER, PageLinks
from assay.results.report.pages.run_pages import write_run_pages

DISTRIBUTION_DAYS = (30, 7, 2)
MAX_VALUES = 4_000_000
"""Of the days, the most are read that have no more values: so many take five CPU seconds and half a gigabyte."""


class CheckOutlier(NamedTuple):
    """A part that is unlike its peers in a measurement of a check."""

    check: str
    kind: str
    outlier: PeerOutlier


def read_distributions(fleet: Fleet, reports: Path, now: float, unread: list[str]) -> list[PeerDistribution]:
    """Return the distributions of all measurements at the time `now` (Unix seconds).

    What cannot be read is appended to `unread`: the report is useful without.
    """
    moment = datetime.fromtimestamp(now, UTC)
    try:
        with OutcomeHistory(history_folder(reports), moment, lambda error: unread.append(str(error))) as history:
            days = next((days for days in DISTRIBUTION_DAYS if count_values(history, days=days) <= MAX_VALUES), 0)
            if days:
                return query_distributions(history, list_node_kinds(fleet), days=days)
            unread.append("distributions: too many values for one page: see `assay results --distribution NAME`")
    except AssayError as error:
        unread.append(f"distributions: {error}")
    return []


def list_outliers(distributions: Iterable[PeerDistribution]) -> list[CheckOutlier]:
    """Return the parts that are unlike their peers, the farthest first."""
    of_each = ([CheckOutlier(each.check, str(each.kind), one) for one in each.outliers] for each in distributions)
    return sorted(chain.from_iterable(of_each), key=lambda one: (-abs(one.outlier.score), one.outlier.part.subject))


def write_detail_pages(
    fleet: Fleet,
    reports: Path,
    latest: LatestOutcomes,
    runs: Iterable[Path],
    links: PageLinks,
    distributions: Sequence[PeerDistribution],
) -> set[str]:
    """Write the pages of all runs, nodes, racks, fabrics and checks. Return the runs with a page."""
    folder, links = reports / PAGES_FOLDER, replace(links, home="../../")
    write_stylesheet(reports)
    links = replace(links, runs=write_run_pages(folder / "runs", runs, links))
    checks = CheckStatuses(latest)
    of_check: dict[str, list[PeerDistribution]] = defaultdict(list)
    for each in distributions:
        of_check[each.check].append(each)

    def render_holders() -> Iterator[tuple[str, str]]:
        for holder in latest.read_holders():
            checks.add(holder)
            yield holder.name, render_holder(holder, fleet.nodes.get(holder.name), links)

    write_pages(folder / "nodes", render_holders())
    write_pages(folder / "checks", ((one.name, render_check(one, links, of_check[one.name])) for one in checks))
    return set(links.runs)
