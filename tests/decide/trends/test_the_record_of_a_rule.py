"""A rule shows how good it was, loses a stage that it does not earn, and says which act pays."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from assay.decide.trends.change_warnings import ChangeScore, ChangeWarning
from assay.decide.trends.fleet_tables import PartFailure
from assay.decide.trends.warning_answers import RuleRecord
from assay.decide.trends.warning_record import ForecastFactors, TrendWarning, WarningHistory, compare_acts
from assay.decide.trends.warnings import (
    OpenedWarnings,
    advise,
    describe_payoff,
    describe_unearned_stage,
    find_chance,
    find_revision,
    make_rule_records,
    open_warnings,
)
from assay.declare.starter.shipped_specs import find_trend_rules
from assay.model.entries.faults import TrendClosedEntry, TrendStage, TrendWarnedEntry, WarningOutcome
from assay.model.peer_statistics import find_share_interval
from assay.model.specs.trend_rules import TrendRules

AT = datetime(2026, 3, 1, 4, tzinfo=UTC)
RULES = find_trend_rules(None)


def keep(number: int, outcome: WarningOutcome | None, *, days_ago: float = 60, rule: str = "heat") -> TrendWarning:
    warned = TrendWarnedEntry(
        f"w{number}", rule, find_revision(RULES, rule), "record", "gpu0", f"S{number}", "gpu_temperature", "C",
        61.0, 70.0, 9.0, 39,
    )  # fmt: skip
    lead = 9.0 + number if outcome == "right" else None
    closed = TrendClosedEntry(f"w{number}", rule, outcome, "so it was", "", lead) if outcome else None
    return TrendWarning(f"n{number}", AT - timedelta(days=days_ago), warned, closed)


def count(right: int, wrong: int, **demotions: str) -> RuleRecord:
    outcomes: list[WarningOutcome] = ["right"] * right + ["wrong"] * wrong
    kept = tuple(keep(number, outcome) for number, outcome in enumerate(outcomes))
    history = WarningHistory(kept, {("heat", find_revision(RULES, "heat")): demotions["lost"]} if demotions else {})
    failures = [PartFailure(AT - timedelta(days=ago), "n1", "gpu0", "gpu.xid.79") for ago in (100, 30, 20, 10, 5)]
    return next(one for one in make_rule_records(RULES, history, failures) if one.name == "heat")


def test_its_numbers_are_those_of_its_warnings() -> None:
    record = count(2, 1)
    assert record.precision == pytest.approx(2 / 3, abs=1e-3)
    assert record.failures == 4, "one was before the first warning"
    assert record.recall == 0.5
    assert record.lead_days == pytest.approx((9.5, 9.1))
    assert record.cost_node_hours == 0, "no node was tested"
    assert record.cannot_tell == 0


def test_a_rule_without_warnings_claims_nothing() -> None:
    record = count(0, 0)
    assert (record.precision, record.precision_interval, record.recall, record.lead_days) == (None, None, None, None)
    assert find_chance(record) is None


def test_the_interval_of_a_share_is_wilsons() -> None:
    low, high = find_share_interval(12, 14, 0.95) or (0, 0)
    assert (low, high) == (pytest.approx(0.647, abs=1e-3), pytest.approx(0.951, abs=1e-3))
    assert find_share_interval(0, 0, 0.95) is None


@pytest.mark.parametrize(("right", "wrong", "loses"), [(0, 29, False), (0, 60, True), (1, 60, False), (30, 5, False)])
def test_a_rule_keeps_its_stage_while_a_test_may_pay(right: int, wrong: int, loses: bool) -> None:
    reason = describe_unearned_stage(RULES, count(right, wrong))
    assert bool(reason) is loses
    assert not loses or reason.startswith(f"{right} of {right + wrong} warnings were right: fewer than the 4%")


def test_a_lost_stage_holds_until_the_rule_is_changed() -> None:
    record = count(0, 60, lost="0 of 60 warnings were right")
    assert (record.declared_stage, record.stage) == ("record", "observe")
    heat = RULES.rules["heat"].model_copy(update={"horizon_days": 45})
    changed = RULES.model_copy(update={"rules": {**RULES.rules, "heat": heat}})
    assert find_revision(changed, "heat") != find_revision(RULES, "heat")


@pytest.mark.parametrize(
    ("p", "answer"),
    [
        (
            None,
            "test it next, while it is idle: how many such warnings are right is not known yet, and it pays from",
        ),
        (0.02, "only watch it: 2% of such warnings are right, and a test pays from 4% on"),
        (
            0.5,
            "test it next, while it is idle: 50% of such warnings are right, and it pays from 4% on (in vain it costs",
        ),
        (0.9, "drain it after its job: 90% of such warnings are right, and it pays from 76% on (in vain it costs 26"),
    ],
)
def test_the_costliest_act_that_pays_is_the_answer(p: float | None, answer: str) -> None:
    assert describe_payoff(RULES, p).startswith(answer)


def draw(count: int, failed: int, by_check: int = 0, *, alone: bool) -> list[TrendWarning]:
    """Return warnings that ended: so many `failed`, and of more a check found the fault."""
    drawn = []
    for number in range(count):
        kept = keep(number, "right" if number < failed + by_check else "wrong")
        assert kept.closed is not None
        warned = replace(kept.content, stage="observe" if alone else "record", left_alone=alone)
        drawn.append(replace(kept, content=warned, closed=replace(kept.closed, by_check=failed <= number), tests=2))
    return drawn


def test_what_acting_prevented_is_told_by_those_that_were_left_alone() -> None:
    acts = compare_acts([*draw(40, 4, 16, alone=False), *draw(10, 5, alone=True)])
    assert (acts.acted, acts.acted_failed, acts.left_alone, acts.left_alone_failed) == (40, 4, 10, 5)
    assert acts.prevented == pytest.approx((0.5 - 0.1) * 40)
    low, high = acts.prevented_interval or (0, 0)
    assert (low, high) == (pytest.approx(5.86, abs=0.02), pytest.approx(25.5, abs=0.1)), "Newcombe's, with 90 %"
    assert acts.tests == 80, "those of nodes that were left alone are no act"
    assert compare_acts(draw(40, 4, alone=False)).prevented is None


def test_a_share_of_the_warnings_is_left_alone_by_chance() -> None:
    acts = RULES.acts.model_copy(update={"left_alone_share": 0.2})
    changed = RULES.model_copy(update={"acts": acts})
    records = {record.name: record for record in make_rule_records(changed, WarningHistory((), {}), [])}
    many = [find(number) for number in range(1000)]
    opened = open_warnings(changed, records, WarningHistory((), {}), many, 10_000_000, AT)
    alone = [warned for _, warned in opened.warnings if warned.left_alone]
    assert 150 < len(alone) < 250
    assert {warned.stage for warned in alone} == {"observe"}
    assert {warned.stage for _, warned in opened.warnings if not warned.left_alone} == {"record"}
    assert not any(warned.left_alone for _, warned in open_all(*many[:3]).warnings), "the policy has to allow it"
    others = [replace(each, score=each.score._replace(name="pcie_replays")) for each in many]
    again = open_warnings(changed, records, WarningHistory((), {}), others, 10_000_000, AT + timedelta(days=1))
    both = [{node for node, warned in each.warnings if warned.left_alone} for each in (opened, again)]
    assert both[0] == both[1], "nothing follows of any part of a node that is left alone"
    advised = advise(changed, records.values(), many)
    quiet = {each.warning.score.node for each in advised if each.payoff.startswith("left alone by chance")}
    assert quiet == both[0]
    assert {each.stage for each in advised if each.warning.score.node in quiet} == {"observe"}


def find(
    number: int,
    *,
    name: str = "gpu_temperature",
    rack: str = "",
    straight: float | None = None,
    factors: ForecastFactors | None = None,
) -> ChangeWarning:
    """Return what was found of a part, which reaches its limit in so many days in a straight line."""
    earlier = None if straight is None else 70.0 - 14 * 15 / straight
    score = ChangeScore(
        f"n{number}", "gpu0", name, "C", f"S{number}", (rack, "u1", "", "", "", "h100", "1.0", ""), 61.0, earlier, 70.0,
        0.2, 40, None, 85.0, 9.1, 5.0, 5.0,
    )  # fmt: skip
    return ChangeWarning(score, factors, f"rack {rack}: 9 of 18 (p 1e-9)" if rack else "")


def open_all(
    *found: ChangeWarning, history: WarningHistory | None = None, nodes: int = 1000, days: int = 1
) -> OpenedWarnings:
    kept = history or WarningHistory((), {})
    records = {one.name: one for one in make_rule_records(RULES, kept, [])}
    return open_warnings(RULES, records, kept, found, nodes, AT, AT - timedelta(days=days))


def name_stages(opened: OpenedWarnings) -> list[tuple[str, str, TrendStage]]:
    return [(node, one.rule, one.stage) for node, one in opened.warnings]


def test_a_limit_that_is_years_away_is_not_forecast() -> None:
    assert "at this rate it reaches 85 in 42 d" in find(1, straight=42).because
    assert "reaches" not in find(1, straight=900).because


def test_lost_readings_are_told_as_a_share() -> None:
    lost = find(1, name="readings")
    lost = replace(lost, score=lost.score._replace(own=1.0, recent=0.2, peers_change=0.0))
    assert lost.because == "it gives 20% of its usual measurements, before it gave 100%; 39 peers give 100%"


def test_each_part_and_rule_has_one_warning() -> None:
    opened = open_all(find(1), find(1, name="memory_temperature"), find(2, name="never_heard_of"))
    assert name_stages(opened) == [("n1", "heat", "record"), ("n2", "others", "observe")]


def test_an_open_or_young_warning_is_not_repeated() -> None:
    for kept, is_new in [
        (keep(1, None, days_ago=90), False),
        (keep(1, "wrong", days_ago=29), False),
        (keep(1, "wrong", days_ago=31), True),
        (keep(2, None), True),
    ]:
        assert bool(open_all(find(1), history=WarningHistory((kept,), {})).warnings) is is_new


def test_the_calibrated_range_and_the_straight_line_are_kept() -> None:
    (_, ranged), (_, straight), (_, none) = open_all(
        find(1, straight=14, factors=ForecastFactors(0.5, 1.0, 2.0)), find(2, straight=14), find(3)
    ).warnings
    assert (ranged.days, straight.days, none.days) == ((7, 14, 28), (), ())
    assert (ranged.rate_days, none.rate_days) == (14, None)


def test_a_wave_is_kept_and_is_no_fault_of_any_part() -> None:
    opened = open_all(*(find(number) for number in range(6)))
    assert {stage for _, _, stage in name_stages(opened)} == {"observe"}
    (lost,) = opened.demotions
    assert lost.reason == "it named 6 causes at once, and 5 is the most: a wave has one cause"


def test_one_rack_that_explains_many_parts_is_no_wave() -> None:
    opened = open_all(*(find(number, rack="r7") for number in range(9)), find(20))
    assert {stage for _, _, stage in name_stages(opened)} == {"record"}
    assert opened.demotions == ()


@pytest.mark.parametrize(("nodes", "days", "is_wave"), [(10_000, 1, True), (30_000, 1, False), (1000, 30, False)])
def test_a_large_fleet_or_a_long_time_may_name_more(nodes: int, days: int, is_wave: bool) -> None:
    opened = open_all(*(find(number) for number in range(6)), nodes=nodes, days=days)
    assert bool(opened.demotions) is is_wave


def test_two_rules_do_not_share_a_fault() -> None:
    document = RULES.model_dump(exclude_defaults=True)
    heat = document["rules"]["heat"]
    with pytest.raises(ValueError, match=r"trend\.heat is the fault of two rules"):
        TrendRules.model_validate({**document, "rules": {"a": heat, "b": heat}})


def test_the_straight_line_is_told_beside_the_calibrated_range() -> None:
    (told,) = advise(RULES, [], [find(1, straight=20, factors=ForecastFactors(0.3, 0.7, 1.9))])
    assert told.make_answer().rate_days == pytest.approx(20)
    assert told.make_answer().days == [6, 14, 38]
