"""What a week could not judge is told, and is never well: counters at their maximum, and commands that gave nothing."""

from __future__ import annotations

import pytest

from assay.fabric.health.stored_scan import make_earlier_channel, read_scan
from assay.fabric.weekly.aggregation import aggregate_week
from assay.fabric.weekly.evaluation import WeeklyEvaluation, evaluate_fabric_week
from assay.fabric.weekly.text_report import format_weekly_text, make_week_answer
from assay.fabric.weekly.week_evidence import make_week_evidence, read_week_evidence
from assay.model.facts import to_json
from tests.support.port_facts import plant_port_facts

SCANS = 12
MODULES = "module temperature, received light, laser current, bit error ratio"


def evaluate(week, change=lambda world, number: None, scans=SCANS, **options) -> WeeklyEvaluation:
    last, cables = week.pass_by(change, scans, **options), list(week.plan.cables)
    kept = read_week_evidence(make_week_evidence(aggregate_week("compute", cables, last, week.store.get, last.at)))
    return evaluate_fabric_week(kept, cables, week.rails, week.design.limits)


def first_line(one: WeeklyEvaluation) -> str:
    return format_weekly_text(one).partition("\n")[0]


def flap(world, number):
    plant_port_facts(world, "n0011/mlx5_6", counters={"LinkDownedCounter": number})


@pytest.mark.parametrize(("counter", "most"), [("LinkDownedCounter", 255), ("SymbolErrorCounter", 65535)])
def test_a_counter_at_its_maximum_is_told_and_the_week_is_not_well(week, counter, most):
    one = evaluate(week, lambda world, number: plant_port_facts(world, "n0011/mlx5_6", counters={counter: most}))
    assert (one.ranked, one.is_whole) == ((), False)
    assert "nothing stands out in what was judged; not judged: link downs and errors of 1 port" in first_line(one)
    says = "n0011 mlx5_6 port R6 (r03 U24): " + counter
    assert f"{says} stood at its maximum in 11 of 11 scans: it cannot count, clear it" in format_weekly_text(one)
    plain = to_json(make_week_answer(one))
    assert (plain["verdict"], plain["unjudged"]) == ("unknown", ["link downs and errors of 1 port"])
    assert plain["stuck"] == [f"{says} stood at its maximum in 11 of 11 scans: it cannot count, clear it"]


def test_one_that_reached_it_in_the_week_is_told_beside_what_it_counted(week):
    def grow(world, number):
        plant_port_facts(world, "n0011/mlx5_6", counters={"LinkDownedCounter": min(250 + number, 255)})

    one = evaluate(week, grow)
    assert [ranked.port.end.node for ranked in one.ranked] == ["n0011"]
    assert "; not judged: link downs and errors of 1 port" in first_line(one)


def test_one_that_was_cleared_in_time_is_well(week):
    def clear_at_2(world, number):
        plant_port_facts(world, "n0011/mlx5_6", counters={"LinkDownedCounter": 255 if number < 2 else 0})

    assert evaluate(week, clear_at_2).is_whole


def test_one_that_was_cleared_at_the_end_is_told(week):
    def clear_at_end(world, number):
        plant_port_facts(world, "n0011/mlx5_6", counters={"LinkDownedCounter": 255 if number < SCANS - 1 else 0})

    assert "stood at its maximum in 10 of 11 scans" in format_weekly_text(evaluate(week, clear_at_end))


def test_a_full_counter_that_the_week_is_not_judged_by_hides_nothing(week):
    def fill(world, number):
        plant_port_facts(world, "n0011/mlx5_6", counters={"PortXmitDiscards": 65535})

    assert evaluate(week, fill).is_whole


def test_without_telemetry_flaps_are_found_and_modules_are_not_judged(week):
    one = evaluate(week, flap, dead=lambda name, number: name == "telemetry")
    assert {ranked.port.end.node for ranked in one.ranked} == {"n0011"}
    assert "went down before 11 of 11 scans" in format_weekly_text(one)
    assert f"1 of 832 ports needs a look; not judged: {MODULES}" in first_line(one)
    assert "0 of 12 scans read it, 8 are needed: telemetry: the discovery is empty" in format_weekly_text(one)


def test_without_telemetry_nothing_to_tell_of_the_counters_is_not_well(week):
    one = evaluate(week, dead=lambda name, number: name == "telemetry")
    assert one.week.doubt is None
    assert to_json(make_week_answer(one))["verdict"] == "unknown"
    assert "nothing is known" not in first_line(one)


def test_telemetry_in_half_of_the_scans_leaves_each_chance_over_all_scans(week):
    one = evaluate(week, flap, dead=lambda name, number: name == "telemetry" and number % 2 == 1)
    assert "went down before 11 of 11 scans" in format_weekly_text(one)
    assert one.unjudged[0].part.startswith(MODULES)
    assert one.unjudged[0].reason.startswith("6 of 12 scans read it")


def test_without_counters_modules_are_judged_and_downs_are_not(week):
    def heat(world, number):
        plant_port_facts(world, "n0004/mlx5_3", temperature_c=83.0)

    one = evaluate(week, heat, dead=lambda name, number: name == "errors")
    assert [ranked.port.end.node for ranked in one.ranked] == ["n0004"]
    assert [part.part for part in one.unjudged] == ["link downs and errors"]


def test_a_failure_now_and_then_leaves_the_week_whole(week):
    assert evaluate(week, dead=lambda name, number: number == 3).is_whole


def test_where_no_kind_of_reading_was_read_nothing_is_known(week):
    one = evaluate(week, dead=lambda name, number: True)
    assert "nothing is known yet: 0 of 12 scans were complete: errors: the discovery is empty (" in first_line(one)
    assert one.unjudged == ()


def test_counters_that_could_not_be_read_once_grow_from_those_before(week):
    """Otherwise all that was ever counted would have grown in one scan."""
    stand = {"SymbolErrorCounter": 9000}
    week.pass_by(
        lambda world, number: plant_port_facts(world, "n0011/mlx5_6", counters=stand),
        4,
        dead=lambda name, number: name == "errors" and number == 2,
    )
    assert [read_scan(scan).has_counters for scan in week.scans] == [True, True, False, True]
    assert make_earlier_channel(week.scans[2]) == week.scans[2].channels["earlier"]
    growths = read_scan(week.scans[3]).growths.values()
    assert sum(growth.find_growth("SymbolErrorCounter").count for growth in growths) == 0
