"""Which findings become warnings of the ledger, what came of each, how good that makes a rule, and what follows. Pure.

Right: a fault of hardware that its rule names, on the same part, after the day of the warning and within the horizon.
Overtaken: the part was exchanged, moved, repaired or got new firmware first, or its node left service for another
reason. Wrong: none of it, and the part was measured on most days of the horizon.

A rule keeps its stage while a test may pay. An act pays if the chance is above cost of acting / (cost of acting + cost
of a failure).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from datetime import datetime, timedelta
from hashlib import sha256
from typing import NamedTuple

from assay.decide.state.asset_history import PartHolder
from assay.decide.state.service_absences import ServiceAbsence
from assay.decide.trends.change_warnings import ChangeWarning
from assay.decide.trends.fleet_tables import PartFailure
from assay.decide.trends.warning_answers import RuleRecord, TrendWarningAnswer
from assay.decide.trends.warning_record import (
    ClosedWarning,
    FailuresSeen,
    TrendWarning,
    WarningHistory,
    compare_acts,
    judge_record,
)
from assay.model.entries.faults import TrendClosedEntry, TrendDemotedEntry, TrendStage, TrendWarnedEntry, WarningOutcome
from assay.model.facts import extend, frozen
from assay.model.ledger_entry import derive_id
from assay.model.peer_statistics import find_share_interval
from assay.model.specs.trend_rules import TrendRule, TrendRules
from assay.model.timestamps import format_time, parse_time


def find_revision(rules: TrendRules, name: str) -> str:
    """Return the name of a rule's present text: with another one, its record begins anew, and so does its stage."""
    facts = [rules.rules[name].model_dump(), rules.change.model_dump()]
    return sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:12]


def make_rule_records(rules: TrendRules, history: WarningHistory, failures: Sequence[PartFailure]) -> list[RuleRecord]:
    """Return the record of each rule, in their order. `failures`: all faults of hardware."""
    return [_make_record(rules, name, history, failures) for name in rules.rules]


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


def _make_record(rules: TrendRules, name: str, history: WarningHistory, failures: Sequence[PartFailure]) -> RuleRecord:
    rule, revision = rules.rules[name], find_revision(rules, name)
    own = [known for known in history.warnings if (known.content.rule, known.content.revision) == (name, revision)]
    counts = Counter(warning.closed.outcome if warning.closed else "open" for warning in own)
    ended = [ClosedWarning(warning.closed.lead_days, warning.closed.outcome) for warning in own if warning.closed]
    lost = history.demotions.get((name, revision), "") if rule.stage == "record" else ""
    stage: TrendStage = "observe" if lost else rule.stage
    since = min((warning.at for warning in own), default=None)
    later = [failure for failure in failures if since is not None and failure.at >= since]
    foreseeable = max(sum(rule.is_proved_by(failure.fault) for failure in later), counts["right"])
    acts = compare_acts(own)
    return extend(
        RuleRecord,
        judge_record(ended, FailuresSeen(foreseeable, counts["right"])),
        name=name,
        revision=revision,
        fault=rule.fault,
        stage=stage,
        declared_stage=rule.stage,
        lost_because=lost,
        open=counts["open"],
        overtaken=counts["overtaken"],
        failures=foreseeable,
        cost_node_hours=round(acts.tests * rules.costs.test.node_hours, 3),
        acts=acts,
    )


LEAST_JUDGED = 5
"""With fewer warnings that were right or wrong, nobody knows the chance yet."""


def find_chance(record: RuleRecord) -> float | None:
    """Return the chance that a warning of a rule is right, drawn to one half; None while too few have ended."""
    if record.judged < LEAST_JUDGED:
        return None
    return (record.right + 1) / (record.judged + 2)


def describe_payoff(rules: TrendRules, p: float | None) -> str:
    """Return what pays at a chance `p` (None: not known): the costliest act that does, and what it costs in vain."""
    costs = {"test it next, while it is idle": rules.costs.test, "drain it after its job": rules.costs.drain}
    needed = {act: find_break_even(rules, cost.node_hours) for act, cost in costs.items()}
    test = next(iter(costs))
    pays = test if p is None else next((act for act in reversed(costs) if p >= needed[act]), "")
    if not pays:
        return f"only watch it: {p:.0%} of such warnings are right, and a test pays from {needed[test]:.0%} on"
    chance = "how many such warnings are right is not known yet" if p is None else f"{p:.0%} of such warnings are right"
    hours = f"in vain it costs {costs[pays].node_hours:g} node-hours, a failure {rules.costs.failure.node_hours:g}"
    return f"{pays}: {chance}, and it pays from {needed[pays]:.0%} on ({hours})"


def is_left_alone(rules: TrendRules, node: str) -> bool:
    """Whether nothing follows from warnings of a node: all its parts share the draw, as a test is of the whole node."""
    return int(derive_id("left alone", node)[:8], 16) < rules.acts.left_alone_share * 2**32


