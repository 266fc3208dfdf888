"""Which act a warning pays for: by the chance that it is right, the cost of acting, and the cost of a failure. Pure.

An act pays if the chance is above cost of acting / (cost of acting + cost of a failure).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from assay.decide.trends.rule_record import RuleRecord, find_break_even
from assay.model.specs.trend_rules import TrendRules

if TYPE_CHECKING:
    from assay.decide.trends.warning_answers import PayingAct, WarningPayoffAnswer

LEAST_JUDGED = 5
"""With fewer warnings that were right or wrong, nobody knows the chance yet."""


@dataclass(frozen=True, slots=True)
class ActPayoff:
    """An act, what it costs in vain (node-hours), and the chance from which on it pays."""

    act: str
    node_hours: float
    needed: float


@dataclass(frozen=True, slots=True)
class WarningPayoff:
    """The chance `p` that a warning is right (None: not known), the node-hours of a failure, and the best act.

    `pays` is the costliest act that pays, None where none does or nobody knows.
    """

    p: float | None
    failure_hours: float
    pays: ActPayoff | None
    acts: tuple[ActPayoff, ...]

    @property
    def answer(self) -> str:
        """Return what follows, in words."""
        test = self.acts[0]
        if self.p is None:
            return f"{test.act}: the chance is not known yet, and {test.needed:.0%} is enough"
        if self.pays is None:
            return f"only watch it: {self.p:.0%} is less than the {test.needed:.0%} that a test needs"
        return f"{self.pays.act}: {self.p:.0%}, and {self.pays.needed:.0%} is enough"

    def as_json(self) -> WarningPayoffAnswer:
        """Return plain JSON data."""
        acts: list[PayingAct] = [
            {"act": one.act, "node_hours": one.node_hours, "needed": round(one.needed, 4)} for one in self.acts
        ]
        return {
            "p": self.p,
            "failure_node_hours": self.failure_hours,
            "acts": acts,
            "pays": self.pays.act if self.pays else None,
            "answer": self.answer,
        }


def find_chance(record: RuleRecord) -> float | None:
    """Return the chance that a warning of a rule is right, drawn to one half; None while too few have ended."""
    if record.judged < LEAST_JUDGED:
        return None
    return (record.counts.get("right", 0) + 1) / (record.judged + 2)


def weigh_acts(rules: TrendRules, p: float | None) -> WarningPayoff:
    """Return what pays at a chance `p`."""
    costs = (("test it next, while it is idle", rules.costs.test), ("drain it after its job", rules.costs.drain))
    acts = tuple(ActPayoff(act, cost.node_hours, find_break_even(rules, cost.node_hours)) for act, cost in costs)
    paying = [act for act in acts if p is not None and p >= act.needed]
    return WarningPayoff(p, rules.costs.failure.node_hours, paying[-1] if paying else None, acts)
