"""What the changed thresholds and policy would have done with the last days, and the present ones did not."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from assay.act.loop.plan_inputs import read_recent_outcomes
from assay.decide.plan.backtest import find_changed_scopes, run_backtest
from assay.decide.plan.inputs import FleetRevision
from assay.declare.loader import load_fleet
from assay.ledger.store import Ledger
from assay.model.fleet import Fleet
from assay.model.ledger_entry import LedgerEntry
from assay.model.outcome import Measurement, Outcome, RecordedOutcome, SuiteRun
from tests.support.places import ROOT

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
HEAT = "suites/production/test_gpu.py::test_gpu_temperature"
BOUNDS = {(HEAT, "gpu_temperature"): [("at_most", "gpu_temperature")]}


@pytest.fixture(scope="module")
def fleet() -> Fleet:
    return load_fleet(ROOT)


def side(fleet: Fleet) -> FleetRevision:
    return FleetRevision(fleet)


def hotter(fleet: Fleet, value: float) -> Fleet:
    """Return the fleet with another limit of the GPUs' temperature."""
    spec = fleet.node_specs["hgx-h100"]
    limit = spec.limits["gpu_temperature"].model_copy(update={"value": value})
    changed = spec.model_copy(update={"limits": {**spec.limits, "gpu_temperature": limit}})
    return replace(fleet, node_specs={**fleet.node_specs, spec.name: changed})


def answering(fleet: Fleet, rule: str, **changes: object) -> Fleet:
    """Return the fleet with another rule in its policy."""
    policy = fleet.policies["default"]
    faults = {**policy.faults, rule: policy.faults[rule].model_copy(update=changes)}
    return replace(fleet, policies={"default": policy.model_copy(update={"faults": faults})})


def enrolled(node: str, state: str = "production", days: float = 40) -> LedgerEntry:
    at = (NOW - timedelta(days=days)).isoformat()
    return LedgerEntry(f"enrolled {node}", at, "node.enrolled", node, {"pool": "h100-a", "state": state})


def moved(node: str, origin: str, target: str, days: float) -> LedgerEntry:
    at = (NOW - timedelta(days=days)).isoformat()
    return LedgerEntry(f"{node} {target}", at, "transition", node, {"from": origin, "to": target, "decision": ""})


def heat(node: str, value: float, days: float, source: str = "", check: str = HEAT) -> RecordedOutcome:
    at = (NOW - timedelta(days=days)).isoformat()
    number = Measurement("gpu_temperature", value, "°C", None, 85, source)
    outcome = Outcome(
        check=check,
        subject=f"h100-a/{node}/gpu0",
        node=node,
        verdict="pass" if value <= 85 else "fail",
        fault="gpu.thermal",
        phases=("test", "production"),
        evidence_at=at,
        measurements=(number,),
    )
    return RecordedOutcome(f"run {days}", at, outcome)


def fault(node: str, name: str, days: float, severity: str = "degraded", ident: str = "f1") -> LedgerEntry:
    at = (NOW - timedelta(days=days)).isoformat()
    body = {
        "fault": ident, "class": name, "subject": f"h100-a/{node}", "severity": severity, "blame": "hardware",
        "remedy": "ticket", "count": 1, "first_seen": at, "last_seen": at,
    }  # fmt: skip
    return LedgerEntry(f"{ident} of {node}", at, "fault", node, body)


def told(report) -> list[tuple[str, bool, bool, str, str, int]]:
    found = report.found
    return [(one.node, one.acts, one.still, one.then, one.now, one.times) for one in found]


def test_a_lower_limit_would_have_acted_on_the_nodes_that_ran_hotter(fleet) -> None:
    recent = [heat("n0005", 84, 20), heat("n0005", 84.5, 10), heat("n0005", 70, 1), heat("n0006", 79, 2)]
    found = run_backtest(
        side(fleet), side(hotter(fleet, 83)), BOUNDS, [enrolled("n0005"), enrolled("n0006")], recent, NOW
    )
    assert told(found) == [("n0005", True, False, "passes", "triage, to draining, when idle", 2)]
    assert "gpu_temperature 84.5 °C on h100-a/n0005/gpu0; limit gpu_temperature 85 → 83" in found.found[0].because
    assert (found.measurements, found.unmapped) == (4, 0)


def test_what_is_so_at_the_newest_look_is_so_at_once(fleet) -> None:
    recent = [heat("n0005", 70, 20), heat("n0005", 84, 1)]
    (one,) = run_backtest(side(fleet), side(hotter(fleet, 83)), BOUNDS, [enrolled("n0005")], recent, NOW).found
    assert (one.still, one.times) == (True, 1)


def test_a_higher_limit_would_have_spared_nodes(fleet) -> None:
    found = run_backtest(side(fleet), side(hotter(fleet, 90)), BOUNDS, [enrolled("n0005")], [heat("n0005", 87, 3)], NOW)
    assert told(found) == [("n0005", False, True, "triage, to draining, when idle", "passes", 1)]


def test_a_limit_that_nothing_reached_differs_on_no_node(fleet) -> None:
    found = run_backtest(side(fleet), side(hotter(fleet, 84)), BOUNDS, [enrolled("n0005")], [heat("n0005", 60, 3)], NOW)
    assert (found.found, found.measurements) == ((), 1)


