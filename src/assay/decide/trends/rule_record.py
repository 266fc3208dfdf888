"""How good a rule has been, whether it has earned its stage, and which act its warnings pay for. Pure.

An act pays if the chance is above cost of acting / (cost of acting + cost of a failure).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from statistics import median, quantiles
from typing import TYPE_CHECKING

from assay.decide.trends.backtest import find_share_interval
from assay.decide.trends.fleet_tables import PartFailure
from assay.decide.trends.warning_answers import PayingAct, RuleRecordAnswer, WarningPayoffAnswer
from assay.decide.trends.warning_record import WarningHistory
from assay.model.entries.faults import TrendStage, WarningOutcome
from assay.model.specs.trend_rules import TrendRule, TrendRules

if TYPE_CHECKING:
    pass


INTERVAL = 0.9
"""The confidence of the interval that is shown of a share."""


@dataclass(frozen=True, slots=True)
class RuleRecord:
    """The record of one revision of a rule. `counts`: its warnings by outcome, "open" among them.

    `leads`: days by which right warnings came before their failure, ascending. `failures`: how many failures since the
    first warning of this revision a right warning could have foreseen. `stage` is the one that holds; `lost_because`
    says why it is not the `declared` one. `act_hours`: node-hours that one act in vain costs.
    """

    rule: str
    fault: str
    revision: str
    declared: TrendStage
    stage: TrendStage
    lost_because: str
    counts: Mapping[str, int]
    leads: tuple[float, ...]
    failures: int
    act_hours: float

    @property
    def judged(self) -> int:
        """How many warnings were right or wrong."""
        return self.counts.get("right", 0) + self.counts.get("wrong", 0)

    @property
    def precision(self) -> float | None:
        """The share of right ones among those that were right or wrong; None where there are none."""
        return self.counts.get("right", 0) / self.judged if self.judged else None

    @property
    def precision_interval(self) -> tuple[float, float] | None:
        """The interval of that share with 90 % confidence (Wilson)."""
        return find_share_interval(self.counts.get("right", 0), self.judged, (1 + INTERVAL) / 2)

    @property
    def recall(self) -> float | None:
        """The share of all failures that a right warning foresaw; None where nothing failed."""
        return min(1.0, self.counts.get("right", 0) / self.failures) if self.failures else None

    @property
    def lead_days(self) -> tuple[float, float] | None:
        """The lead of right warnings: the median, and what nine in ten exceed; None where there are none."""
        if not self.leads:
            return None
        return median(self.leads), quantiles(self.leads, n=10, method="inclusive")[0] if self.leads[1:] else self.leads[
            0
        ]

    @property
    def cost_node_hours(self) -> float:
        """What its wrong warnings cost if each was acted on once by a test."""
        return self.counts.get("wrong", 0) * self.act_hours

    def make_answer(self) -> RuleRecordAnswer:
        """Return what is told of it."""
        return RuleRecordAnswer(
            name=self.rule,
            detector="change",
            fault=self.fault,
            stage=self.stage,
            declared_stage=self.declared,
            lost_because=self.lost_because,
            open=self.counts.get("open", 0),
            right=self.counts.get("right", 0),
            wrong=self.counts.get("wrong", 0),
            overtaken=self.counts.get("overtaken", 0),
            cannot_tell=self.counts.get("cannot tell", 0),
            precision=self.precision,
            precision_interval=self.precision_interval,
            failures=self.failures,
            recall=self.recall,
            lead_days=self.lead_days,
            cost_node_hours=self.cost_node_hours,
        )


OUTCOMES: tuple[WarningOutcome | str, ...] = ("open", "right", "wrong", "overtaken", "cannot tell")


def find_revision(rules: TrendRules, name: str) -> str:
    """Return the name of a rule's present text: with another one, its record begins anew, and so does its stage."""
    facts = [rules.rules[name].model_dump(), rules.change.model_dump()]
    return sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:12]


def make_rule_records(rules: TrendRules, history: WarningHistory, failures: Sequence[PartFailure]) -> list[RuleRecord]:
    """Return the record of each rule, in their order. `failures`: all faults of hardware."""
    return [_make_record(rules, name, rule, history, failures) for name, rule in rules.rules.items()]


def describe_unearned_stage(rules: TrendRules, record: RuleRecord) -> str:
    """Return why a rule has not earned its stage, "" if it has or if too few warnings have ended to tell."""
    earn, needed = rules.earn, find_break_even(rules, rules.costs.test.node_hours)
    if record.stage != "record" or record.judged < earn.closed_at_least:
        return ""
    interval = find_share_interval(record.counts.get("right", 0), record.judged, earn.confidence)
    if interval is None or interval[1] >= needed:
        return ""
    right = f"{record.counts.get('right', 0)} of {record.judged} warnings were right"
    return f"{right}: fewer than the {needed:.0%} with which a test pays for itself"


def find_break_even(rules: TrendRules, act_hours: float) -> float:
    """Return the chance of a failure from which on an act that costs so many node-hours pays for itself."""
    return act_hours / (act_hours + rules.costs.failure.node_hours)


def _make_record(
    rules: TrendRules, name: str, rule: TrendRule, history: WarningHistory, failures: Sequence[PartFailure]
) -> RuleRecord:
    revision = find_revision(rules, name)
    own = [
        warning for warning in history.warnings if (warning.content.rule, warning.content.revision) == (name, revision)
    ]
    counts = Counter(warning.closed.outcome if warning.closed else "open" for warning in own)
    leads = sorted(
        warning.closed.lead_days for warning in own if warning.closed and warning.closed.lead_days is not None
    )
    lost = history.demotions.get((name, revision), "") if rule.stage == "record" else ""
    stage: TrendStage = "observe" if lost else rule.stage
    since = min((warning.at for warning in own), default=None)
    later = [failure for failure in failures if since is not None and failure.at >= since]
    foreseeable = max(sum(rule.is_proved_by(failure.fault) for failure in later), counts["right"])
    hours = rules.costs.test.node_hours
    return RuleRecord(name, rule.fault, revision, rule.stage, stage, lost, counts, tuple(leads), foreseeable, hours)


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

    def make_answer(self) -> WarningPayoffAnswer:
        """Return what is told of it."""
        acts: list[PayingAct] = [
            PayingAct(act=act.act, node_hours=act.node_hours, needed=round(act.needed, 4)) for act in self.acts
        ]
        return WarningPayoffAnswer(
            p=self.p,
            failure_node_hours=self.failure_hours,
            acts=acts,
            pays=self.pays.act if self.pays else None,
            answer=self.answer,
        )


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
