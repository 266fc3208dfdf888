"""A change of the policy is replayed on the ledger's faults: what it costs."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from assay.act.loop.policy_replay import MAX_EVENTS
from assay.decide.faults.detection import FaultObservation
from assay.decide.state.decision_and_fault_entries import make_cleared_entry, make_enrolled_entry, make_fault_entry
from assay.ledger.store import Ledger
from assay.model.entries.faults import FaultClearedEntry
from assay.model.timestamps import format_time
from tests.support.forked_assay import run_assay

NAMES = [f"n{number:04}" for number in range(3, 17)]
POOL_PERCENT = "pool_percent: 25"


def plan(root, form="text"):
    return run_assay("plan", "--fleet", root, "--base", "main", "--format", form)


def make_fault(name, at, number=0):
    stamp = format_time(at)
    ident = f"{name}-{number}"
    return FaultObservation(
        ident, name, "gpu.missing", f"h100-a/{name}/gpu0", "catastrophic", "hardware", "reboot", 1, stamp, stamp,
        "planted", {}, (stamp,),
    )  # fmt: skip


@pytest.fixture
def faulty(repository):
    """Six nodes lose a GPU within hours of each other, each for a day."""
    now = datetime.now(UTC)
    (repository.root / ".assay").mkdir()
    ledger = Ledger.open(repository.root / ".assay/ledger.sqlite")
    ledger.append(*(make_enrolled_entry(name, "h100-a", "production", now - timedelta(days=20)) for name in NAMES))
    for number, name in enumerate(NAMES[:6]):
        at = now - timedelta(days=9) + timedelta(hours=number)
        ledger.append(make_fault_entry(make_fault(name, at), at))
        ledger.append(make_cleared_entry(name, FaultClearedEntry(f"{name}-0", "repaired"), at + timedelta(days=1)))
    ledger.close()
    return repository


def test_a_smaller_limit_trades_time_out_for_time_served_with_faults(faulty) -> None:
    faulty.policy(POOL_PERCENT, "pool_percent: 8")
    found = json.loads(plan(faulty.root, "json").stdout)["policy_replay"]
    assert (found["faults"], found["nodes"]) == (6, 6)
    old, new = found["old_costs"], found["new_costs"]
    assert new["out_node_hours"] < old["out_node_hours"]
    assert new["catastrophic_node_hours"] > old["catastrophic_node_hours"]


def test_the_section_on_the_policy_says_so_in_words(faulty) -> None:
    faulty.policy(POOL_PERCENT, "pool_percent: 8")
    said = plan(faulty.root).stdout
    assert "replay of the last 30 days, 6 faults on 6 nodes" in said
    assert "node-hours served with an open fault:" in said
    assert ", higher" in said
    assert ", lower" in said


def test_what_is_no_number_is_compared_too(faulty) -> None:
    rule = "severity: [catastrophic]\n    states: [production, spare]\n    timing: "
    faulty.policy(f"{rule}immediate", f"{rule}record")
    found = json.loads(plan(faulty.root, "json").stdout)["policy_replay"]
    assert found["new_costs"]["out_node_hours"] == 0
    assert found["new_costs"]["catastrophic_node_hours"] == pytest.approx(6 * 24)


@pytest.mark.slow
def test_without_faults_or_without_a_change_nothing_is_replayed(faulty, repository) -> None:
    faulty.spec("gpu_temperature: {value: 85", "gpu_temperature: {value: 84")
    assert json.loads(plan(faulty.root, "json").stdout)["policy_replay"] is None
    (repository.root / ".assay/ledger.sqlite").unlink()
    faulty.policy(POOL_PERCENT, "pool_percent: 8")
    assert json.loads(plan(faulty.root, "json").stdout)["policy_replay"] is None


@pytest.mark.slow
def test_a_flood_of_faults_is_not_replayed_and_the_plan_says_so(faulty) -> None:
    now = datetime.now(UTC) - timedelta(days=1)
    ledger = Ledger.open(faulty.root / ".assay/ledger.sqlite")
    ledger.append(
        *(make_fault_entry(make_fault(NAMES[7], now + timedelta(seconds=n), n), now) for n in range(MAX_EVENTS + 1))
    )
    ledger.close()
    faulty.policy(POOL_PERCENT, "pool_percent: 8")
    assert f"not replayed: more than {MAX_EVENTS:,} events" in plan(faulty.root).stdout


def test_it_says_what_the_trust_steps_in_force_let_assay_do_and_what_it_would_only_suggest(faulty) -> None:
    faulty.policy(POOL_PERCENT, "pool_percent: 8")
    assert json.loads(plan(faulty.root, "json").stdout)["policy_replay"]["new_moves"] == {}, "assay acts everywhere"
    faulty.policy("  fleet: act\n", "  fleet: suggest\n  actions: {cordon: act}\n")
    found = json.loads(plan(faulty.root, "json").stdout)["policy_replay"]
    assert found["old_moves"].keys() == {"act"}
    assert found["new_moves"].keys() == {"suggest"}, "each move begins more than a cordon"
    assert found["new_costs"]["out_node_hours"] > 0, "what it would cost if assay acted stays told"
    said = plan(faulty.root).stdout
    assert "old policy → new policy, as if assay acted:" in said
    assert f"{found['new_moves']['suggest']} only suggested under the new one" in said
    faulty.policy("  fleet: suggest\n", "  fleet: watch\n")
    assert json.loads(plan(faulty.root, "json").stdout)["policy_replay"]["new_moves"].keys() == {"watch"}