def test_nodes_that_are_only_watched_are_not_acted_on(fleet) -> None:
    found = run_backtest(side(fleet), side(hotter(fleet, 83)), BOUNDS, [enrolled("n0017")], [heat("n0017", 84, 3)], NOW)
    assert found.found == ()


def test_the_state_in_which_it_was_seen_decides(fleet) -> None:
    history = [enrolled("n0005", "onboard"), moved("n0005", "zap", "test", 10), moved("n0005", "test", "production", 5)]
    found = run_backtest(side(fleet), side(hotter(fleet, 83)), BOUNDS, history, [heat("n0005", 84, 7)], NOW)
    assert ("n0005", True, False, "passes", "fails, to triage", 1) in told(found)


def test_a_measurement_of_a_check_that_is_gone_is_mapped_by_its_line(fleet) -> None:
    line = fleet.lines["NodeSpec/hgx-h100", "limits.gpu_temperature"]
    recent = [heat("n0005", 84, 3, line, "suites/old.py::test_heat")]
    found = run_backtest(side(fleet), side(hotter(fleet, 83)), BOUNDS, [enrolled("n0005")], recent, NOW)
    assert [one.node for one in found.found] == ["n0005"]


def test_a_measurement_that_cannot_be_mapped_is_counted_and_never_silently_left_out(fleet) -> None:
    recent = [heat("n0005", 84, 3, "specs/nodes/gone.yaml:9", "suites/old.py::test_heat")]
    found = run_backtest(side(fleet), side(hotter(fleet, 83)), BOUNDS, [enrolled("n0005")], recent, NOW)
    assert (found.found, found.measurements, found.unmapped) == ((), 0, 1)


def test_a_stored_fault_is_answered_by_both_policies(fleet) -> None:
    kinder = answering(fleet, "for-people", classes=["psu.failed", "nic.link.down"])
    history = [
        enrolled("n0005"),
        enrolled("n0006"),
        fault("n0005", "fan.failed", 3),
        fault("n0006", "nic.link.down", 3),
    ]
    found = run_backtest(side(fleet), side(kinder), {}, history, [], NOW)
    assert found.faults == 2
    assert told(found) == []  # their remedy is a ticket, which is no step of the ladder: neither policy moves them
    harder = answering(fleet, "for-people", timing="immediate", to="draining")
    (one,) = run_backtest(side(fleet), side(harder), {}, history[:3], [], NOW).found
    assert (one.node, one.acts, one.still, one.then, one.now) == (
        "n0005", True, True, "noted, ticket", "ticket, to draining, at once",
    )  # fmt: skip


def test_a_fault_below_its_count_stays_below_it(fleet) -> None:
    harder = answering(fleet, "for-people", timing="immediate", to="draining")
    history = [enrolled("n0005"), fault("n0005", "fan.failed", 3, severity="informational")]
    assert run_backtest(side(fleet), side(harder), {}, history, [], NOW).found == ()


def test_faults_that_are_older_than_the_window_are_left_out(fleet) -> None:
    harder = answering(fleet, "for-people", timing="immediate", to="draining")
    found = run_backtest(side(fleet), side(harder), {}, [enrolled("n0005"), fault("n0005", "fan.failed", 31)], [], NOW)
    assert (found.faults, found.found) == (0, ())


def test_how_much_history_there_was_is_said(fleet) -> None:
    long, short = [enrolled("n0005", days=90)], [enrolled("n0005", days=2)]
    assert run_backtest(side(fleet), side(fleet), {}, long, [], NOW).days == 30
    assert run_backtest(side(fleet), side(fleet), {}, short, [], NOW).days == 2
    assert run_backtest(side(fleet), side(fleet), {}, [], [], NOW).days == 0


def test_history_has_something_to_say_only_where_limits_or_rules_change(fleet) -> None:
    assert find_changed_scopes(side(fleet), side(fleet)) == (False, False)
    assert find_changed_scopes(side(fleet), side(hotter(fleet, 83))) == (True, False)
    assert find_changed_scopes(side(fleet), side(answering(fleet, "for-people", classes=["psu.failed"]))) == (
        False,
        True,
    )


def test_only_what_is_needed_is_read_out_of_the_ledger(tmp_path: Path) -> None:
    file = tmp_path / "ledger.sqlite"
    ledger = Ledger.open(file)
    for days in (40, 3):
        one = heat("n0005", 84, days)
        ledger.record(
            SuiteRun(one.run, one.at), [one.outcome, replace(one.outcome, check="suites/other.py::test_more")]
        )
    ledger.close()
    (read,) = read_recent_outcomes(file, [HEAT], NOW)
    assert (read.outcome.check, read.run) == (HEAT, "run 3")
    assert read_recent_outcomes(file, [], NOW) == []


def test_no_ledger_is_made_where_there_is_none(tmp_path: Path) -> None:
    assert read_recent_outcomes(tmp_path / "ledger.sqlite", [HEAT], NOW) == []
    assert not (tmp_path / "ledger.sqlite").exists()
