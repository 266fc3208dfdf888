"""What `assay trends` tells of a moment: findings with what follows, records of rules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from assay.decide.trends.change_warnings import ChangeWarning, SeriesCount
from assay.decide.trends.days import DAY_S, HISTORY_DAYS, HORIZON_DAYS, LOOK_BACK_WEEKS, list_walked_days, list_weeks
from assay.decide.trends.fleet_tables import make_intervals
from assay.decide.trends.measurement_tables import RefusedRows
from assay.decide.trends.shared_groups import name_shared_groups
from assay.decide.trends.warning_answers import PastRecord, PastRuleAnswer, RuleRecord, SharedGroup, TrendsAnswer
from assay.decide.trends.warning_record import (
    RULE,
    close_warnings,
    count_failures,
    judge_record,
    learn_past_factors,
    mark_new,
)
from assay.decide.trends.warnings import AdvisedWarning
from assay.model.errors import AssayError
from assay.model.facts import extend, frozen, to_json
from assay.model.specs.trend_rules import ChangeDetector
from assay.model.text.lists import format_count
from assay.model.timestamps import format_time

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


@frozen
class TrendAnswer:
    """The warnings, the worst first, and how they were found. `record`: how the rule fared in past weeks.

    `false_rate`: the wrong ones of these per 1,000 nodes and day, None where nobody knows. `age_days`: of the
    newest value.
    """

    series: SeriesCount
    threshold: float
    is_learned: bool
    warnings: list[ChangeWarning]
    groups: list[SharedGroup]
    record: PastRecord
    false_rate: float | None
    age_days: float
    settings: ChangeDetector

    @property
    def parts(self) -> int:
        """How many parts get worse; one may do so in several measurements."""
        return len({(warning.score.node, warning.score.subject) for warning in self.warnings})

    def check_compared(self) -> None:
        """Raise AssayError if nothing was compared: that is no all-clear."""
        if self.series.judged:
            return
        few, silent, new = self.series.few_peers, self.series.silent, self.series.new
        reasons = f"{few} have too few peers, {silent} were silent in the last days, {new} are too new"
        age = f"the newest value is {self.age_days:.0f} d old"
        fix = f"{age}: see that values arrive, of 20 like parts, for a month at least"
        raise AssayError(f"no series could be compared, so nobody can tell what gets worse: {reasons}", fix=fix)

    def make_rule(self) -> PastRuleAnswer:
        """Return how the rule would have fared, and what it says now."""
        return extend(
            PastRuleAnswer,
            self.record,
            name=RULE,
            threshold=round(self.threshold, 2),
            threshold_from="history" if self.is_learned else "default",
            alarms_per_1000_node_days=self.settings.alarms_per_1000_node_days,
            false_per_1000_node_days=None if self.false_rate is None else round(self.false_rate, 4),
            series=self.series.judged,
            warnings=len(self.warnings),
            because=self._describe_past(),
        )

    def _describe_past(self) -> str:
        """Return how good such warnings were here, and whether the budget of false alarms is kept."""
        record, budget = self.record, self.settings.alarms_per_1000_node_days
        if self.false_rate is None or not self.is_learned:
            return f"The past is too short to tell how often this is right, and whether {budget:g} false alarms suffice"
        ended = format_count(record.judged, "warning")
        named = f"In {LOOK_BACK_WEEKS} weeks before, {ended} ended, {record.right} right"
        if record.precision_interval:
            low, high = record.precision_interval
            named += f" (precision {record.precision:.2f}, {low:.2f} to {high:.2f})"
        if record.recall_of_all is not None:
            named += f", and {record.recall_of_all:.0%} of the failures were foreseen"
        kept = f": the budget of {budget:g} cannot be kept here"
        kept = kept if self.false_rate > budget else f", within the budget of {budget:g}"
        return f"{named}; {self.false_rate:.2g} false alarms per 1,000 nodes and day{kept}"


def find_trends(
    database: DuckDBPyConnection,
    as_of: datetime,
    settings: ChangeDetector | None = None,
    recognise_counters: bool = False,
) -> TrendAnswer:
    """Return what gets worse by the tables of a database, see `open_tables`. Raises AssayError without any rows.

    `recognise_counters`: by their values, not only by their declared names.
    """
    # numpy costs more to load than most commands take.
    from assay.decide.trends.part_findings import PartSearch, list_failure_days

    chosen = settings or ChangeDetector()
    today = int(as_of.timestamp() // DAY_S)
    first, last = database.execute("SELECT min(day), max(day) FROM history_days").fetchall()[0]
    if first is None or today - last > HISTORY_DAYS:
        absence = f"there are no measurements before {format_time(as_of)}, or none of {HISTORY_DAYS} days"
        raise AssayError(absence, fix="name another file, or --as-of")
    weeks = list_weeks(today, first)
    make_intervals(database)
    failed = list_failure_days(database)
    findings = PartSearch(today, weeks, chosen, recognise_counters, failed).find(database)
    walked = mark_new(findings.walked, findings.beyond)
    began = min(list_walked_days(weeks), default=today)
    closings = close_warnings((warning for warning in walked if warning.day > began), failed, today)
    drawn = {part: days for part, days in failed.items() if part in findings.drawn}
    record = judge_record(closings, count_failures(walked, drawn, findings.beyond, began))
    factors = learn_past_factors(mark_new(findings.past, findings.beyond), failed)
    warnings = [ChangeWarning(score, factors) for score in findings.scores]
    named, groups = name_shared_groups(warnings, findings.members)
    ended = (day for day in list_walked_days(weeks) if day + HORIZON_DAYS < today)
    seen = findings.drawn_nodes * (max(ended, default=began) - began)
    false_rate = 1000 * record.wrong / seen if seen else None
    age_days = max(0.0, as_of.timestamp() / DAY_S - last - 1)
    return TrendAnswer(
        findings.series, findings.threshold, findings.is_learned, named, groups, record, false_rate, age_days, chosen
    )


@frozen
class TrendReport:
    """The answer at a moment. `unread`: damaged files that were left out."""

    at: datetime
    answer: TrendAnswer
    advised: Sequence[AdvisedWarning]
    records: Sequence[RuleRecord]
    unread: Sequence[str] = ()
    refused: RefusedRows = field(default_factory=RefusedRows)

    def make_answer(self) -> TrendsAnswer:
        """Return what is told of it."""
        return TrendsAnswer(
            warnings=[warning.make_answer() for warning in self.advised],
            groups=self.answer.groups,
            parts=self.answer.parts,
            series=self.answer.series.judged,
            newest_age_days=round(self.answer.age_days, 2),
            cannot_tell=self.answer.series.cannot_tell,
            few_peers=self.answer.series.few_peers,
            silent=self.answer.series.silent,
            too_new=self.answer.series.new,
            rules=[self.answer.make_rule()],
            records=[record for record in self.records if record.has_warned],
            refused_rows=self.refused.count,
            refused=self.refused.lines or None,
            unread=[*self.unread] or None,
        )

    def as_page_json(self) -> dict[str, Any]:
        """Return the same with its moment, for pages."""
        return {"at": format_time(self.at), **to_json(self.make_answer())}
