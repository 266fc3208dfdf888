"""How good a rule has been, whether it has earned its stage, and which act its warnings pay for. Pure.

An act pays if the chance is above cost of acting / (cost of acting + cost of a failure).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from hashlib import sha256

from assay.decide.trends.backtest import find_share_interval
from assay.decide.trends.fleet_tables import PartFailure
from assay.decide.trends.warning_answers import PayingAct, RuleRecord, WarningPayoff
from assay.decide.trends.warning_record import WarningHistory, find_usual_lead
from assay.model.entries.faults import TrendStage
from assay.model.specs.trend_rules import TrendRule, TrendRules


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
    interval = find_share_interval(record.right, record.judged, earn.confidence)
    if interval is None or interval[1] >= needed:
        return ""
    right = f"{record.right} of {record.judged} warnings were right"
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
    right, judged = counts["right"], counts["right"] + counts["wrong"]
    return RuleRecord(
        name=name,
        revision=revision,
        fault=rule.fault,
        stage=stage,
        declared_stage=rule.stage,
        lost_because=lost,
        open=counts["open"],
        right=right,
        wrong=counts["wrong"],
        overtaken=counts["overtaken"],
        cannot_tell=counts["cannot tell"],
        precision=right / judged if judged else None,
        precision_interval=find_share_interval(right, judged),
        failures=foreseeable,
        recall=min(1.0, right / foreseeable) if foreseeable else None,
        lead_days=find_usual_lead(leads),
        cost_node_hours=counts["wrong"] * rules.costs.test.node_hours,
    )


LEAST_JUDGED = 5
"""With fewer warnings that were right or wrong, nobody knows the chance yet."""


def find_chance(record: RuleRecord) -> float | None:
    """Return the chance that a warning of a rule is right, drawn to one half; None while too few have ended."""
    if record.judged < LEAST_JUDGED:
        return None
    return (record.right + 1) / (record.judged + 2)


def weigh_acts(rules: TrendRules, p: float | None) -> WarningPayoff:
    """Return what pays at a chance `p` (None: not known): the costliest act that does."""
    costs = (("test it next, while it is idle", rules.costs.test), ("drain it after its job", rules.costs.drain))
    acts = tuple(
        PayingAct(act, cost.node_hours, round(find_break_even(rules, cost.node_hours), 4)) for act, cost in costs
    )
    paying = [act for act in acts if p is not None and p >= act.needed]
    pays, test = paying[-1] if paying else None, acts[0]
    if p is None:
        answer = f"{test.act}: the chance is not known yet, and {test.needed:.0%} is enough"
    elif pays is None:
        answer = f"only watch it: {p:.0%} is less than the {test.needed:.0%} that a test needs"
    else:
        answer = f"{pays.act}: {p:.0%}, and {pays.needed:.0%} is enough"
    return WarningPayoff(p, rules.costs.failure.node_hours, acts, pays.act if pays else None, answer)
