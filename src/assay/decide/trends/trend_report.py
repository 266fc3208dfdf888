"""What `assay trends` tells: findings with what follows, pictures, records of rules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from assay.decide.trends.rule_record import RuleRecord
from assay.decide.trends.trend_answer import TrendAnswer
from assay.decide.trends.warning_advice import AdvisedWarning
from assay.decide.trends.warning_courses import WarningCourse
from assay.model.timestamps import format_time

if TYPE_CHECKING:
    from assay.decide.trends.warning_answers import TrendsAnswer


@dataclass(frozen=True, slots=True)
class TrendReport:
    """The answer at a moment. `courses` are those of the first warnings. `unread`: damaged files that were left out."""

    at: datetime
    answer: TrendAnswer
    advised: Sequence[AdvisedWarning]
    records: Sequence[RuleRecord]
    courses: Sequence[WarningCourse] = ()
    unread: Sequence[str] = ()

    @property
    def judged_records(self) -> list[RuleRecord]:
        """Return the records of the rules that have warned."""
        return [one for one in self.records if one.counts]

    def as_json(self) -> TrendsAnswer:
        """Return plain JSON data, as the edge has it."""
        found = self.answer.as_json()
        plain: TrendsAnswer = {
            "warnings": [one.as_json() for one in self.advised],
            "groups": found["groups"],
            "cannot_tell": found["cannot_tell"],
            "rules": found["rules"],
            "records": [one.as_json() for one in self.judged_records],
        }
        if self.unread:
            plain["unread"] = [*self.unread]
        return plain

    def as_page_json(self) -> dict[str, Any]:
        """Return the same with its moment and the courses, for pages."""
        plain = self.as_json()
        courses, warnings = [one.as_json() for one in self.courses], plain["warnings"]
        drawn = [{**one, "course": course} for one, course in zip(warnings, courses, strict=False)]
        return {"at": format_time(self.at), **plain, "warnings": [*drawn, *warnings[len(courses) :]]}