QUIET = timedelta(days=30)
"""So long after a warning, the same part and rule have no other one."""


class OpenedWarnings(NamedTuple):
    """New warnings by node, and the rules that lost their stage because they warned of too many parts at once."""

    warnings: tuple[tuple[str, TrendWarnedEntry], ...]
    demotions: tuple[TrendDemotedEntry, ...]


def open_warnings(
    rules: TrendRules,
    records: Mapping[str, RuleRecord],
    history: WarningHistory,
    changes: Sequence[ChangeWarning],
    nodes: int,
    now: datetime,
    since: datetime | None = None,
) -> OpenedWarnings:
    """Return the warnings that are new, some of them left alone. A wave of a rule is no fault of any part.

    `nodes`: how many were compared. `since`: when the fleet was asked last; None where nobody knows.
    """
    known = {warning.key: warning for warning in history.warnings}
    new: dict[tuple[str, str, str], tuple[str, TrendWarnedEntry]] = {}
    for change in changes:
        name = rules.find_rule(change.score.name)
        if not name:
            continue
        entry = _make_entry(change, records[name], now)
        if entry.stage == "record" and is_left_alone(rules, change.score.node):
            entry = replace(entry, stage="observe", left_alone=True)
        key = TrendWarning(change.score.node, now, entry).key
        before = known.get(key)
        is_young = before is not None and (before.closed is None or now - before.at < QUIET)
        if key not in new and not is_young:
            new[key] = (change.score.node, entry)
    # How many causes a rule may name at once, after so long a time.
    days = max(min(now - since if since else QUIET, QUIET) / timedelta(days=1), 1.0)
    budget = rules.change.alarms_per_1000_node_days * nodes / 1000 * days
    most = max(rules.earn.wave_at_least, rules.earn.wave_factor * budget)
    waves = {name for name in records if _count_causes(new.values(), name) > most}
    demotions = [_demote(records[name], most, new.values()) for name in records if name in waves]
    entries = [
        (node, replace(entry, stage="observe", left_alone=False) if entry.rule in waves else entry)
        for node, entry in new.values()
    ]
    return OpenedWarnings(tuple(entries), tuple(demotion for demotion in demotions if demotion))


def _make_entry(change: ChangeWarning, record: RuleRecord, now: datetime) -> TrendWarnedEntry:
    score = change.score
    return TrendWarnedEntry(
        warning=derive_id("trend", score.node, score.subject, score.serial, record.name, format_time(now)),
        rule=record.name,
        revision=record.revision,
        stage=record.stage,
        place=score.subject,
        serial=score.serial,
        name=score.name,
        unit=score.unit,
        before=score.own,
        now=score.recent,
        z=round(score.part_evidence, 2),
        peers=score.peers - 1,
        limit=score.limit,
        rate_days=score.days_left,
        days=change.days or (),
        group=change.group,
        p=find_chance(record),
        reason=change.because,
    )


def _count_causes(new: Iterable[tuple[str, TrendWarnedEntry]], rule: str) -> int:
    """Return how many causes a rule names: a group that explains several parts is one."""
    own = [entry for _, entry in new if entry.rule == rule]
    return len({entry.group for entry in own if entry.group}) + sum(not entry.group for entry in own)


def _demote(record: RuleRecord, most: float, new: Iterable[tuple[str, TrendWarnedEntry]]) -> TrendDemotedEntry | None:
    if record.stage != "record":
        return None
    causes = _count_causes(new, record.name)
    reason = f"it named {causes} causes at once, and {most:.0f} is the most: a wave has one cause"
    return TrendDemotedEntry(record.name, record.revision, reason)


FIRST_DAY = timedelta(days=1)
"""A failure on the day of the warning was not foreseen."""
MEASURED_SHARE = 0.8
"""The share of the horizon's days with values that a part needs before a warning of it counts as wrong."""
LONG_ABSENCE = timedelta(days=1)


@frozen
class PartFates:
    """What became of parts: failures of hardware, holders and absences by node, and measured days by warning."""

    failures: Sequence[PartFailure] = ()
    holders: Mapping[str, Sequence[PartHolder]] = field(default_factory=dict)
    absences: Mapping[str, Sequence[ServiceAbsence]] = field(default_factory=dict)
    measured_days: Mapping[str, int] = field(default_factory=dict)


class _Event(NamedTuple):
    at: datetime
    outcome: WarningOutcome
    reason: str
    fault: str = ""
    by_check: bool = False


