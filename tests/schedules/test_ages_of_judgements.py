"""How old what is known of nodes is: the same as reading every outcome would tell."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from assay.ledger.ages import Age
from assay.ledger.store import Ledger
from assay.model.outcome import Outcome, Run

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
CHECKS, PARTS, NODES = ("suites/a.py::test_x", "suites/a.py::test_y"), ("", "/gpu0", "/gpu1"), ("n1", "n2")
TOLD = st.tuples(*map(st.sampled_from, (CHECKS, PARTS, NODES, ("pass", "fail", "error", "skip"))), st.integers(0, 60))


def outcome(told: tuple[str, str, str, str, int]) -> Outcome:
    check, part, node, verdict, minute = told
    at = (NOON + timedelta(minutes=minute)).isoformat()
    return Outcome(check, f"p/{node}{part}", node, verdict, evidence="x", evidence_at=at)


@settings(max_examples=20)
@given(st.lists(st.lists(TOLD, max_size=8, unique_by=lambda told: told[:3]), max_size=4))
def test_the_oldest_of_the_newest_judgements_of_each_check(tmp_path_factory, runs):
    path: Path = tmp_path_factory.mktemp("ages")
    ledger = Ledger.open(path / "ledger.sqlite")
    newest: dict[tuple[str, str, str], float] = {}
    for number, told in enumerate(runs):
        ledger.record(Run(f"r{number}", NOON.isoformat()), map(outcome, told))
        for check, part, node, verdict, minute in told:
            if verdict != "error":
                key, at = (node, check, part), (NOON + timedelta(minutes=minute)).timestamp()
                newest[key] = max(newest.get(key, at), at)
    expected: dict[str, dict[str, Age]] = {node: {} for node in NODES}
    for node, check, _ in newest:
        of = [at for key, at in newest.items() if key[:2] == (node, check)]
        expected[node][check] = Age(len(of), min(of))
    assert ledger.ages(NODES) == expected
    ledger.close()


def test_a_node_that_nobody_judged_has_none(tmp_path):
    assert Ledger.open(tmp_path / "ledger.sqlite").ages(["n9"]) == {"n9": {}}
    assert Ledger.open(tmp_path / "ledger.sqlite").ages([]) == {}
