"""Renders the page of a check: its outcomes over the fleet, and each cause why it does not pass."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from assay.model.outcome import VERDICTS
from assay.pages.rendering import render_page
from assay.results.distribution.peer_distribution import PeerDistribution
from assay.results.failure_causes import FailureCause, find_cause
from assay.results.report import overview_phrases
from assay.results.report.latest_outcomes_database import FAILING, ON_TRIAL_PASSING, PASSING, find_holder
from assay.results.report.latest_outcomes_reader import AbnormalOutcome, HolderStatus, LatestOutcomes
from assay.results.report.pages.distribution_drawing import COURSE_SIZE, HISTOGRAM_SIZE, draw_distribution
from assay.results.report.pages.holder_pages import STATUS_TITLES
from assay.results.report.pages.page_folder import STYLESHEET
from assay.results.report.pages.page_links import PageLinks

MAX_CAUSES_SHOWN = 40
STATUS_WORDS = {PASSING: "passed", ON_TRIAL_PASSING: "passed on trial"} | {
    status: title.lower() for status, title in STATUS_TITLES.items()
}


@dataclass
class CauseOnHolders:
    """Outcomes of a check with one status and cause: one reason, and where they are."""

    status: int
    reason: str
    holders: dict[str, None] = field(default_factory=dict)


@dataclass
class CheckStatus:
    """A check over the fleet: its outcomes by status, and why it does not pass."""

    name: str
    fault: str
    by_status: Counter[int]
    by_cause: dict[tuple[int, FailureCause], CauseOnHolders] = field(default_factory=dict)

    def add(self, outcome: AbnormalOutcome, node: str) -> None:
        """Count an outcome on a node ("" for none)."""
        verdict = VERDICTS[outcome.status] if outcome.status < len(VERDICTS) else VERDICTS[FAILING]
        key = outcome.status, find_cause(outcome.check, verdict, outcome.reason, node)
        if key not in self.by_cause:
            self.by_cause[key] = CauseOnHolders(outcome.status, outcome.reason)
        self.by_cause[key].holders[find_holder(outcome.subject, node)] = None


class CheckStatuses:
    """All checks of the latest outcomes. Outcomes that do not pass are added holder by holder."""

    def __init__(self, latest: LatestOutcomes) -> None:
        execute = latest.connection.execute
        self._checks = {name: CheckStatus(name, fault, Counter()) for name, fault in execute(_CHECKS)}
        for name, status, count in execute(_COUNTS):
            self._checks[name].by_status[status] += count

    def add(self, holder: HolderStatus) -> None:
        """Add the outcomes of a node, rack or fabric."""
        node = "" if "/" in holder.name else holder.name
        for outcome in holder.abnormal:
            self._checks[outcome.check].add(outcome, node)

    def __iter__(self) -> Iterator[CheckStatus]:
        return iter(self._checks.values())


_CHECKS = "SELECT name, fault FROM check_"
_COUNTS = """SELECT c.name, n.stands, n.count FROM check_ c JOIN (
  SELECT check_, stands, count(*) AS count FROM state GROUP BY check_, stands) n ON n.check_ = c.id"""


def render_check(check: CheckStatus, links: PageLinks, distributions: Sequence[PeerDistribution] = ()) -> str:
    """Return the HTML of the page of a check, with the distributions of its measurements."""
    return render_page(
        __package__,
        "check.html.j2",
        in_lab=links.in_lab,
        stylesheet=STYLESHEET,
        check=check,
        counts=[(word, check.by_status[status]) for status, word in STATUS_WORDS.items() if check.by_status[status]],
        causes=_sort_causes(check.by_cause.values()),
        titles=STATUS_TITLES,
        distributions=[draw_distribution(each) for each in distributions],
        sizes=(HISTOGRAM_SIZE, COURSE_SIZE),
        most=MAX_CAUSES_SHOWN,
        words=overview_phrases,
        link=links,
    )


def _sort_causes(causes: Iterable[CauseOnHolders]) -> list[CauseOnHolders]:
    """Return failures first, then what could not be judged; the widest first."""
    order = list(STATUS_TITLES)
    return sorted(causes, key=lambda cause: (order.index(cause.status), -len(cause.holders)))