def close_warning(
    warning: TrendWarning, rule: TrendRule | None, fates: PartFates, now: datetime
) -> TrendClosedEntry | None:
    """Return what came of an open warning; None while nobody knows. `rule` is None if the fleet has it no more."""
    if rule is None:
        return _close(warning, _Event(now, "cannot tell", "its rule is no longer in specs/trends/"))
    end = warning.at + timedelta(days=rule.horizon_days)
    events = [
        *(event for event in _list_failures(warning, rule, fates) if event.at <= min(now, end)),
        *(event for event in _list_interventions(warning, fates, now) if event.at <= min(now, end)),
    ]
    if events:
        return _close(warning, min(events))
    if now < end:
        return None
    measured = fates.measured_days.get(warning.content.warning, 0)
    if measured < MEASURED_SHARE * rule.horizon_days:
        reason = f"measured on {measured} of {rule.horizon_days} days only"
        return _close(warning, _Event(end, "cannot tell", reason))
    return _close(warning, _Event(end, "wrong", f"nothing failed in {rule.horizon_days} days"))


def _list_failures(warning: TrendWarning, rule: TrendRule, fates: PartFates) -> list[_Event]:
    content, events = warning.content, []
    for failure in fates.failures:
        if failure.at < warning.at or not _is_of_part(warning, failure, fates):
            continue
        if not rule.is_proved_by(failure.fault):
            continue
        name = f"{failure.fault} on {failure.node}{f'/{failure.place}' if failure.place else ''}"
        if failure.at < warning.at + FIRST_DAY:
            reason = f"{name}, on the day of the warning: too late to act"
            events.append(_Event(failure.at, "cannot tell", reason, failure.ident))
        else:
            reason = f"{name}: {content.name} had got worse"
            events.append(_Event(failure.at, "right", reason, failure.ident, failure.by_check))
    return events


def _is_of_part(warning: TrendWarning, failure: PartFailure, fates: PartFates) -> bool:
    """Whether a failure is of the warned part, by its serial number where that is known. A node has all its parts."""
    content = warning.content
    if failure.node == warning.node and not content.place:
        return True
    held = (part for part in fates.holders.get(failure.node, ()) if part.place == failure.place)
    serial = next((part.serial for part in held if _holds(part, failure.at)), "")
    if content.serial and serial:
        return serial == content.serial
    return (failure.node, failure.place) == (warning.node, content.place)


def _list_interventions(warning: TrendWarning, fates: PartFates, now: datetime) -> list[_Event]:
    """Return when somebody worked on the part or its node."""
    content = warning.content
    held = (part for part in fates.holders.get(warning.node, ()) if part.place == content.place)
    ends = [parse_time(part.until) for part in held if part.until and _holds(part, warning.at)]
    events = [_Event(at, "overtaken", "the part was exchanged, moved, repaired or got new firmware") for at in ends]
    for absence in fates.absences.get(warning.node, ()):
        if absence.began_at > warning.at and (absence.ended_at or now) - absence.began_at > LONG_ABSENCE:
            events.append(_Event(absence.began_at, "overtaken", "its node left service for another reason"))
    return events


def _holds(holder: PartHolder, at: datetime) -> bool:
    return parse_time(holder.since) <= at and (not holder.until or at < parse_time(holder.until))


def _close(warning: TrendWarning, event: _Event) -> TrendClosedEntry:
    lead = (event.at - warning.at) / timedelta(days=1) if event.outcome == "right" else None
    content = warning.content
    words = content.warning, content.rule, event.outcome, event.reason, event.fault
    return TrendClosedEntry(*words, lead, event.by_check)


@frozen
class AdvisedWarning:
    """A finding with its rule ("" if no rule covers it), the stage that holds, its chance, and what pays."""

    warning: ChangeWarning
    rule: str
    stage: str
    p: float | None
    payoff: str

    def make_answer(self) -> TrendWarningAnswer:
        """Return what is told of it."""
        score, days = self.warning.score, self.warning.days
        return extend(
            TrendWarningAnswer,
            score,
            from_=score.own,
            to=score.recent,
            peers=score.peers - 1,
            score=round(score.part_evidence, 2),
            limit=score.limit,
            days=[round(day, 1) for day in days] if days else None,
            group=self.warning.group,
            because=self.warning.because,
            p=self.p,
            answer=self.payoff,
            rule=self.rule,
            stage=self.stage,
            rate_days=score.days_left,
        )


def advise(rules: TrendRules, records: Iterable[RuleRecord], warnings: Iterable[ChangeWarning]) -> list[AdvisedWarning]:
    """Return what follows from each of the warnings, in their order."""
    known = {record.name: record for record in records}
    advised = []
    for warning in warnings:
        name = rules.find_rule(warning.score.name)
        record = known.get(name)
        p = find_chance(record) if record else None
        stage = record.stage if record else "observe"
        is_alone = stage == "record" and is_left_alone(rules, warning.score.node)
        payoff = "left alone by chance, to tell what acting prevents" if is_alone else describe_payoff(rules, p)
        advised.append(AdvisedWarning(warning, name, "observe" if is_alone else stage, p, payoff))
    return advised
