"""What `assay trends` tells: findings with what follows, pictures, probation, positions, records of rules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from assay.model.timestamps import format_time
from assay.trends.parts.part_risks import PartRisks
from assay.trends.peers.trend_answer import TrendAnswer
from assay.trends.peers.warning_courses import WarningCourse
from assay.trends.warnings.rule_record import RuleRecord
from assay.trends.warnings.warning_advice import AdvisedWarning


@dataclass(frozen=True, slots=True)
class TrendReport:
    """The answer at a moment. `courses` are those of the first warnings. `unread`: damaged files that were left out."""

    at: datetime
    answer: TrendAnswer
    advised: Sequence[AdvisedWarning]
    risks: PartRisks
    records: Sequence[RuleRecord]
    courses: Sequence[WarningCourse] = ()
    unread: Sequence[str] = ()

    @property
    def judged_records(self) -> list[RuleRecord]:
        """Return the records of the rules that have warned."""
        return [one for one in self.records if one.counts]

    def as_json(self) -> dict[str, Any]:
        """Return plain JSON data, as the edge has it."""
        advised = [one.as_json() for one in self.advised]
        records = [one.as_json() for one in self.judged_records]
        plain = {**self.answer.as_json(), "warnings": advised, **self.risks.as_json(), "records": records}
        return plain | ({"unread": [*self.unread]} if self.unread else {})

    def as_page_json(self) -> dict[str, Any]:
        """Return the same with its moment and the courses, for pages."""
        plain = self.as_json()
        for warning, course in zip(plain["warnings"], self.courses, strict=False):
            warning["course"] = course.as_json()
        return {"at": format_time(self.at), **plain}
