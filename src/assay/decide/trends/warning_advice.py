"""What follows from each finding: its rule, the chance that it is right, and which act pays. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from assay.decide.trends.change_warnings import ChangeWarning
from assay.decide.trends.payoff import WarningPayoff, find_chance, weigh_acts
from assay.decide.trends.rule_record import RuleRecord
from assay.model.specs.trend_rules import TrendRules

if TYPE_CHECKING:
    from assay.decide.trends.warning_answers import TrendWarningAnswer


@dataclass(frozen=True, slots=True)
class AdvisedWarning:
    """A finding with its rule ("" if no rule covers it), the stage that holds, and what pays."""

    warning: ChangeWarning
    rule: str
    stage: str
    payoff: WarningPayoff

    def as_json(self) -> TrendWarningAnswer:
        """Return plain JSON data, as the edge has it."""
        forecast = self.warning.forecast
        return {
            **self.warning.as_json(),
            "rule": self.rule,
            "stage": self.stage,
            "rate_days": forecast.line if forecast else None,
            **self.payoff.as_json(),
        }


def advise(rules: TrendRules, records: Iterable[RuleRecord], warnings: Iterable[ChangeWarning]) -> list[AdvisedWarning]:
    """Return what follows from each of the warnings, in their order."""
    known = {one.rule: one for one in records}
    return [_advise_one(rules, known, one) for one in warnings]


def _advise_one(rules: TrendRules, known: Mapping[str, RuleRecord], warning: ChangeWarning) -> AdvisedWarning:
    name = rules.find_rule(warning.score.name)
    record = known.get(name)
    p = find_chance(record) if record else None
    return AdvisedWarning(warning, name, record.stage if record else "observe", weigh_acts(rules, p))
